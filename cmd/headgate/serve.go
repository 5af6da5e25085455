package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	"headgate/server"
	"headgate/server/config"
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
		debug.SetGCPercent(cfg.GCPercent)
		return nil
	}, "loglevel", "gc-percent")
	debug.SetGCPercent(cfg.GCPercent)

	inherited, err := inheritedListeners(p.env)
	if err != nil {
		return err
	}
	manager := newManager(p.env, log)
	signals := make(chan os.Signal, maxPendingSignals)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	srv := server.New(live, server.Options{
		Log: log, Memory: server.MemoryLimit(), SetHeapLimit: heapLimiter(),
		Inherited: inherited.plain, InheritedTLS: inherited.secure, Ready: func() { manager.tell("READY=1") },
	})
	if err := srv.Listen(); err != nil {
		return err
	}
	if err := writePID(cfg.Path(cfg.PidFile)); err != nil {
		return err
	}
	defer removePID(cfg.Path(cfg.PidFile))
	r := &running{srv: srv, live: live, out: out, log: log, manager: manager}
	go r.obeySignals(signals)
	go manager.watch(srv, watchdogPeriod(p.env))
	srv.Load()
	server.GiveBackProgram()
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

// obeySignals ends the server on SIGTERM and SIGINT, unless its data cannot be saved; a second one meanwhile ends the process at
// once. SIGHUP has the configuration file read and the log file opened again.
func (r *running) obeySignals(signals chan os.Signal) {
	var failed chan error // of the shutdown under way, if there is one
	for {
		select {
		case err := <-failed:
			r.log.Error("the server goes on, since its snapshot could not be saved", "err", err)
			r.manager.tell("READY=1")
			failed = nil
		case sig := <-signals:
			switch {
			case sig == syscall.SIGHUP:
				r.manager.tell(reloading())
				r.reload()
				r.manager.tell("READY=1")
			case failed == nil:
				failed = make(chan error, 1)
				go r.shutDown(sig, failed)
			default:
				signal.Reset(sig)
				_ = syscall.Kill(os.Getpid(), sig.(syscall.Signal)) // which now does what it does to any process
			}
		}
	}
}

// shutDown ends the server for a signal, or says why it cannot.
func (r *running) shutDown(sig os.Signal, failed chan<- error) {
	r.log.Info("shutting down", "signal", sig.String())
	r.manager.tell("STOPPING=1")
	how := r.live.Get().OnSigterm
	if sig == syscall.SIGINT {
		how = r.live.Get().OnSigint
	}
	if err := r.srv.Shutdown(how); err != nil {
		failed <- err
	}
}

func (r *running) reload() {
	if err := r.out.reopen(); err != nil {
		r.log.Error("the log file cannot be opened again; logging goes on to the old one", "err", err)
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
		return fmt.Errorf("cannot write the process number: %w; correct --pidfile", err)
	}
	return nil
}

func removePID(path string) {
	if path != "" {
		os.Remove(path)
	}
}
