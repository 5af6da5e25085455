package command

import (
	"strings"

	"headgate/internal/ascii"
)

// HelpCommand declares the HELP of a container, whose text derives from the container's entries.
func HelpCommand(since string) *Command {
	return &Command{
		Name: "help", Since: since, Complexity: "O(1)",
		Summary: "Print this help.",
		Arity:   2, Flags: Loading | Stale, Reply: ReplyArray, Returns: []string{"lines of text"}, Handler: help,
	}
}

func help(c *Ctx) {
	container := c.Cmd.Parent
	name := strings.ToUpper(container.Name)
	called := ascii.Upper(string(CutAtNUL(c.Args[0])))
	lines := []string{called + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	add := func(syntax string, cmd *Command) {
		lines = append(lines, syntax, "    "+cmd.Summary)
	}
	if container.Handler != nil {
		add("(no subcommand)", container)
	}
	for _, sub := range container.Sub {
		if sub != c.Cmd {
			add(strings.TrimPrefix(sub.Syntax(), name+" "), sub)
		}
	}
	add("HELP", c.Cmd)
	c.SendHelp(lines...)
}

// SendHelp sends lines of help.
func (c *Ctx) SendHelp(lines ...string) {
	c.Reply.Array(len(lines))
	for _, line := range lines {
		c.Reply.Simple(line)
	}
}

// ErrSubcommandSyntax sends the error for a sub-command that a handler takes apart itself.
func (c *Ctx) ErrSubcommandSyntax() {
	c.Errf("ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.", unknownNameShown, CutAtNUL(c.Args[1]), ascii.Upper(string(CutAtNUL(c.Args[0]))))
}
