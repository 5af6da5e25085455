package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/host"
)

// serve runs the server until a signal or SHUTDOWN ends it.
func (p program) serve(args []string) error {
	live, notices, err := config.Load(args, p.env, config.OSHost())
	if err != nil {
		return err
	}
	cfg := live.Get()
	if err := os.Chdir(cfg.Dir); err != nil {
		return fmt.Errorf("cannot enter the directory %s: %w; correct --dir", cfg.Dir, err)
	}
	out, err := openLog(cfg, p.stderr)
	if err != nil {
		return err
	}
	defer out.Close()
	log := slog.New(out.handler(cfg.LogFormat))
	for _, n := range notices {
		log.Warn(n.String())
	}
	live.OnChange(func(_, cfg *config.Config) error {
		out.setLevel(cfg.LogLevel)
		return nil
	}, "loglevel")
	debug.SetGCPercent(cfg.GCPercent)

	inherited, err := inheritedListeners(p.env)
	if err != nil {
		return err
	}
	manager := newManager(p.env, log)
	signals := make(chan os.Signal, maxPendingSignals)
	signal.Notify(signals, syscall.SIGHUP)
	srv := server.New(live, server.Options{
		Log: log, Memory: host.MemoryLimit(), SetHeapLimit: heapLimiter(), FreeMemory: debug.FreeOSMemory,
		SetGCPercent: func(percent int) { debug.SetGCPercent(percent) },
		Inherited:    inherited.plain, InheritedTLS: inherited.secure, Ready: func() { manager.tell("READY=1") },
	})
	if err := srv.Listen(); err != nil {
		return err
	}
	if err := writePID(cfg.Path(cfg.PidFile)); err != nil {
		return err
	}
	defer removePID(cfg.Path(cfg.PidFile))
	r := &running{srv: srv, live: live, out: out, log: log, manager: manager}
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT) // until here, they end the process at once
	go r.obeySignals(signals)
	go manager.watch(srv, watchdogPeriod(p.env))
	srv.Load()
	host.GiveBackProgram()
	srv.Run()
	log.Info("headgate has ended")
	return nil
}

// heapLimiter returns what bounds the Go heap, unless the environment does.
func heapLimiter() func(bytes int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return func(bytes int64) { debug.SetMemoryLimit(bytes) }
}

// maxPendingSignals is how many signals may wait for the one at work; a SIGHUP more than that is as good as lost in the others.
const maxPendingSignals = 8

// running is a server that runs, with what signals do to it.
type running struct {
	srv     *server.Server
	live    *config.Live
	out     *logOutput
	log     *slog.Logger
	manager manager
}

// insistPatience is how long a shutdown may take after one that failed.
const insistPatience = 5 * time.Second

// obeySignals ends the server on SIGTERM and SIGINT, unless its data cannot be saved; a second one meanwhile ends the process at
// once, and one after that ends it in any case. SIGHUP has the configuration file read and the log file opened again. It never waits for
// anything: the server's lock, the log and the disk may all be blocked when somebody insists.
func (r *running) obeySignals(signals chan os.Signal) {
	reloads := make(chan struct{}, 1)
	go r.obeyReloads(reloads)
	failed := make(chan struct{}, 1)
	ending, before := false, false // a shutdown is under way, one has failed before
	for {
		select {
		case <-failed:
			ending, before = false, true
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
				select {
				case reloads <- struct{}{}:
				default: // one that has not begun will do for this as well
				}
			case ending:
				endAtOnce(sig)
			default:
				if before {
					time.AfterFunc(insistPatience, func() { endAtOnce(sig) })
				}
				ending = true
				go r.shutDown(sig, before, failed)
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
		r.log.Error("the server keeps running, because its snapshot could not be saved; a second signal ends it anyway", "err", err)
		r.manager.tell("READY=1")
	}
}

// obeyReloads reads the configuration anew whenever it is asked to.
func (r *running) obeyReloads(asked <-chan struct{}) {
	for range asked {
		r.manager.tell(reloading())
		r.reload()
		r.manager.tell("READY=1")
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
	r.log.Info("the configuration file was read again")
}

// writePID writes the process's number to a file; an empty path means none.
func writePID(path string) error {
	if path == "" {
		return nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write the process id: %w; correct --pidfile", err)
	}
	return nil
}

func removePID(path string) {
	if path != "" {
		os.Remove(path)
	}
}
