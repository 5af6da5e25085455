package server

// transaction is what a client has queued since MULTI.
type transaction struct {
	queue   []queued
	bytes   int  // size of the queued arguments; counts towards client-query-buffer-limit
	aborted bool // a command was refused while queueing, so EXEC will be too
}

// queued is a command that waits for EXEC, with arguments of its own.
type queued struct {
	cmd  *Command
	args [][]byte
}

// queuedOverhead is what a queued argument costs beside its bytes.
const queuedOverhead = 24

// add copies a command into the queue; its arguments share one allocation.
func (t *transaction) add(cmd *Command, args [][]byte) {
	if t.aborted {
		return
	}
	size := 0
	for _, a := range args {
		size += len(a)
	}
	own := make([][]byte, len(args))
	buf := make([]byte, 0, size)
	for i, a := range args {
		buf = append(buf, a...)
		own[i] = buf[len(buf)-len(a) : len(buf) : len(buf)]
	}
	t.queue = append(t.queue, queued{cmd, own})
	t.bytes += size + queuedOverhead*len(args)
}

// abortTransaction has the client's EXEC refused, because a command could not be queued.
func (cl *Client) abortTransaction() {
	if cl.multi != nil {
		cl.multi.aborted = true
		cl.multi.queue = nil
	}
}

// transactionCommands: MULTI and what belongs to it.
var transactionCommands = []*Command{
	{
		Name: "discard", Group: GroupTransactions, Since: "2.0.0", Complexity: "O(n) in the number of queued commands",
		Summary: "Forget the queued commands and end the transaction.",
		Arity:   1, Flags: NoScript | Loading | Stale | Fast | AllowBusy | RunsInMulti, Reply: ReplySimple, Handler: discard,
	},
	{
		Name: "exec", Group: GroupTransactions, Since: "1.2.0", Complexity: "the sum of the queued commands'",
		Summary: "Run the queued commands as one unit, unless a watched key has changed.",
		Arity:   1, Flags: NoScript | Loading | Stale | SkipSlowlog | RunsInMulti, Reply: ReplyArray | ReplyNull, Handler: exec,
	},
	{
		Name: "multi", Group: GroupTransactions, Since: "1.2.0", Complexity: "O(1)",
		Summary: "Begin a transaction: the following commands are queued until EXEC.",
		Arity:   1, Flags: NoScript | Loading | Stale | Fast | AllowBusy | RunsInMulti, Reply: ReplySimple, Handler: multi,
	},
	{
		Name: "unwatch", Group: GroupTransactions, Since: "2.2.0", Complexity: "O(1)",
		Summary: "Forget all watched keys.",
		Arity:   1, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Reply: ReplySimple, Handler: unwatch,
	},
	{
		Name: "watch", Group: GroupTransactions, Since: "2.2.0", Complexity: "O(1) per key",
		Summary: "Have the next EXEC refused if one of these keys changes until then.",
		Arity:   -2, Flags: NoScript | Loading | Stale | Fast | AllowBusy | RunsInMulti, Keys: keys("RO", 1, -1, 1),
		Args: []Arg{key("key").multi()}, Reply: ReplySimple, Handler: watch,
	},
}

func multi(c *Ctx) {
	if c.client.multi != nil {
		c.err("ERR MULTI calls can not be nested")
		return
	}
	c.client.multi = &transaction{}
	c.ok()
}

func discard(c *Ctx) {
	if c.client.multi == nil {
		c.err("ERR DISCARD without MULTI")
		return
	}
	c.client.leaveTransaction()
	c.ok()
}

func watch(c *Ctx) {
	if c.client.multi != nil {
		c.err("ERR WATCH inside MULTI is not allowed")
		return
	}
	for i := 1; i < len(c.args); i++ {
		c.client.watches = append(c.client.watches, c.db.Watch(c.key(i), c.now))
	}
	c.ok()
}

func unwatch(c *Ctx) {
	c.client.unwatch()
	c.ok()
}

// exec runs the queue. The executor's lock is held throughout, so nothing of another client comes between.
func exec(c *Ctx) {
	t := c.client.multi
	if t == nil {
		c.err("ERR EXEC without MULTI")
		return
	}
	changed := false
	for _, w := range c.client.watches {
		changed = changed || w.Changed(c.now)
	}
	c.client.leaveTransaction()
	switch {
	case t.aborted:
		c.err(errExecAbort)
		return
	case changed:
		c.reply.NullArray()
		return
	}
	self, args := c.cmd, c.args
	c.reply.Array(len(t.queue))
	for i := range t.queue {
		c.cmd, c.args, c.hashed, c.failed = t.queue[i].cmd, t.queue[i].args, false, false
		c.db = c.client.db
		c.call(false)
	}
	c.cmd, c.args, c.failed = self, args, false
}
