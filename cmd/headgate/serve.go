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
	"headgate/server/host"
)

// serve runs the server until a signal or SHUTDOWN ends it.
func (p program) serve(args []string) error {
	signals := make(chan os.Signal, maxPendingSignals)
	signal.Notify(signals, syscall.SIGHUP) // first of all: it would end the process
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
	program := host.FindProgram()
	freeMemory := func() {
		debug.FreeOSMemory()
		program.GiveBack()
	}
	srv := server.New(live, server.Options{
		Log: log, Memory: host.MemoryLimit(), SetHeapLimit: heapLimiter(), FreeMemory: freeMemory,
		SetGCPercent: func(percent int) { debug.SetGCPercent(percent) },
		Inherited:    inherited.plain, InheritedTLS: inherited.secure, Ready: manager.tellReady,
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
	program.GiveBack()
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

// writePID writes the process's number to a file; an empty path means none.
func writePID(path string) error {
	if path == "" {
		return nil
	}
	return unusablePID(os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644))
}

// unusablePID is the error for a file that the process's number cannot be written to; nil for none.
func unusablePID(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write the process id: %w; correct --pidfile", err)
}

// removePID removes the file that writePID has written. A device such as /dev/null stays.
func removePID(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		os.Remove(path)
	}
}
