package main

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"headgate/cmd/headgate/bench"
)

// bench carries out headgate bench. The first SIGINT or SIGTERM ends the load and has what was measured printed, a second one ends the
// process.
func (p program) bench(args []string) error {
	options, err := bench.ParseOptions(args, p.env, p.stdout)
	if errors.Is(err, bench.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	var stop atomic.Bool
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		<-signals
		stop.Store(true)
		signal.Stop(signals)
	}()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	b := bench.Bench{Options: options, Program: program, Stop: &stop}
	if isTerminal(p.stderr) {
		b.Progress = p.stderr
	}
	return b.Run(p.stdout)
}
