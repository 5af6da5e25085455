package server_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

//go:generate go test -run Documented$ -write .

// commandsMarkdown renders the table of commands, as docs/commands.md holds it: a section for each group, with the commands,
// or the sub-commands of a family, in the order of their names.
func commandsMarkdown() string {
	r := servertest.DeclaredCommands()
	var b strings.Builder
	for _, group := range documentedGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| Command | What it does | Time | Replies | Since |\n|---|---|---|---|---|\n", group.title)
		for _, cmd := range r.Top {
			if cmd.Group != group.group {
				continue
			}
			for _, one := range slices.Concat([]*command.Command{cmd}, cmd.Sub) {
				if one.Handler != nil {
					fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
						strings.ReplaceAll(one.Syntax(), "|", `\|`), one.Summary, one.Complexity, one.Reply, one.Since)
				}
			}
		}
		if group.group == command.GroupThrottle {
			writeErrors(&b, r)
		}
	}
	return b.String() + "\n"
}

// writeErrors lists the errors of all commands that declare theirs: first what each value that is none is answered with, then the
// others.
func writeErrors(b *strings.Builder, r *command.Registry) {
	b.WriteString("\n### Errors of the limiters\n\nA call that is answered with an error changes nothing. X stands for the argument.\n\n" +
		"| Command | A wrong value of | Error |\n|---|---|---|\n")
	for _, cmd := range r.All {
		if len(cmd.Errors) == 0 {
			continue
		}
		name := strings.ToUpper(strings.ReplaceAll(cmd.FullName, "|", " "))
		for _, arg := range servertest.WithErrors(cmd.Args) {
			fmt.Fprintf(b, "| `%s` | `%s` | `%s` |\n", name, arg.Name, strings.ReplaceAll(arg.Error, "%s", "X"))
		}
		for _, text := range cmd.Errors {
			if text == command.ErrUsage {
				text = fmt.Sprintf(text, cmd.Syntax())
			}
			fmt.Fprintf(b, "| `%s` | – | `%s` |\n", name, strings.NewReplacer("%s", "X", "|", `\|`).Replace(text))
		}
		if cmd.Arity != -1 {
			fmt.Fprintf(b, "| `%s` | – | `%s` |\n", name, strings.ReplaceAll(cmd.ArityError, "|", `\|`))
		}
	}
}

// documentedGroups are the sections, in the order in which a reader wants them.
var documentedGroups = []struct {
	group command.Group
	title string
}{
	{command.GroupThrottle, "Limiters"},
	{command.GroupString, "Strings and counters"},
	{command.GroupBitmap, "Bit strings"},
	{command.GroupHash, "Hashes"},
	{command.GroupList, "Lists"},
	{command.GroupSet, "Sets"},
	{command.GroupSortedSet, "Sorted sets"},
	{command.GroupHyperLogLog, "HyperLogLogs"},
	{command.GroupStream, "Streams"},
	{command.GroupGeneric, "Keys"},
	{command.GroupTransactions, "Transactions"},
	{command.GroupScripting, "Scripts and functions"},
	{command.GroupPubSub, "Publish and subscribe"},
	{command.GroupConnection, "Connection"},
	{command.GroupServer, "Server"},
}

// TestCommandsDocumented fails when docs/commands.md and the table of commands say different things; go generate mends it.
func TestCommandsDocumented(t *testing.T) {
	const path = "../docs/commands.md"
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	want := servertest.ReplaceBetween(t, string(document), "commands", commandsMarkdown())
	if *servertest.WriteDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server")
}

// TestGroupsDocumented fails when a command belongs to a group that has no section.
func TestGroupsDocumented(t *testing.T) {
	sections := map[command.Group]bool{}
	for _, g := range documentedGroups {
		sections[g.group] = true
	}
	for _, cmd := range servertest.DeclaredCommands().All {
		require.True(t, sections[cmd.Group], "%s is in group %q", cmd.FullName, cmd.Group)
	}
}
