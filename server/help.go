package server

import (
	"strings"

	"headgate/internal/ascii"
)

// helpCommand declares the HELP of a container, whose text derives from the container's entries.
func helpCommand(since string) *Command {
	return &Command{
		Name: "help", Since: since, Complexity: "O(1)",
		Summary: "Print this help.",
		Arity:   2, Flags: Loading | Stale, Reply: ReplyArray, Handler: help,
	}
}

func help(c *Ctx) {
	container := c.cmd.parent
	name := strings.ToUpper(container.Name)
	called := ascii.Upper(string(cutAtNUL(c.args[0])))
	lines := []string{called + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	add := func(syntax string, cmd *Command) {
		lines = append(lines, syntax, "    "+cmd.Summary)
	}
	if container.Handler != nil {
		add("(no subcommand)", container)
	}
	for _, sub := range container.Sub {
		if sub != c.cmd {
			add(strings.TrimPrefix(sub.Syntax(), name+" "), sub)
		}
	}
	add("HELP", c.cmd)
	c.sendHelp(lines...)
}

// sendHelp sends lines of help.
func (c *Ctx) sendHelp(lines ...string) {
	c.reply.Array(len(lines))
	for _, line := range lines {
		c.reply.Simple(line)
	}
}

// errSubcommandSyntax sends the error for a sub-command that a handler takes apart itself.
func (c *Ctx) errSubcommandSyntax() {
	c.errf("ERR unknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.", unknownNameShown, cutAtNUL(c.args[1]), ascii.Upper(string(cutAtNUL(c.args[0]))))
}
