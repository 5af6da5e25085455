package main

import (
	"errors"
	"os"

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
	stop, forget := stopAtSignal()
	defer forget()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	b := bench.Bench{Options: options, Program: program, Stop: stop}
	if isTerminal(p.stderr) {
		b.Progress = p.stderr
	}
	return b.Run(p.stdout)
}
