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
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: out}))
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
		Inherited: inherited, Ready: func() { manager.tell("READY=1") },
	})
	if err := srv.Listen(); err != nil {
		return err
	}
	if err := writePID(cfg.Path(cfg.PidFile)); err != nil {
		return err
	}
	defer removePID(cfg.Path(cfg.PidFile))
	go obeySignals(signals, srv, out, log, manager)
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

// obeySignals ends the server on SIGTERM and SIGINT, unless its data cannot be saved; a second one meanwhile ends the process at
// once. SIGHUP has the configuration file
// read and the log file opened again.
func obeySignals(signals chan os.Signal, srv *server.Server, out *logOutput, log *slog.Logger, manager manager) {
	for sig := range signals {
		if sig != syscall.SIGHUP {
			log.Info("shutting down", "signal", sig.String())
			signal.Stop(signals)
			manager.tell("STOPPING=1")
			if err := srv.Shutdown(); err != nil {
				log.Error("the server goes on, since its snapshot could not be saved", "err", err)
				signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
				continue
			}
			return
		}
		if err := out.reopen(); err != nil {
			log.Error("the log file cannot be opened again; logging goes on to the old one", "err", err)
		}
		notices, err := srv.Reload()
		if err != nil {
			log.Error("the configuration stays as it was", "err", err)
			continue
		}
		for _, n := range notices {
			log.Warn(n.String())
		}
		log.Info("the configuration file was read again")
	}
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
