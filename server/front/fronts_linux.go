package front

import (
	"net"
	"runtime"
	"sync"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// plainFront serves connections without TLS: event loops, and the listeners that they accept from. The first loop accepts and does the
// background work.
type plainFront struct {
	Loops     []*netpoll.Loop // none before listen; the same from then on
	Listeners []net.Listener  // guarded by the executor's lock once run has begun
}

func (f *plainFront) listen(of *Fronts, open []net.Listener, cfg *config.Config) error {
	var loops []*netpoll.Loop
	for i := range cfg.IOThreads {
		handler := of.handlers.First
		if i > 0 {
			handler = of.handlers.Others
		}
		loop, err := netpoll.NewLoop(handler, of.warnOfAccept)
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
	f.Loops, f.Listeners = loops, open
	f.apply(cfg)
	return nil
}

// listening reports whether listen has been called.
func (f *plainFront) listening() bool { return len(f.Loops) > 0 }

// accept has connections accepted from one more listener. The caller holds the executor's lock.
func (f *plainFront) accept(ln net.Listener, backlog int) error {
	return f.Loops[0].Listen(ln, backlog)
}

// Drop closes listeners. The caller holds the executor's lock.
func (f *plainFront) Drop(list []net.Listener) {
	for _, ln := range list {
		f.Loops[0].Unlisten(ln)
	}
}

// apply takes over the directives that the loops obey. It may be called before there are any.
func (f *plainFront) apply(cfg *config.Config) {
	for _, loop := range f.Loops {
		loop.SetBusyPoll(time.Duration(cfg.BusyPollUs) * time.Microsecond)
		loop.SetKeepAlive(cfg.TCPKeepalive)
	}
}

// Count is how many event loops there are.
func (f *plainFront) Count() int { return len(f.Loops) }

// Watchers are the loops that can look at others' descriptors.
func (f *plainFront) Watchers() []netpoll.Watcher {
	list := make([]netpoll.Watcher, len(f.Loops))
	for i, loop := range f.Loops {
		list[i] = loop
	}
	return list
}

// Multiplexing is how the fronts wait for many connections at once.
const Multiplexing = "epoll"

// traffic returns what was read from clients and written to them.
func (f *plainFront) traffic() (sum netpoll.Traffic) {
	for _, loop := range f.Loops {
		sum.Add(loop.Traffic())
	}
	return sum
}

// Nudge has background work looked after without delay. It needs no lock.
func (f *plainFront) Nudge() {
	if len(f.Loops) > 0 {
		f.Loops[0].Nudge()
	}
}

// run serves until Stop.
func (f *plainFront) run(of *Fronts) {
	go func() {
		<-of.Stopping()
		of.TLS.close()
		for _, loop := range f.Loops {
			loop.Stop()
		}
	}()
	var running sync.WaitGroup
	for _, loop := range f.Loops {
		running.Go(loop.Run)
	}
	running.Wait()
}
