package server

import (
	"slices"

	"headgate/internal/number"
)

// slowlogCommand is the SLOWLOG family.
func (r *Recorder) slowlogCommand() *Command {
	return &Command{
		Name: "slowlog", Group: GroupServer, Since: "2.2.12", Complexity: "depends on the sub-command",
		Summary: "Look at the commands that took long.",
		Arity:   -2,
		Sub: []*Command{
			{
				Name: "get", Since: "2.2.12", Complexity: "O(n) in the number of entries",
				Summary: "Return the newest entries of the slow log, 10 if no number is given, all for -1.",
				Arity:   -2, Flags: Admin | Loading | Stale,
				Tips: "request_policy:all_nodes nondeterministic_output",
				Args: []Arg{integer("count").opt()}, Reply: ReplyArray, Handler: r.slowlogGet,
			},
			helpCommand("6.2.0"),
			{
				Name: "len", Since: "2.2.12", Complexity: "O(1)",
				Summary: "Return the number of entries in the slow log.",
				Arity:   2, Flags: Admin | Loading | Stale, Reply: ReplyInteger, Handler: r.slowlogLen,
				Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
			},
			{
				Name: "reset", Since: "2.2.12", Complexity: "O(n) in the number of entries",
				Summary: "Empty the slow log.",
				Arity:   2, Flags: Admin | Loading | Stale, Reply: ReplySimple, Handler: r.slowlogReset,
				Tips: tipAllNodes,
			},
		},
	}
}

// slowlogShown is how many entries SLOWLOG GET returns when it is not told.
const slowlogShown = 10

func (r *Recorder) slowlogGet(c *Ctx) {
	count := int64(slowlogShown)
	switch {
	case len(c.args) > 3:
		c.errSubcommandSyntax()
		return
	case len(c.args) == 3:
		var ok bool
		if count, ok = number.ParseInt(c.args[2]); !ok || count < -1 {
			c.err("ERR count should be greater than or equal to -1")
			return
		}
	}
	entries := r.slowlog.entries
	if count >= 0 && count < int64(len(entries)) {
		entries = entries[len(entries)-int(count):]
	}
	w := c.reply
	w.Array(len(entries))
	for _, e := range slices.Backward(entries) {
		w.Array(6)
		w.Int(e.id)
		w.Int(e.at)
		w.Int(e.usec)
		w.Array(len(e.args))
		for _, arg := range e.args {
			w.Bulk(arg)
		}
		w.BulkString(e.addr)
		w.BulkString(e.name)
	}
}

func (r *Recorder) slowlogLen(c *Ctx) { c.reply.Int(int64(len(r.slowlog.entries))) }

func (r *Recorder) slowlogReset(c *Ctx) {
	r.slowlog.entries = nil
	c.ok()
}
