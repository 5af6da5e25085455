//go:build !linux

package front

import (
	"net"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// plainFront serves connections without TLS: on systems without epoll, by goroutines for each.
type plainFront struct {
	netFront
	Listeners []net.Listener // guarded by the executor's lock once run has begun
	nudges    chan struct{}
}

func (f *plainFront) listen(of *Fronts, open []net.Listener, cfg *config.Config) error {
	for _, ln := range open {
		if err := setBacklog(ln, cfg.TCPBacklog); err != nil {
			return err
		}
	}
	f.of, f.Listeners, f.nudges = of, open, make(chan struct{}, 1)
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

// Drop closes listeners. The caller holds the executor's lock.
func (f *plainFront) Drop(list []net.Listener) {
	for _, ln := range list {
		ln.Close()
	}
}

// Count is how many event loops there are.
func (f *plainFront) Count() int { return 0 }

// Watchers are the loops that can look at others' descriptors.
func (f *plainFront) Watchers() []netpoll.Watcher {
	return nil
}

// Multiplexing is how the fronts wait for many connections at once.
const Multiplexing = "goroutines"

// Nudge has background work looked after without delay. It needs no lock.
func (f *plainFront) Nudge() {
	select {
	case f.nudges <- struct{}{}:
	default:
	}
}

// run serves until Stop.
func (f *plainFront) run(of *Fronts) {
	for _, ln := range f.Listeners {
		f.conns.Go(func() { f.acceptFrom(ln, f.begin) })
	}
	w := of.handlers.First.NewWorker()
	for {
		select {
		case <-of.Stopping():
			of.TLS.close()
			of.Lock()
			f.ending.Store(true)
			f.Drop(f.Listeners)
			of.Unlock()
			f.end()
			return
		case <-f.nudges:
		case <-time.After(w.Tick()):
		}
	}
}
