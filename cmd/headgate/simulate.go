package main

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"headgate/cmd/headgate/simulate"
)

// simulate carries out headgate simulate. The first SIGINT or SIGTERM ends the log and has what was read until then reported, a second one
// ends the process.
func (p program) simulate(args []string) error {
	options, err := simulate.ParseOptions(args, p.stdout)
	if errors.Is(err, simulate.ErrHelp) {
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
	s := simulate.Simulation{Options: options, Stdin: os.Stdin, Stop: &stop}
	if isTerminal(p.stderr) {
		s.Progress = p.stderr
	}
	return s.Run(p.stdout)
}
