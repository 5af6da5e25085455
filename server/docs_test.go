package server

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:generate go test -run Documented$ -write .

var writeDocs = flag.Bool("write", false, "bring the documents in line with the table of commands")

// commandsMarkdown renders the table of commands, as docs/commands.md holds it: a section for each group, with the commands,
// or the sub-commands of a family, in the order of their names.
func commandsMarkdown() string {
	r := declaredCommands()
	var b strings.Builder
	for _, group := range documentedGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| Command | What it does | Time | Replies | Since |\n|---|---|---|---|---|\n", group.title)
		for _, cmd := range r.top {
			if cmd.Group != group.group {
				continue
			}
			for _, one := range slices.Concat([]*Command{cmd}, cmd.Sub) {
				if one.Handler != nil {
					fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
						strings.ReplaceAll(one.Syntax(), "|", `\|`), one.Summary, one.Complexity, one.Reply, one.Since)
				}
			}
		}
		if group.group == GroupThrottle {
			writeErrors(&b, r)
		}
	}
	return b.String() + "\n"
}

// writeErrors lists the errors of all commands that declare theirs: first what each value that is none is answered with, then the
// others.
func writeErrors(b *strings.Builder, r *registry) {
	b.WriteString("\n### Errors of the limiters\n\nA call that is answered with an error changes nothing. X stands for the argument.\n\n" +
		"| Command | A wrong value of | Error |\n|---|---|---|\n")
	for _, cmd := range r.all {
		if len(cmd.Errors) == 0 {
			continue
		}
		name := strings.ToUpper(strings.ReplaceAll(cmd.fullName, "|", " "))
		for _, arg := range withErrors(cmd.Args) {
			fmt.Fprintf(b, "| `%s` | `%s` | `%s` |\n", name, arg.Name, strings.ReplaceAll(arg.Error, "%s", "X"))
		}
		for _, text := range cmd.Errors {
			if text == errUsage {
				text = fmt.Sprintf(text, strings.ReplaceAll(cmd.Syntax(), "|", `\|`))
			}
			fmt.Fprintf(b, "| `%s` | – | `%s` |\n", name, strings.ReplaceAll(text, "%s", "X"))
		}
		if cmd.Arity != -1 {
			fmt.Fprintf(b, "| `%s` | – | `%s` |\n", name, cmd.arityError)
		}
	}
}

// withErrors lists the arguments, those within others too, that declare their error.
func withErrors(args []Arg) []Arg {
	var found []Arg
	for _, arg := range args {
		if arg.Error != "" {
			found = append(found, arg)
		}
		found = append(found, withErrors(arg.Args)...)
	}
	return found
}

// documentedGroups are the sections, in the order in which a reader wants them.
var documentedGroups = []struct {
	group Group
	title string
}{
	{GroupThrottle, "Limiters"},
	{GroupString, "Strings and counters"},
	{GroupBitmap, "Bit strings"},
	{GroupHash, "Hashes"},
	{GroupList, "Lists"},
	{GroupSet, "Sets"},
	{GroupSortedSet, "Sorted sets"},
	{GroupHyperLogLog, "HyperLogLogs"},
	{GroupStream, "Streams"},
	{GroupGeneric, "Keys"},
	{GroupTransactions, "Transactions"},
	{GroupScripting, "Scripts and functions"},
	{GroupPubSub, "Publish and subscribe"},
	{GroupConnection, "Connection"},
	{GroupServer, "Server"},
}

// TestCommandsDocumented fails when docs/commands.md and the table of commands say different things; go generate mends it.
func TestCommandsDocumented(t *testing.T) {
	const path = "../docs/commands.md"
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	want := replaceBetween(t, string(document), "commands", commandsMarkdown())
	if *writeDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server")
}

// TestGroupsDocumented fails when a command belongs to a group that has no section.
func TestGroupsDocumented(t *testing.T) {
	sections := map[Group]bool{}
	for _, g := range documentedGroups {
		sections[g.group] = true
	}
	for _, cmd := range declaredCommands().all {
		require.True(t, sections[cmd.Group], "%s is in group %q", cmd.fullName, cmd.Group)
	}
}
