package servertest

import (
	"strings"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
)

// DeclaredCommands returns the table of all commands, of a server that does nothing.
func DeclaredCommands() *command.Registry {
	s := server.New(config.NewLive(Unsaved()), server.Options{})
	s.Keys.Close()
	return s.Commands
}

// AnyCall is a command line of the right length for a command.
func AnyCall(cmd *command.Command) []string {
	words := strings.Split(cmd.FullName, "|")
	for len(words) < max(cmd.Arity, -cmd.Arity) {
		words = append(words, "1")
	}
	return words
}

// WithErrors lists the arguments, those within others too, that declare their error.
func WithErrors(args []command.Arg) []command.Arg {
	var found []command.Arg
	for _, arg := range args {
		if arg.Error != "" {
			found = append(found, arg)
		}
		found = append(found, WithErrors(arg.Args)...)
	}
	return found
}
