package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"headgate/server"
	"headgate/server/config"
)

// maxPendingSignals is how many signals may wait for the one at work; a SIGHUP more than that is as good as lost in the others.
const maxPendingSignals = 8

// running is a server that runs, with what signals do to it.
type running struct {
	srv     *server.Server
	live    *config.Live
	out     *logOutput
	log     *slog.Logger
	manager *manager
}

// repeatGrace is for how long after a signal another one adds nothing: programs such as timeout(1) send one to the process and one to its group.
const repeatGrace = time.Second

// insistPatience is how long a shutdown may take after one that failed.
const insistPatience = 5 * time.Second

// ending is how far a server has got that signals are to end. Its zero value is a server that runs.
type ending struct {
	began    time.Time // when the last shutdown began
	underWay bool
	failed   bool // a shutdown has failed before
}

// step is what a signal has done.
type step int

const (
	stepNone     step = iota
	stepShutDown      // the server ends, unless its data cannot be saved
	stepInsist        // the server ends even so, within insistPatience
	stepAtOnce        // the process ends, whatever it is doing
)

// signal takes SIGTERM or SIGINT. While a shutdown is under way only SIGINT, which somebody at a keyboard sends, ends the process at once, as in
// Redis: a second SIGTERM comes from a supervisor that has more patience than the data have copies.
func (e *ending) signal(sig os.Signal, now time.Time) step {
	switch {
	case (e.underWay || e.failed) && now.Sub(e.began) < repeatGrace:
		return stepNone
	case e.underWay && sig == syscall.SIGINT:
		return stepAtOnce
	case e.underWay:
		return stepNone
	}
	e.began, e.underWay = now, true
	if e.failed {
		return stepInsist
	}
	return stepShutDown
}

// hasFailed notes that the data could not be saved, and that the server keeps running.
func (e *ending) hasFailed() { e.underWay, e.failed = false, true }

// obeySignals ends the server on SIGTERM and SIGINT. SIGHUP has the configuration file read and the log file opened again. It never waits for
// anything: the server's lock, the log and the disk may all be blocked when somebody insists.
func (r *running) obeySignals(signals chan os.Signal) {
	reloads := make(chan struct{}, 1)
	go r.obeyReloads(reloads)
	failed := make(chan struct{}, 1)
	var e ending
	for {
		select {
		case <-failed:
			e.hasFailed()
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				select {
				case reloads <- struct{}{}:
				default: // one that has not begun will do for this as well
				}
				continue
			}
			switch e.signal(sig, time.Now()) {
			case stepAtOnce:
				endAtOnce(sig)
			case stepShutDown:
				go r.shutDown(sig, false, failed)
			case stepInsist:
				time.AfterFunc(insistPatience, func() { endAtOnce(sig) })
				go r.shutDown(sig, true, failed)
			}
		}
	}
}

// endAtOnce has a signal do what it does to a process that does not handle it.
func endAtOnce(sig os.Signal) {
	signal.Reset(sig)
	kill(sig)
}

// shutDown ends the server for a signal, or says why it cannot. It insists on ending if there is no saving.
func (r *running) shutDown(sig os.Signal, insist bool, failed chan<- struct{}) {
	r.log.Info("shutting down", "signal", sig.String())
	r.manager.tell("STOPPING=1")
	how := r.live.Get().OnSigterm
	if sig == syscall.SIGINT {
		how = r.live.Get().OnSigint
	}
	if insist {
		how |= config.ShutdownForce
	}
	if err := r.srv.Shutdown(how); err != nil {
		failed <- struct{}{}
		r.log.Error("the server keeps running, because its data could not be saved; the next signal ends it anyway", "err", err)
		r.manager.tellChange(readyState)
	}
}

// obeyReloads reads the configuration anew whenever it is asked to.
func (r *running) obeyReloads(asked <-chan struct{}) {
	for range asked {
		r.manager.tellChange(reloading())
		r.reload()
		r.manager.tellChange(readyState)
	}
}

func (r *running) reload() {
	if err := r.out.reopen(); err != nil {
		r.log.Error("the log file cannot be reopened; logging continues to the old one", "err", err)
	}
	notices, err := r.srv.Reload()
	if err != nil {
		r.log.Error("the configuration stays as it was", "err", err)
		return
	}
	for _, n := range notices {
		r.log.Warn(n.String())
	}
	r.log.Info("the configuration was read again")
}

// stopAtSignal returns what becomes true at the first SIGINT or SIGTERM. A second one ends the process, as does any after forget.
func stopAtSignal() (stop *atomic.Bool, forget func()) {
	ctx, forget := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	stop = new(atomic.Bool)
	context.AfterFunc(ctx, func() {
		stop.Store(true)
		forget()
	})
	return stop, forget
}
