package main

import (
	"errors"
	"fmt"
	"os"

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
	if notice := options.Notice(); notice != "" {
		fmt.Fprintln(p.stderr, "headgate:", notice)
	}
	stop, forget := stopAtSignal()
	defer forget()
	s := simulate.Simulation{Options: options, Stdin: os.Stdin, Stop: stop}
	if isTerminal(p.stderr) {
		s.Progress = p.stderr
	}
	return s.Run(p.stdout)
}
