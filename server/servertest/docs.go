package servertest

import (
	"flag"
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"

	"github.com/stretchr/testify/require"
)

// DeclaredCommands returns the table of all commands.
func DeclaredCommands() *command.Registry {
	s := server.New(config.NewLive(Unsaved()), server.Options{})
	s.Keys.Close()
	return s.Commands
}

// ReplaceBetween puts a text between the marks of that name in a document.
func ReplaceBetween(t *testing.T, document, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	require.True(t, found && closed, "the document lacks %s:begin or %s:end", name, name)
	return before + begin + text + end + after
}

var WriteDocs = flag.Bool("write", false, "bring the documents in line with the table of commands")

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
