package server

import (
	"net"
	"runtime"
	"sync"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// fronts are the event loops, and the listeners they accept from. The first loop accepts and does the background work.
type fronts struct {
	loops     []*netpoll.Loop
	listeners []net.Listener // guarded by the executor's lock once Run has begun
}

func (f *fronts) listen(s *Server, open []net.Listener, cfg *config.Config) error {
	var loops []*netpoll.Loop
	for i := range cfg.IOThreads {
		var handler netpoll.Handler = s
		if i > 0 {
			handler = helper{s}
		}
		loop, err := netpoll.NewLoop(handler, s.warnOfAccept)
		if err != nil {
			return err
		}
		loops = append(loops, loop)
	}
	for _, ln := range open {
		if err := loops[0].Listen(ln, cfg.TCPBacklog); err != nil {
			return err
		}
	}
	if len(loops) > 1 {
		loops[0].Share(loops)
	}
	// A loop keeps its share of the scheduler while it sleeps for a moment, so there has to be one beyond theirs.
	if runtime.GOMAXPROCS(0) <= len(loops) {
		runtime.GOMAXPROCS(len(loops) + 1)
	}
	f.loops, f.listeners = loops, open
	f.apply(cfg)
	return nil
}

// listening reports whether listen has been called.
func (f *fronts) listening() bool { return len(f.loops) > 0 }

// accept has connections accepted from one more listener. The caller holds the executor's lock.
func (f *fronts) accept(ln net.Listener, backlog int) error { return f.loops[0].Listen(ln, backlog) }

// drop closes listeners. The caller holds the executor's lock.
func (f *fronts) drop(list []net.Listener) {
	for _, ln := range list {
		f.loops[0].Unlisten(ln)
	}
}

// helper is the Server as a loop sees it that leaves the background work to the first.
type helper struct{ *Server }

// NewWorker implements netpoll.Handler.
func (h helper) NewWorker() netpoll.Worker { return &worker{srv: h.Server, helps: true} }

// apply takes over the directives that the loops obey. It may be called before there are any.
func (f *fronts) apply(cfg *config.Config) {
	for _, loop := range f.loops {
		loop.SetBusyPoll(time.Duration(cfg.BusyPollUs) * time.Microsecond)
		loop.SetKeepAlive(cfg.TCPKeepalive)
	}
}

func (f *fronts) count() int { return len(f.loops) }

// multiplexing is how the fronts wait for many connections at once.
const multiplexing = "epoll"

// traffic returns what was read from clients and written to them.
func (f *fronts) traffic() (sum netpoll.Traffic) {
	for _, loop := range f.loops {
		sum.Add(loop.Traffic())
	}
	return sum
}

// nudge has background work looked after without delay.
func (f *fronts) nudge() {
	if len(f.loops) > 0 {
		f.loops[0].Nudge()
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
		for _, loop := range s.fronts.loops {
			loop.Stop()
		}
	}()
	var running sync.WaitGroup
	for _, loop := range s.fronts.loops {
		running.Go(loop.Run)
	}
	running.Wait()
	s.tls.end()
	s.finish()
}
