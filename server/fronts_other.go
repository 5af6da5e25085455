//go:build !linux

package server

import (
	"net"
	"time"

	"headgate/server/config"
)

// plainFront serves connections without TLS: on systems without epoll, by goroutines for each.
type plainFront struct {
	netFront
	listeners []net.Listener // guarded by the executor's lock once run has begun
	nudges    chan struct{}
}

func (f *plainFront) listen(of *Fronts, open []net.Listener, cfg *config.Config) error {
	for _, ln := range open {
		if err := setBacklog(ln, cfg.TCPBacklog); err != nil {
			return err
		}
	}
	f.of, f.listeners, f.nudges = of, open, make(chan struct{}, 1)
	return nil
}

// listening reports whether listen has been called.
func (f *plainFront) listening() bool { return f.nudges != nil }

// accept has connections accepted from one more listener.
func (f *plainFront) accept(ln net.Listener, backlog int) error {
	if f.ending.Load() {
		return net.ErrClosed
	}
	if err := setBacklog(ln, backlog); err != nil {
		return err
	}
	f.conns.Go(func() { f.acceptFrom(ln, f.begin) })
	return nil
}

// begin serves a connection on a goroutine of its own.
func (f *plainFront) begin(conn net.Conn) {
	f.conns.Go(func() { f.serve(conn) })
}

// drop closes listeners.
func (f *plainFront) drop(list []net.Listener) {
	for _, ln := range list {
		ln.Close()
	}
}

func (f *plainFront) count() int { return 0 }

// multiplexing is how the fronts wait for many connections at once.
const multiplexing = "goroutines"

// nudge has background work looked after without delay.
func (f *plainFront) nudge() {
	select {
	case f.nudges <- struct{}{}:
	default:
	}
}

// run serves until Stop.
func (f *plainFront) run(of *Fronts) {
	for _, ln := range f.listeners {
		f.conns.Go(func() { f.acceptFrom(ln, f.begin) })
	}
	w := of.handler.NewWorker()
	for {
		select {
		case <-of.Stopping():
			of.tls.close()
			of.Lock()
			f.ending.Store(true)
			f.drop(f.listeners)
			of.Unlock()
			f.end()
			return
		case <-f.nudges:
		case <-time.After(w.Tick()):
		}
	}
}
