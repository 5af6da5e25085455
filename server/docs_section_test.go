package server_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/internal/quoting"
	"headgate/internal/reply"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// nameOf is a command's name as documents write it: RL.POLICY SET.
func nameOf(cmd *command.Command) string {
	return strings.ToUpper(strings.ReplaceAll(cmd.FullName, "|", " "))
}

// escaped is a text for a cell of a table.
func escaped(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// writeOverview lists commands with links to their sections.
func writeOverview(b *strings.Builder, commands []*command.Command) {
	b.WriteString("\n| Command | What it does |\n|---|---|\n")
	for _, cmd := range commands {
		anchor := strings.ToLower(strings.NewReplacer(".", "", " ", "-").Replace(nameOf(cmd)))
		fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", nameOf(cmd), anchor, cmd.Summary)
	}
	b.WriteString("\n[Arguments and replies](arguments.md) explains durations, limits, costs and the five numbers. A call that returns an error changes\n" +
		"nothing. In errors, X stands for the argument.\n")
}

// examplesOf returns the calls that show a command: those of testdata/examples.txt, or two of the example that its algorithm declares.
func examplesOf(cmd *command.Command, examples map[string][]string) []string {
	if calls := examples[nameOf(cmd)]; calls != nil {
		return calls
	}
	for _, a := range limiter.Standard.All() {
		if nameOf(cmd) == "RL."+a.Name && !a.PolicyOnly {
			call := nameOf(cmd) + " user:42 " + a.Example
			return []string{call, call}
		}
	}
	return nil
}

// writeSection is the reference of one command.
func writeSection(t *testing.T, b *strings.Builder, cmd *command.Command, calls []string) {
	require.NotEmpty(t, cmd.Returns, "%s does not declare what it returns", cmd.FullName)
	require.NotEmpty(t, calls, "testdata/examples.txt has none of %s", nameOf(cmd))
	fmt.Fprintf(b, "\n### %s\n\n```text\n%s\n```\n\n%s\n", nameOf(cmd), cmd.Syntax(), cmd.Summary)
	if len(cmd.Args) > 0 {
		b.WriteString("\n| Argument | Meaning |\n|---|---|\n" + distinct(argRows(t, cmd, cmd.Args)))
	}
	fmt.Fprintf(b, "\n**Reply** (%s):\n\n", cmd.Reply)
	for i, text := range cmd.Returns {
		mark := "-"
		if cmd.Reply == command.ReplyArray && len(cmd.Returns) > 1 {
			mark = strconv.Itoa(i+1) + "."
		}
		fmt.Fprintf(b, "%s %s\n", mark, text)
	}
	b.WriteString("\n")
	writeErrors(b, cmd)
	fmt.Fprintf(b, "\n**Time** %s · **ACL categories** %s · **Since** %s\n", cmd.Complexity, categoriesOf(cmd), cmd.Since)
	b.WriteString("\n```console\n" + transcriptOf(t, calls) + "```\n")
}

// longestArg is how long an argument's syntax may be in the table of arguments; of a longer one there is its name.
const longestArg = 60

// argRows has a row for each argument, and for what a choice is between unless the choice itself says what it means.
func argRows(t *testing.T, cmd *command.Command, args []command.Arg) (rows []string) {
	for _, arg := range args {
		switch {
		case arg.Summary != "":
			alone := command.Command{Args: []command.Arg{arg}}
			shown := strings.TrimSpace(alone.Syntax())
			if len(shown) > longestArg {
				shown = arg.Name
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", escaped(shown), escaped(arg.Summary)))
		case arg.Type == "pure-token": // the first word of a choice, which is explained by what follows it
		default:
			require.NotEmpty(t, arg.Args, "%s does not say what %s means", cmd.FullName, arg.Name)
			rows = append(rows, argRows(t, cmd, arg.Args)...)
		}
	}
	return rows
}

// distinct joins rows, each of which stands there once: the forms of a command may have arguments in common.
func distinct(rows []string) string {
	var b strings.Builder
	for i, row := range rows {
		if !slices.Contains(rows[:i], row) {
			b.WriteString(row)
		}
	}
	return b.String()
}

func categoriesOf(cmd *command.Command) string {
	names := cmd.AllCategories().Names()
	for i, name := range names {
		names[i] = "`@" + name + "`"
	}
	return strings.Join(names, " ")
}

// writeErrors lists a command's errors: first what a wrong value of each argument is answered with, then the others.
func writeErrors(b *strings.Builder, cmd *command.Command) {
	var rows []string
	for _, arg := range servertest.WithErrors(cmd.Args) {
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` |\n", arg.Name, escaped(strings.ReplaceAll(arg.Error, "%s", "X"))))
	}
	b.WriteString("**Errors**:\n\n| A wrong value of | Error |\n|---|---|\n" + distinct(rows))
	for _, text := range cmd.Errors {
		if text == command.ErrUsage {
			text = fmt.Sprintf(text, cmd.Syntax())
		}
		fmt.Fprintf(b, "| – | `%s` |\n", escaped(strings.ReplaceAll(text, "%s", "X")))
	}
	if cmd.Arity != -1 {
		fmt.Fprintf(b, "| – | `%s` |\n", escaped(cmd.ArityError))
	}
}

// readExamples reads the calls that the sections show, by command.
func readExamples(t *testing.T) map[string][]string {
	text, err := os.ReadFile("testdata/examples.txt")
	require.NoError(t, err)
	examples, name := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "== "); ok {
			name = heading
			require.Empty(t, examples[name], "%s stands there twice", name)
		} else if line != "" && name != "" {
			examples[name] = append(examples[name], line)
		}
	}
	return examples
}

// transcriptOf makes the calls on a server of their own, whose clock stands still, and shows them as redis-cli does.
func transcriptOf(t *testing.T, calls []string) string {
	w := servertest.NewClockClient(t)
	var b strings.Builder
	for _, line := range calls {
		if pause, ok := strings.CutPrefix(line, "+"); ok {
			ms, err := strconv.ParseInt(pause, 10, 64)
			require.NoError(t, err)
			w.Now += ms * 1e6
			fmt.Fprintf(&b, "# %s s later\n", strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64))
			continue
		}
		words, err := quoting.Split(line)
		require.NoError(t, err)
		v, err := reply.Read(bufio.NewReader(strings.NewReader(string(w.Run(servertest.EncodeCommand(words...))))))
		require.NoError(t, err, line)
		b.WriteString("127.0.0.1:6379> " + line + "\n" + v.Pretty())
	}
	return b.String()
}
