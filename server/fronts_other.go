//go:build !linux

package server

import (
	"net"
	"time"

	"headgate/server/config"
)

// fronts on systems without epoll: goroutines for each connection.
type fronts struct {
	netFront
	listeners []net.Listener // guarded by the executor's lock once Run has begun
	nudges    chan struct{}
}

func (f *fronts) listen(s *Server, open []net.Listener, cfg *config.Config) error {
	for _, ln := range open {
		if err := setBacklog(ln, cfg.TCPBacklog); err != nil {
			return err
		}
	}
	f.srv, f.listeners, f.nudges = s, open, make(chan struct{}, 1)
	return nil
}

// listening reports whether listen has been called.
func (f *fronts) listening() bool { return f.nudges != nil }

// accept has connections accepted from one more listener.
func (f *fronts) accept(ln net.Listener, backlog int) error {
	if f.ending.Load() {
		return net.ErrClosed
	}
	if err := setBacklog(ln, backlog); err != nil {
		return err
	}
	f.conns.Go(func() { f.acceptFrom(ln, f.serve) })
	return nil
}

// drop closes listeners.
func (f *fronts) drop(list []net.Listener) {
	for _, ln := range list {
		ln.Close()
	}
}

func (f *fronts) count() int { return 0 }

// multiplexing is how the fronts wait for many connections at once.
const multiplexing = "goroutines"

// nudge has background work looked after without delay.
func (f *fronts) nudge() {
	select {
	case f.nudges <- struct{}{}:
	default:
	}
}

// Run serves until Stop. Listen comes before it.
func (s *Server) Run() {
	s.logReady()
	s.http.serve()
	defer s.http.close() // at the very end, so that /readyz tells of it
	s.tls.start()
	for _, ln := range s.fronts.listeners {
		s.fronts.conns.Go(func() { s.fronts.acceptFrom(ln, s.fronts.serve) })
	}
	w := s.NewWorker()
	for {
		select {
		case <-s.stop:
			s.tls.close()
			s.Lock()
			s.fronts.ending.Store(true)
			s.fronts.drop(s.fronts.listeners)
			s.Unlock()
			s.fronts.end()
			s.tls.end()
			s.finish()
			return
		case <-s.fronts.nudges:
		case <-time.After(w.Tick()):
		}
	}
}
