package server

import (
	"encoding/binary"
	"slices"

	"headgate/server/resp"
	"headgate/store"
)

// transaction is what a client has queued since MULTI. The queue is one block of memory, so that it costs what it holds and nothing else:
// for each command its number, how many arguments it has and the hash of its first key, then each argument behind its length.
type transaction struct {
	data      []byte
	count     int  // commands in data
	large     bool // data came from buffers
	buffers   *resp.Buffers
	aborted   bool // a command was refused while queueing, so EXEC will be too
	writes    bool // what is queued may change the keyspace
	grows     bool // and may need more memory
	wantsDisk bool // and is refused while data cannot be kept
}

// What stands in a transaction's block beside the bytes of arguments.
const (
	queuedHead   = 4 + 4 + 1 + 8 // a command's number, how many arguments it has, whether its first key is hashed, the hash
	queuedLength = 4             // of an argument
)

// size is what the queue counts towards client-query-buffer-limit and takes up in memory, in bytes: of a block outside the heap, what was not
// written to costs nothing.
func (t *transaction) size() int { return len(t.data) }

// Bytes is what the queue takes up, as a part of its client.
func (t *transaction) Bytes() int { return t.size() }

// transactionOf returns the transaction that a client is in, or nil.
func transactionOf(cl *Client) *transaction {
	t, _ := cl.multi.(*transaction)
	return t
}

// add copies the context's command into the queue.
func (t *transaction) add(x *Executor, c *Ctx) {
	if t.aborted {
		return
	}
	size := queuedHead
	for _, a := range c.args {
		size += queuedLength + len(a)
	}
	block := t.reserve(size)
	binary.LittleEndian.PutUint32(block, uint32(c.cmd.id))
	binary.LittleEndian.PutUint32(block[4:], uint32(len(c.args)))
	block[8] = 0
	if c.hashed {
		block[8] = 1
	}
	binary.LittleEndian.PutUint64(block[9:], c.hash)
	block = block[queuedHead:]
	for _, a := range c.args {
		binary.LittleEndian.PutUint32(block, uint32(len(a)))
		block = block[queuedLength+copy(block[queuedLength:], a):]
	}
	t.count++
	t.writes = t.writes || x.mayWrite(c.client, c.cmd, c.args)
	t.grows = t.grows || x.needsMemory(c)
	t.wantsDisk = t.wantsDisk || c.cmd.wantsDisk()
}

// reserve adds n bytes to the block and returns them. A queue that is small is the Go heap's, and kept for the next transaction.
func (t *transaction) reserve(n int) []byte {
	held := len(t.data)
	if held+n > cap(t.data) {
		t.grow(n)
	}
	t.data = t.data[:held+n]
	return t.data[held:]
}

// grow makes room for n more bytes.
func (t *transaction) grow(n int) {
	held := len(t.data)
	need := held + n
	switch {
	case need <= spareTransactionMax:
		t.data = slices.Grow(t.data, n)
	case t.large:
		t.data = t.buffers.Grow(t.data, max(need, cap(t.data)+cap(t.data)/2))[:held]
	default:
		small := t.data
		t.data, t.large = t.buffers.Get(need), true
		t.data = t.data[:copy(t.data, small)]
	}
}

// next makes the command at the start of queue the one that is to be run, and returns what follows it. Its arguments are put into own.
func (c *Ctx) next(queue []byte, own [][]byte) (args [][]byte, rest []byte) {
	c.cmd = c.core.commands.all[binary.LittleEndian.Uint32(queue)]
	n := binary.LittleEndian.Uint32(queue[4:])
	c.known = known{hash: binary.LittleEndian.Uint64(queue[9:]), hashed: queue[8] == 1}
	queue = queue[queuedHead:]
	for ; n > 0; n-- {
		end := queuedLength + int(binary.LittleEndian.Uint32(queue))
		own = append(own, queue[queuedLength:end:end])
		queue = queue[end:]
	}
	c.args, c.failed = own, false
	return own, queue
}

// reset empties the queue and keeps its memory if that is little.
func (t *transaction) reset() {
	small := t.data[:0]
	if t.large {
		t.buffers.Put(t.data)
		small = nil
	}
	*t = transaction{data: small, buffers: t.buffers}
}

const (
	spareTransactions   = 64       // ended transactions whose memory is kept for the next ones
	spareTransactionMax = 16 << 10 // bytes of a queue above which it is not
)

// newTransaction returns an empty transaction.
func (x *Executor) newTransaction() *transaction {
	last := len(x.spare) - 1
	if last < 0 {
		return &transaction{buffers: &x.buffers}
	}
	t := x.spare[last]
	x.spare = x.spare[:last]
	return t
}

// endTransaction forgets the client's queue and its watched keys.
func (x *Executor) endTransaction(cl *Client) {
	t := transactionOf(cl)
	cl.multi = nil
	x.forgetWatches(cl)
	if t == nil {
		return
	}
	t.reset()
	if len(x.spare) < spareTransactions {
		x.spare = append(x.spare, t)
	}
}

// abortTransaction has the client's EXEC refused, because a command could not be queued.
func abortTransaction(cl *Client) {
	if t := transactionOf(cl); t != nil {
		t.reset()
		t.aborted = true
	}
}

