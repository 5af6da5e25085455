package server

import "strings"

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
	lines := []string{name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
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
	c.reply.Array(len(lines))
	for _, line := range lines {
		c.reply.Simple(line)
	}
}
