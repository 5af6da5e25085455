package server

import (
	"net"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// fronts are the event loops, and the listeners they accept from.
type fronts struct {
	loop      *netpoll.Loop
	listeners []net.Listener
}

func (f *fronts) listen(s *Server, open []net.Listener, cfg *config.Config) error {
	loop, err := netpoll.NewLoop(s, s.warnOfAccept)
	if err != nil {
		return err
	}
	for _, ln := range open {
		if err := loop.Listen(ln, cfg.TCPBacklog); err != nil {
			return err
		}
	}
	f.loop, f.listeners = loop, open
	f.apply(cfg)
	return nil
}

// apply takes over the directives that the loops obey. It may be called before there are any.
func (f *fronts) apply(cfg *config.Config) {
	if f.loop != nil {
		f.loop.SetBusyPoll(time.Duration(cfg.BusyPollUs) * time.Microsecond)
		f.loop.SetKeepAlive(cfg.TCPKeepalive)
	}
}

func (f *fronts) count() int { return 1 }

// multiplexing is how the fronts wait for many connections at once.
const multiplexing = "epoll"

// traffic returns what was read from clients and written to them.
func (f *fronts) traffic() netpoll.Traffic {
	if f.loop == nil {
		return netpoll.Traffic{}
	}
	return f.loop.Traffic()
}

// nudge has background work looked after without delay.
func (f *fronts) nudge() {
	if f.loop != nil {
		f.loop.Nudge()
	}
}

// Run serves until Stop. Listen comes before it.
func (s *Server) Run() {
	s.logReady()
	s.http.serve()
	defer s.http.close() // at the very end, so that /readyz tells of it
	s.tls.start()
	go func() {
		<-s.stop
		s.tls.close()
		s.fronts.loop.Stop()
	}()
	s.fronts.loop.Run()
	s.tls.end()
	s.endKeeper()
	s.endSaving()
	s.closeLog()
}
