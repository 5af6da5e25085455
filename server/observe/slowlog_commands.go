package observe

import (
	"slices"

	"headgate/internal/number"
	"headgate/server/command"
)

// slowlogCommand is the SLOWLOG family.
func (r *Recorder) slowlogCommand() *command.Command {
	return &command.Command{
		Name: "slowlog", Group: command.GroupServer, Since: "2.2.12", Complexity: "depends on the sub-command",
		Summary: "Look at the commands that took long.",
		Arity:   -2,
		Sub: []*command.Command{
			{
				Name: "get", Since: "2.2.12", Complexity: "O(n) in the number of entries",
				Summary: "Return the newest entries of the slow log, 10 if no number is given, all for -1.",
				Arity:   -2, Flags: command.Admin | command.Loading | command.Stale,
				Tips: "request_policy:all_nodes nondeterministic_output",
				Args: []command.Arg{command.Integer("count").Opt()}, Reply: command.ReplyArray, Handler: r.slowlogGet,
			},
			command.HelpCommand("6.2.0"),
			{
				Name: "len", Since: "2.2.12", Complexity: "O(1)",
				Summary: "Return the number of entries in the slow log.",
				Arity:   2, Flags: command.Admin | command.Loading | command.Stale, Reply: command.ReplyInteger, Handler: r.slowlogLen,
				Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
			},
			{
				Name: "reset", Since: "2.2.12", Complexity: "O(n) in the number of entries",
				Summary: "Empty the slow log.",
				Arity:   2, Flags: command.Admin | command.Loading | command.Stale, Reply: command.ReplySimple, Handler: r.slowlogReset,
				Tips: command.TipAllNodes,
			},
		},
	}
}

// slowlogShown is how many entries SLOWLOG GET returns when it is not told.
const slowlogShown = 10

func (r *Recorder) slowlogGet(c *command.Ctx) {
	count := int64(slowlogShown)
	switch {
	case len(c.Args) > 3:
		c.ErrSubcommandSyntax()
		return
	case len(c.Args) == 3:
		var ok bool
		if count, ok = number.ParseInt(c.Args[2]); !ok || count < -1 {
			c.Err("ERR count should be greater than or equal to -1")
			return
		}
	}
	entries := r.Slowlog.Entries
	if count >= 0 && count < int64(len(entries)) {
		entries = entries[len(entries)-int(count):]
	}
	w := c.Reply
	w.Array(len(entries))
	for _, e := range slices.Backward(entries) {
		w.Array(6)
		w.Int(e.id)
		w.Int(e.At)
		w.Int(e.Usec)
		w.Array(len(e.Args))
		for _, arg := range e.Args {
			w.Bulk(arg)
		}
		w.BulkString(e.Addr)
		w.BulkString(e.Name)
	}
}

func (r *Recorder) slowlogLen(c *command.Ctx) { c.Reply.Int(int64(len(r.Slowlog.Entries))) }

func (r *Recorder) slowlogReset(c *command.Ctx) {
	r.Slowlog.Entries = nil
	c.OK()
}
