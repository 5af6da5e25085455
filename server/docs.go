package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:generate go test -run ^TestCommandsDocumented$ -write .

// Marks between which a document holds the table of commands.
const (
	docsBegin = "<!-- commands:begin -->\n"
	docsEnd   = "<!-- commands:end -->"
)

// CommandsMarkdown renders the table of commands, as docs/commands.md holds it: a section for each group, with the commands,
// or the sub-commands of a family, in the order of their names.
func CommandsMarkdown() string {
	r := newRegistry(commandGroups()...)
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
	}
	return b.String() + "\n"
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
	{GroupSortedSet, "Sorted sets"},
	{GroupHyperLogLog, "HyperLogLogs"},
	{GroupGeneric, "Keys"},
	{GroupTransactions, "Transactions"},
	{GroupScripting, "Scripts and functions"},
	{GroupPubSub, "Publish and subscribe"},
	{GroupConnection, "Connection"},
	{GroupServer, "Server"},
}

// errNoMarks says that a document has no place for the table.
var errNoMarks = errors.New("server: no commands:begin and commands:end in the document")

// ReplaceCommands returns a document with the table of commands put between its two marks.
func ReplaceCommands(document string) (string, error) {
	before, rest, found := strings.Cut(document, docsBegin)
	_, after, closed := strings.Cut(rest, docsEnd)
	if !found || !closed {
		return "", errNoMarks
	}
	return before + docsBegin + CommandsMarkdown() + docsEnd + after, nil
}
