package server

import (
	"errors"

	"headgate/server/config"
)

// configCommand is the CONFIG family, over the table of directives in package config.
func (a *Console) configCommand() *Command {
	return &Command{
		Name: "config", Group: GroupServer, Since: "2.0.0", Complexity: "depends on the sub-command",
		Summary: "Look at and change the configuration.",
		Arity:   -2,
		Sub: []*Command{
			{
				Name: "get", Since: "2.0.0", Complexity: "O(n) in the number of directives and patterns",
				Summary: "Return the directives that the patterns match, with their values.",
				Arity:   -3, Flags: Admin | NoScript | Loading | Stale,
				Args: []Arg{str("parameter").multi()}, Reply: ReplyMap, Handler: configGet,
			},
			helpCommand("5.0.0"),
			{
				Name: "resetstat", Since: "2.0.0", Complexity: "O(1)",
				Summary: "Set the counters that INFO shows back to zero.",
				Arity:   2, Flags: Admin | NoScript | Loading | Stale, Reply: ReplySimple, Handler: a.configResetStat,
			},
			{
				Name: "rewrite", Since: "2.8.0", Complexity: "O(n) in the length of the configuration file",
				Summary: "Bring the configuration file in line with what holds now.",
				Arity:   2, Flags: Admin | NoScript | Loading | Stale, Reply: ReplySimple, Handler: a.configRewrite,
			},
			{
				Name: "set", Since: "2.0.0", Complexity: "O(n) in the number of directives",
				Summary: "Change directives, all of them or, if one is refused, none.",
				Arity:   -4, Flags: Admin | NoScript | Loading | Stale,
				Tips:   tipAllNodes,
				Args:   []Arg{block("data", str("parameter"), str("value")).multi()},
				Secret: configSecret, Reply: ReplySimple, Handler: configSet,
			},
		},
	}
}

func configGet(c *Ctx) {
	patterns := make([]string, len(c.args)-2)
	for i, arg := range c.args[2:] {
		patterns[i] = string(arg)
	}
	pairs := c.core.config.Match(patterns)
	c.reply.Map(len(pairs))
	for _, p := range pairs {
		c.reply.BulkString(p.Name)
		c.reply.BulkString(p.Value)
	}
}

// configSecret finds what stands behind the name of a directive whose value nobody is shown.
func configSecret(c *Ctx, args [][]byte, i int) bool {
	return i > 2 && c.core.config.IsSecret(string(args[i-1]))
}

func configSet(c *Ctx) {
	if len(c.args)%2 != 0 {
		c.err(errSyntax)
		return
	}
	var pairs []config.Pair
	for i := 2; i < len(c.args); i += 2 {
		pairs = append(pairs, config.Pair{Name: string(c.args[i]), Value: string(c.args[i+1])})
	}
	err := c.core.config.Set(pairs, c.client.local())
	c.cfg = c.core.config.Get()
	var refused *config.SetError
	switch {
	case errors.As(err, &refused):
		shown := *refused
		shown.Argument = string(cutAtNUL([]byte(refused.Argument)))
		c.err(oneLine(shown.Error()))
	case err != nil:
		c.errf("ERR %s", err)
	default:
		c.ok()
	}
}

// configRewrite writes the file with the executor's lock held, as Redis does: it is an operator's command, and rare.
func (a *Console) configRewrite(c *Ctx) {
	if c.cfg.ACLFile == "" {
		c.core.config.SetUsers(a.access.configuredUsers())
	}
	write := func(path string, data []byte) error { return config.WriteFile(c.core.fs, path, data) }
	if err := c.core.config.Rewrite(write); err != nil {
		c.errf("ERR %s", err)
		return
	}
	c.core.log.Info("CONFIG REWRITE executed with success", "file", c.core.config.Path())
	c.ok()
}

func (a *Console) configResetStat(c *Ctx) {
	c.core.stats.reset()
	a.limits.resetCounts()
	a.limits.top.reset(c.core.clock.Mono())
	c.core.stats.expiredBefore, c.core.stats.evictedBefore = c.core.keys.Stats().Expired, c.core.keys.Stats().Evicted
	c.ok()
}
