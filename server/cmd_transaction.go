package server

// transaction is what a client has queued since MULTI. The arguments of all queued commands share one block of memory.
type transaction struct {
	queue     []queued
	ends      []int  // where each argument ends in data
	data      []byte // the arguments, one after another
	aborted   bool   // a command was refused while queueing, so EXEC will be too
	writes    bool   // what is queued may change the keyspace
	grows     bool   // and may need more memory
	wantsDisk bool   // and is refused while data cannot be kept
}

// queued is a command that waits for EXEC.
type queued struct {
	cmd    *Command
	args   int    // how many of transaction.ends are its own
	hash   uint64 // of its first key, if hashed
	hashed bool
}

// queuedOverhead is what a queued argument costs beside its bytes.
const queuedOverhead = 24

// size is what the queue counts towards client-query-buffer-limit, in bytes.
func (t *transaction) size() int { return len(t.data) + queuedOverhead*len(t.ends) }

// add copies the context's command into the queue.
func (t *transaction) add(c *Ctx) {
	if t.aborted {
		return
	}
	for _, a := range c.args {
		t.data = append(t.data, a...)
		t.ends = append(t.ends, len(t.data))
	}
	t.writes = t.writes || c.srv.mayWrite(c.client, c.cmd, c.args)
	t.grows = t.grows || c.needsMemory()
	t.wantsDisk = t.wantsDisk || c.cmd.wantsDisk()
	t.queue = append(t.queue, queued{c.cmd, len(c.args), c.hash, c.hashed})
}

// reset empties the queue and keeps its memory.
func (t *transaction) reset() {
	*t = transaction{queue: t.queue[:0], ends: t.ends[:0], data: t.data[:0]}
}

const (
	spareTransactions   = 64       // ended transactions whose memory is kept for the next ones
	spareTransactionMax = 16 << 10 // bytes of arguments above which it is not
)

// newTransaction returns an empty transaction.
func (s *Server) newTransaction() *transaction {
	last := len(s.spare) - 1
	if last < 0 {
		return &transaction{}
	}
	t := s.spare[last]
	s.spare = s.spare[:last]
	return t
}

// endTransaction forgets the client's queue and its watched keys.
func (s *Server) endTransaction(cl *Client) {
	t := cl.multi
	cl.multi = nil
	s.unwatch(cl)
	if t != nil && len(s.spare) < spareTransactions && t.size() <= spareTransactionMax {
		t.reset()
		s.spare = append(s.spare, t)
	}
}

// abortTransaction has the client's EXEC refused, because a command could not be queued.
func (cl *Client) abortTransaction() {
	if cl.multi != nil {
		if cl.multi.size() > spareTransactionMax {
			cl.multi = &transaction{} // or the memory of what was queued would stay, and count as nothing
		}
		cl.multi.reset()
		cl.multi.aborted = true
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
	c.client.multi = c.srv.newTransaction()
	c.ok()
}

func discard(c *Ctx) {
	if c.client.multi == nil {
		c.err("ERR DISCARD without MULTI")
		return
	}
	c.srv.endTransaction(c.client)
	c.ok()
}

func watch(c *Ctx) {
	if c.client.multi != nil {
		c.err("ERR WATCH inside MULTI is not allowed")
		return
	}
	if c.client.watches.Len()+len(c.args)-1 > maxWatches {
		c.err("ERR too many watched keys")
		return
	}
	for i := 1; i < len(c.args); i++ {
		c.srv.helpRemains()
		c.client.watches.Watch(c.db, c.key(i), c.now)
	}
	c.ok()
}

func unwatch(c *Ctx) {
	c.srv.unwatch(c.client)
	c.ok()
}

// exec runs the queue. The executor's lock is held throughout, so nothing of another client comes between.
func exec(c *Ctx) {
	t := c.client.multi
	if t == nil {
		c.err("ERR EXEC without MULTI")
		return
	}
	changed := c.client.watches.Changed(c.now)
	c.srv.unwatch(c.client)
	switch {
	case t.aborted:
		c.err(errExecAbort)
	case changed:
		c.reply.NullArray()
	default:
		c.runQueue(t)
	}
	c.srv.endTransaction(c.client)
}

// runQueue runs a transaction's commands. They see the client as outside of a transaction, as their own callers would.
func (c *Ctx) runQueue(t *transaction) {
	self, args := c.cmd, c.args
	own := c.srv.queuedArgs
	end, from := 0, 0
	c.reply.Array(len(t.queue))
	for i := range t.queue {
		q := &t.queue[i]
		own = own[:0]
		for _, to := range t.ends[end : end+q.args] {
			own = append(own, t.data[from:to:to])
			from = to
		}
		end += q.args
		c.cmd, c.args, c.failed = q.cmd, own, false
		c.known = known{hash: q.hash, hashed: q.hashed}
		c.db = c.client.db
		if c.client.guarded {
			if refusal := c.queuedRefusal(); refusal != "" {
				c.err(refusal)
				continue
			}
		}
		c.call(false)
	}
	c.srv.queuedArgs = nil
	if cap(own) <= keptArguments {
		clear(own)
		c.srv.queuedArgs = own
	}
	c.cmd, c.args, c.failed = self, args, false
}
