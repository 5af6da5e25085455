package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"headgate/internal/spelling"
	"headgate/server/command"
	"headgate/server/limits"
	"headgate/server/report"
	"headgate/server/types"
)

// catalogue has the commands that the prompt helps with: headgate's own, and those of Redis's types.
type catalogue struct {
	list []*command.Command // that can be called, in the order of their names
}

func newCatalogue() *catalogue {
	c := &catalogue{}
	table := command.NewRegistry(append(types.Declarations(), (*limits.Limits)(nil).Declarations(), own((*report.Reports)(nil).Declarations()))...)
	for _, cmd := range table.All {
		if cmd.Handler != nil {
			c.list = append(c.list, cmd)
		}
	}
	slices.SortFunc(c.list, func(a, b *command.Command) int { return strings.Compare(a.FullName, b.FullName) })
	return c
}

// own returns the commands that Redis does not have.
func own(list []*command.Command) []*command.Command {
	return slices.DeleteFunc(slices.Clone(list), func(cmd *command.Command) bool { return !strings.HasPrefix(cmd.Name, "rl.") })
}

// nameOf is a command's name as it is typed.
func nameOf(cmd *command.Command) string {
	return strings.ToUpper(strings.ReplaceAll(cmd.FullName, "|", " "))
}

// find returns the command that some words begin with the name of, or nil.
func (c *catalogue) find(words []string) (found *command.Command) {
	for _, cmd := range c.list {
		name := strings.Fields(nameOf(cmd))
		if len(words) >= len(name) && slices.EqualFunc(name, words[:len(name)], strings.EqualFold) {
			found = cmd
		}
	}
	return found
}

// beginning lists the commands whose names begin so, in any case.
func (c *catalogue) beginning(text string) (list []*command.Command) {
	for _, cmd := range c.list {
		if strings.HasPrefix(nameOf(cmd), strings.ToUpper(text)) {
			list = append(list, cmd)
		}
	}
	return list
}

// complete answers TAB: a name is completed as far as it is certain; behind one, or where there are several, it is shown what they are called with.
func (c *catalogue) complete(out io.Writer, line string, at int, key rune) (newLine string, newAt int, ok bool) {
	if key != '\t' {
		return "", 0, false
	}
	if cmd := c.find(strings.Fields(line)); cmd != nil {
		fmt.Fprintf(out, "%s\n", cmd.Syntax())
		return line, at, true
	}
	list := c.beginning(line[:at])
	if len(list) == 0 {
		return line, at, true
	}
	common := nameOf(list[0])
	for _, cmd := range list[1:] {
		name := nameOf(cmd)
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	switch {
	case len(list) == 1:
		common += " "
	case len(common) == at:
		for _, cmd := range list {
			fmt.Fprintf(out, "%s\n", cmd.Syntax())
		}
	}
	return common + line[at:], len(common), true
}

// help explains a command, or says how to have one explained.
func (c *catalogue) help(words []string) string {
	if len(words) == 0 {
		return helpOfHelp
	}
	text, near := c.explain(words)
	if text != "" {
		return text
	}
	advice := ""
	if near != "" {
		advice = "; did you mean " + near + "?"
	}
	return fmt.Sprintf("no command %q is explained here%s\n%s", strings.Join(words, " "), advice, helpOfHelp)
}

const helpOfHelp = "help COMMAND explains a command, such as help RL.GCRA: headgate's own, and those of Redis's types. TAB completes names.\n"

// Explain explains the command that some words name, or lists those whose names begin so. If text is empty, there are none, and near is the
// command that the words most likely mean, if one is close.
func Explain(words []string) (text, near string) { return newCatalogue().explain(words) }

func (c *catalogue) explain(words []string) (text, near string) {
	var b strings.Builder
	cmd := c.find(words)
	if cmd == nil {
		name := strings.Join(words, " ")
		for _, cmd := range c.beginning(name) {
			fmt.Fprintf(&b, "%s\n", cmd.Syntax())
		}
		return b.String(), c.near(name)
	}
	fmt.Fprintf(&b, "%s\n%s\n", cmd.Syntax(), cmd.Summary)
	writeArgs(&b, cmd.Args)
	for i, text := range cmd.Returns {
		if i == 0 {
			b.WriteString("Returns:\n")
		}
		fmt.Fprintf(&b, "  %s\n", text)
	}
	return b.String(), ""
}

// near is the command that a mistyped name most likely means, or empty.
func (c *catalogue) near(name string) string {
	var names []string
	for _, cmd := range c.list {
		names = append(names, nameOf(cmd))
	}
	return spelling.Nearest(strings.ToUpper(name), names...)
}

// writeArgs explains arguments that say what they mean.
func writeArgs(b *strings.Builder, args []command.Arg) {
	for _, arg := range args {
		if arg.Summary == "" {
			writeArgs(b, arg.Args)
			continue
		}
		name := arg.Name
		if arg.Token != "" && arg.Type != "pure-token" {
			name = arg.Token + " " + name
		} else if arg.Token != "" {
			name = arg.Token
		}
		fmt.Fprintf(b, "  %s: %s\n", name, arg.Summary)
	}
}
