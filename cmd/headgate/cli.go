package main

import (
	"io"
	"os"
	"slices"

	"headgate/cmd/headgate/cli"
)

// cli carries out headgate cli: a command from the arguments, or those of the standard input.
func (p program) cli(args []string) error {
	if slices.Contains(args[:min(len(args), 1)], "--help") {
		_, err := io.WriteString(p.stdout, cli.Help)
		return err
	}
	o, err := cli.ParseOptions(args, p.env)
	if err != nil {
		return err
	}
	c := cli.Client{Options: o, In: os.Stdin, Out: p.stdout}
	return c.Run()
}
