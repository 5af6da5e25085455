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

// commandsMarkdown renders the commands, as docs/commands.md holds them: a chapter for each group, with the commands, or the sub-commands
// of a family, in the order of their names. Commands that Redis has not have a section each, Redis's own a row of a table.
func commandsMarkdown(t *testing.T) string {
	r := servertest.DeclaredCommands()
	examples := readExamples(t)
	var b strings.Builder
	for _, group := range documentedGroups {
		fmt.Fprintf(&b, "\n## %s\n", group.title)
		commands := commandsOf(r, group.group)
		if group.group == command.GroupThrottle {
			writeOverview(&b, commands)
			for _, cmd := range commands {
				writeSection(t, &b, cmd, examplesOf(cmd, examples))
				delete(examples, nameOf(cmd))
			}
			continue
		}
		b.WriteString("\n| Command | What it does | Time | Replies | Since |\n|---|---|---|---|---|\n")
		for _, cmd := range commands {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", escaped(cmd.Syntax()), cmd.Summary, cmd.Complexity, cmd.Reply, cmd.Since)
		}
		for _, cmd := range commands {
			if len(cmd.Errors) > 0 {
				fmt.Fprintf(&b, "\n`%s`. ", nameOf(cmd))
				writeErrors(&b, cmd)
			}
		}
	}
	require.Empty(t, examples, "examples of commands that there are not")
	return b.String() + "\n"
}

// commandsOf lists the commands of a group that have a handler.
func commandsOf(r *command.Registry, group command.Group) (list []*command.Command) {
	for _, cmd := range r.Top {
		for _, one := range slices.Concat([]*command.Command{cmd}, cmd.Sub) {
			if cmd.Group == group && one.Handler != nil {
				list = append(list, one)
			}
		}
	}
	return list
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
	want := servertest.ReplaceBetween(t, string(document), "commands", commandsMarkdown(t))
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