// maxWatches bounds what one client may watch, so that its memory has a limit.
const maxWatches = 1 << 20

// forgetWatches forgets the keys that a client watches.
func (x *Executor) forgetWatches(cl *Client) {
	if cl.watches.Len() <= remainsPerClient {
		cl.watches.Release(remainsPerClient)
		return
	}
	let := watchLeftover{cl.watches}
	cl.watches = store.Watches{}
	x.remains.letGo(&let)
}

// watchLeftover is what a client watched.
type watchLeftover struct{ store.Watches }

// TakeOut implements leftover.
func (w *watchLeftover) TakeOut(n int) int { return w.Release(n) }

// declarations: MULTI and what belongs to it.
func (x *Executor) declarations() []*Command {
	return []*Command{
		{
			Name: "discard", Group: GroupTransactions, Since: "2.0.0", Complexity: "O(n) in the number of queued commands",
			Summary: "Forget the queued commands and end the transaction.",
			Arity:   1, Flags: NoScript | Loading | Stale | Fast | AllowBusy | RunsInMulti | DropsQueue, Reply: ReplySimple, Handler: x.discard,
		},
		{
			Name: "exec", Group: GroupTransactions, Since: "1.2.0", Complexity: "the sum of the queued commands'",
			Summary: "Run the queued commands as one unit, unless a watched key has changed.",
			Arity:   1, Flags: NoScript | Loading | Stale | SkipSlowlog | RunsInMulti | RunsQueue, Reply: ReplyArray | ReplyNull, Handler: x.runTransaction,
		},
		{
			Name: "multi", Group: GroupTransactions, Since: "1.2.0", Complexity: "O(1)",
			Summary: "Begin a transaction: the following commands are queued until EXEC.",
			Arity:   1, Flags: NoScript | Loading | Stale | Fast | AllowBusy | RunsInMulti, Reply: ReplySimple, Handler: x.multi,
		},
		{
			Name: "unwatch", Group: GroupTransactions, Since: "2.2.0", Complexity: "O(1)",
			Summary: "Forget all watched keys.",
			Arity:   1, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Reply: ReplySimple, Handler: x.unwatch,
		},
		{
			Name: "watch", Group: GroupTransactions, Since: "2.2.0", Complexity: "O(1) per key",
			Summary: "Have the next EXEC refused if one of these keys changes until then.",
			Arity:   -2, Flags: NoScript | Loading | Stale | Fast | AllowBusy | RunsInMulti, Keys: keys("RO", 1, -1, 1),
			Args: []Arg{key("key").multi()}, Reply: ReplySimple, Handler: x.watch,
		},
	}
}

func (x *Executor) multi(c *Ctx) {
	if c.client.multi != nil {
		c.err("ERR MULTI calls can not be nested")
		return
	}
	c.client.multi = x.newTransaction()
	c.ok()
}

func (x *Executor) discard(c *Ctx) {
	if c.client.multi == nil {
		c.err("ERR DISCARD without MULTI")
		return
	}
	x.endTransaction(c.client)
	c.ok()
}

func (x *Executor) watch(c *Ctx) {
	if c.client.multi != nil {
		c.err("ERR WATCH inside MULTI is not allowed")
		return
	}
	if c.client.watches.Len()+len(c.args)-1 > maxWatches {
		c.err("ERR too many watched keys")
		return
	}
	for i := 1; i < len(c.args); i++ {
		c.core.remains.help()
		c.client.watches.Watch(c.db, c.key(i), c.now)
	}
	c.ok()
}

func (x *Executor) unwatch(c *Ctx) {
	x.forgetWatches(c.client)
	c.ok()
}

// runTransaction runs the queue. The executor's lock is held throughout, so nothing of another client comes between.
func (x *Executor) runTransaction(c *Ctx) {
	t := transactionOf(c.client)
	if t == nil {
		c.err("ERR EXEC without MULTI")
		return
	}
	changed := c.client.watches.Changed(c.now)
	x.forgetWatches(c.client)
	switch {
	case t.aborted:
		c.err(errExecAbort)
	case changed:
		c.reply.NullArray()
	default:
		x.runQueue(c, t)
	}
	x.endTransaction(c.client)
}

// runQueue runs a transaction's commands. They see the client as outside of a transaction, as their own callers would.
func (x *Executor) runQueue(c *Ctx, t *transaction) {
	self, args := c.cmd, c.args
	own := x.queuedArgs
	c.reply.Array(t.count)
	for queue := t.data; len(queue) > 0; {
		own, queue = c.next(queue, own[:0])
		if c.reply.Over() && c.cmd.onlyAnswers() {
			continue // nobody gets the answer
		}
		c.db = c.client.db
		if c.client.guarded {
			if refusal := x.access.queuedRefusal(c); refusal != "" {
				c.err(refusal)
				continue
			}
		}
		x.call(c, false)
	}
	x.queuedArgs = nil
	if cap(own) <= keptArguments {
		clear(own)
		x.queuedArgs = own
	}
	c.cmd, c.args, c.failed = self, args, false
}
