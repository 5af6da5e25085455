// Package syntax reads how commands are written, as a server tells it by COMMAND DOCS, and draws calls that are written so.
package syntax

import (
	"slices"
	"strings"

	"headgate/tests/internal/harness"
)

// Argument is one argument of a command.
type Argument struct {
	Name, Kind, Token                 string
	Optional, Multiple, MultipleToken bool
	Parts                             []Argument
}

// Command is one command that is not a container.
type Command struct {
	Words []string // its name, or its container's and its own
	Group string
	Args  []Argument
}

// Name returns the command's full name, as in "config|get".
func (c Command) Name() string { return strings.Join(c.Words, "|") }

// Read asks a server for its commands, sorted by name. Deprecated internals of Redis are left out.
func Read(client *harness.Client) []Command {
	var found []Command
	docs := client.Ask("COMMAND", "DOCS")
	for i := 0; i+1 < len(docs.Items); i += 2 {
		fields := pairs(docs.Items[i+1])
		if slices.Contains(fields["doc_flags"].Strings(), "syscmd") {
			continue
		}
		name, group := docs.Items[i].Text, fields["group"].Text
		subcommands, isContainer := fields["subcommands"]
		for j := 0; j+1 < len(subcommands.Items); j += 2 {
			_, own, _ := strings.Cut(subcommands.Items[j].Text, "|")
			found = append(found, Command{[]string{name, own}, group, arguments(pairs(subcommands.Items[j+1])["arguments"])})
		}
		if !isContainer {
			found = append(found, Command{[]string{name}, group, arguments(fields["arguments"])})
		}
	}
	slices.SortFunc(found, func(a, b Command) int { return slices.Compare(a.Words, b.Words) })
	return found
}

// pairs reads a map from a reply in RESP2 or RESP3.
func pairs(v harness.Value) map[string]harness.Value {
	m := make(map[string]harness.Value, len(v.Items)/2)
	for i := 0; i+1 < len(v.Items); i += 2 {
		m[v.Items[i].Text] = v.Items[i+1]
	}
	return m
}

func arguments(v harness.Value) []Argument {
	args := make([]Argument, 0, len(v.Items))
	for _, item := range v.Items {
		fields := pairs(item)
		flags := fields["flags"].Strings()
		args = append(args, Argument{
			Name: fields["name"].Text, Kind: fields["type"].Text, Token: fields["token"].Text,
			Optional: slices.Contains(flags, "optional"), Multiple: slices.Contains(flags, "multiple"),
			MultipleToken: slices.Contains(flags, "multiple_token"), Parts: arguments(fields["arguments"]),
		})
	}
	return args
}
