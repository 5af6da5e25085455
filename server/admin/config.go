package admin

import (
	"errors"

	"headgate/server/command"
	"headgate/server/config"
)

// configCommand is the CONFIG family, over the table of directives in package config.
func (a *Console) configCommand() *command.Command {
	return &command.Command{
		Name: "config", Group: command.GroupServer, Since: "2.0.0", Complexity: "depends on the sub-command",
		Summary: "Show and change the configuration.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "get", Since: "2.0.0", Complexity: "O(n) in the number of directives and patterns",
				Summary: "Return the directives that the patterns match, with their values.",
				Arity:   -3, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
				Args: []command.Arg{command.Str("parameter").Multi()}, Reply: command.ReplyMap, Handler: configGet,
			},
			command.HelpCommand("5.0.0"),
			{
				Name: "resetstat", Since: "2.0.0", Complexity: "O(1)",
				Summary: "Set the counters of commands, keys and limiters that INFO shows back to zero.",
				Arity:   2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplySimple, Handler: a.configResetStat,
			},
			{
				Name: "rewrite", Since: "2.8.0", Complexity: "O(n) in the length of the configuration file",
				Summary: "Write the current configuration to the configuration file.",
				Arity:   2, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplySimple, Handler: a.configRewrite,
			},
			{
				Name: "set", Since: "2.0.0", Complexity: "O(n) in the number of directives",
				Summary: "Change directives, all of them or, if one is refused, none.",
				Arity:   -4, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
				Tips:   command.TipAllNodes,
				Args:   []command.Arg{command.Block("data", command.Str("parameter"), command.Str("value")).Multi()},
				Secret: configSecret, Reply: command.ReplySimple, Handler: configSet,
			},
		},
	}
}

func configGet(c *command.Ctx) {
	patterns := make([]string, len(c.Args)-2)
	for i, arg := range c.Args[2:] {
		patterns[i] = string(arg)
	}
	pairs := c.Core.Config.Match(patterns)
	c.Reply.Map(len(pairs))
	for _, p := range pairs {
		c.Reply.BulkString(p.Name)
		c.Reply.BulkString(p.Value)
	}
}

// configSecret finds what stands behind the name of a directive whose value nobody is shown.
func configSecret(c *command.Ctx, args [][]byte, i int) bool {
	return i > 2 && c.Core.Config.IsSecret(string(args[i-1]))
}

func configSet(c *command.Ctx) {
	if len(c.Args)%2 != 0 {
		c.Err(command.ErrSyntax)
		return
	}
	var pairs []config.Pair
	for i := 2; i < len(c.Args); i += 2 {
		pairs = append(pairs, config.Pair{Name: string(c.Args[i]), Value: string(c.Args[i+1])})
	}
	err := c.Core.Config.Set(pairs, c.Client.Local())
	c.Cfg = c.Core.Config.Get()
	var refused *config.SetError
	switch {
	case errors.As(err, &refused):
		shown := *refused
		shown.Argument = string(command.CutAtNUL([]byte(refused.Argument)))
		c.Err(command.OneLine(shown.Error()))
	case err != nil:
		c.Errf("ERR %s", err)
	default:
		c.OK()
	}
}

// configRewrite writes the file with the executor's lock held, as Redis does: it is an operator's command, and rare.
func (a *Console) configRewrite(c *command.Ctx) {
	if c.Cfg.ACLFile == "" {
		c.Core.Config.SetUsers(a.Access.ConfiguredUsers(c.Cfg))
	}
	if err := a.Journal.CheckDirKept(); err != nil && c.Core.Config.Path() != "" {
		c.Errf("ERR %s", err)
		return
	}
	write := func(path string, data []byte) error { return config.WriteFile(c.Core.FS, path, data) }
	if err := c.Core.Config.Rewrite(write); err != nil {
		c.Errf("ERR %s", err)
		return
	}
	c.Core.Logger.Info("CONFIG REWRITE executed with success", "file", c.Core.Config.Path())
	c.OK()
}

func (a *Console) configResetStat(c *command.Ctx) {
	c.Core.Stats.Reset()
	a.Limits.ResetCounts()
	a.Limits.Top.Reset(c.Core.Clock.Mono())
	c.Core.Stats.ExpiredBefore, c.Core.Stats.EvictedBefore = c.Core.Keys.Stats().Expired, c.Core.Keys.Stats().Evicted
	c.OK()
}
