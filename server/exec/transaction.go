package exec

import (
	"encoding/binary"
	"slices"

	"headgate/server/command"
	"headgate/server/resp"
	"headgate/store"
)

// transaction is what a client has queued since MULTI. The queue is one block of memory, so that it costs what it holds and nothing else:
// for each command its number, how many arguments it has and the hash of its first key, then each argument behind its length.
type transaction struct {
	data      []byte
	Count     int  // commands in data
	large     bool // data came from buffers
	buffers   *resp.Buffers
	aborted   bool         // a command was refused while queueing, so EXEC will be too
	writes    bool         // what is queued may change the keyspace
	grows     bool         // and may need more memory
	wantsDisk bool         // and is refused while data cannot be kept
	changes   bool         // a command that writes is queued, whatever scripts may do
	demand    store.Demand // what all that is queued may need of the keyspace's addresses
}

// What stands in a transaction's block beside the bytes of arguments.
const (
	queuedHead   = 4 + 4 + 1 + 8 // a command's number, how many arguments it has, whether its first key is hashed, the hash
	queuedLength = 4             // of an argument
)

// Size is what the queue counts towards client-query-buffer-limit and takes up in memory, in bytes: of a block outside the heap, what was not
// written to costs nothing.
func (t *transaction) Size() int { return len(t.data) }

// Bytes is what the queue takes up, as a part of its client.
func (t *transaction) Bytes() int { return t.Size() }

// TransactionOf returns the transaction that a client is in, or nil.
func TransactionOf(cl *command.Client) *transaction {
	t, _ := cl.Multi.(*transaction)
	return t
}

// add copies the context's command into the queue.
func (t *transaction) add(x *Executor, c *command.Ctx) {
	if t.aborted {
		return
	}
	size := queuedHead
	for _, a := range c.Args {
		size += queuedLength + len(a)
	}
	block := t.reserve(size)
	binary.LittleEndian.PutUint32(block, uint32(c.Cmd.ID))
	binary.LittleEndian.PutUint32(block[4:], uint32(len(c.Args)))
	block[8] = 0
	if c.Hashed {
		block[8] = 1
	}
	binary.LittleEndian.PutUint64(block[9:], c.Hash)
	block = block[queuedHead:]
	for _, a := range c.Args {
		binary.LittleEndian.PutUint32(block, uint32(len(a)))
		block = block[queuedLength+copy(block[queuedLength:], a):]
	}
	t.Count++
	t.writes = t.writes || x.mayWrite(c.Client, c.Cmd, c.Args)
	t.grows = t.grows || x.needsMemory(c)
	t.wantsDisk = t.wantsDisk || c.Cmd.WantsDisk()
	t.changes = t.changes || c.Cmd.MustWrite()
	if c.Cmd.WantsAddresses() {
		t.demand.Add(c.Args)
	}
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
		t.data = t.buffers.Grow(t.data, need)[:held]
	default:
		small := t.data
		t.data, t.large = t.buffers.Get(need), true
		t.data = t.data[:copy(t.data, small)]
	}
}

// next makes the command at the start of queue the one that is to be run, and returns what follows it. Its arguments are put into own.
func next(c *command.Ctx, queue []byte, own [][]byte) (args [][]byte, rest []byte) {
	c.Cmd = c.Core.Commands.All[binary.LittleEndian.Uint32(queue)]
	n := binary.LittleEndian.Uint32(queue[4:])
	c.Known = command.Known{Hash: binary.LittleEndian.Uint64(queue[9:]), Hashed: queue[8] == 1}
	queue = queue[queuedHead:]
	for ; n > 0; n-- {
		end := queuedLength + int(binary.LittleEndian.Uint32(queue))
		own = append(own, queue[queuedLength:end:end])
		queue = queue[end:]
	}
	c.Args, c.Failed = own, false
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
		return &transaction{buffers: &x.Pool}
	}
	t := x.spare[last]
	x.spare = x.spare[:last]
	return t
}

// EndTransaction forgets the client's queue and its watched keys. The caller holds the executor's lock.
func (x *Executor) EndTransaction(cl *command.Client) {
	t := TransactionOf(cl)
	cl.Multi = nil
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
func abortTransaction(cl *command.Client) {
	if t := TransactionOf(cl); t != nil {
		t.reset()
		t.aborted = true
	}
}

// maxWatches bounds what one client may watch, so that its memory has a limit.
const maxWatches = 1 << 20

// forgetWatches forgets the keys that a client watches.
func (x *Executor) forgetWatches(cl *command.Client) {
	if cl.Watches.Len() <= command.RemainsPerClient {
		cl.Watches.Release(command.RemainsPerClient)
		return
	}
	let := watchLeftover{cl.Watches}
	cl.Watches = store.Watches{}
	x.Remains.LetGo(&let)
}

// watchLeftover is what a client watched.
type watchLeftover struct{ store.Watches }

// TakeOut forgets up to n of the keys, as [command.Core].Remains asks for, and returns how many.
func (w *watchLeftover) TakeOut(n int) int { return w.Release(n) }

// Declarations are those of MULTI and of what belongs to it.
func (x *Executor) Declarations() []*command.Command {
	return []*command.Command{
		{
			Name: "discard", Group: command.GroupTransactions, Since: "2.0.0", Complexity: "O(n) in the number of queued commands",
			Summary: "Forget the queued commands and end the transaction.",
			Arity:   1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.RunsInMulti | command.DropsQueue, Reply: command.ReplySimple, Handler: x.discard,
		},
		{
			Name: "exec", Group: command.GroupTransactions, Since: "1.2.0", Complexity: "the sum of the queued commands'",
			Summary: "Run the queued commands as one unit, unless a watched key has changed.",
			Arity:   1, Flags: command.NoScript | command.Loading | command.Stale | command.SkipSlowlog | command.RunsInMulti | command.RunsQueue, Reply: command.ReplyArray | command.ReplyNull, Handler: x.runTransaction,
		},
		{
			Name: "multi", Group: command.GroupTransactions, Since: "1.2.0", Complexity: "O(1)",
			Summary: "Begin a transaction: the following commands are queued until EXEC.",
			Arity:   1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.RunsInMulti, Reply: command.ReplySimple, Handler: x.multi,
		},
		{
			Name: "unwatch", Group: command.GroupTransactions, Since: "2.2.0", Complexity: "O(1)",
			Summary: "Forget all watched keys.",
			Arity:   1, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy, Reply: command.ReplySimple, Handler: x.unwatch,
		},
		{
			Name: "watch", Group: command.GroupTransactions, Since: "2.2.0", Complexity: "O(1) per key",
			Summary: "Make the next EXEC fail if one of these keys has changed by then.",
			Arity:   -2, Flags: command.NoScript | command.Loading | command.Stale | command.Fast | command.AllowBusy | command.RunsInMulti | command.HomeOnly, Keys: command.Keys("RO", 1, -1, 1),
			Args: []command.Arg{command.Key("key").Multi()}, Reply: command.ReplySimple, Handler: x.watch,
		},
	}
}

func (x *Executor) multi(c *command.Ctx) {
	if c.Client.Multi != nil {
		c.Err("ERR MULTI calls can not be nested")
		return
	}
	c.Client.Multi = x.newTransaction()
	c.OK()
}

func (x *Executor) discard(c *command.Ctx) {
	if c.Client.Multi == nil {
		c.Err("ERR DISCARD without MULTI")
		return
	}
	x.EndTransaction(c.Client)
	c.OK()
}

func (x *Executor) watch(c *command.Ctx) {
	if c.Client.Multi != nil {
		c.Err("ERR WATCH inside MULTI is not allowed")
		return
	}
	if c.Client.Watches.Len()+len(c.Args)-1 > maxWatches {
		c.Err("ERR too many watched keys")
		return
	}
	for i := 1; i < len(c.Args); i++ {
		c.Core.Remains.Help()
		c.Client.Watches.Watch(c.DB, c.Key(i), c.Now)
	}
	c.OK()
}

func (x *Executor) unwatch(c *command.Ctx) {
	x.forgetWatches(c.Client)
	c.OK()
}

// runTransaction runs the queue. The executor's lock is held throughout, so nothing of another client comes between.
func (x *Executor) runTransaction(c *command.Ctx) {
	t := TransactionOf(c.Client)
	if t == nil {
		c.Err("ERR EXEC without MULTI")
		return
	}
	changed := c.Client.Watches.Changed(c.Now)
	x.forgetWatches(c.Client)
	switch {
	case t.aborted:
		c.Err(command.ErrExecAbort)
	case changed:
		c.Reply.NullArray()
	case t.demand.Chunks() > 0 && x.Keys.Full(t.demand.Chunks()):
		c.Err(errDiscarded + command.ErrOOM)
	default:
		x.runQueue(c, t)
	}
	x.EndTransaction(c.Client)
}

// HasQueued reports whether a client has commands queued that may be run.
func (x *Executor) HasQueued(cl *command.Client) bool {
	t := TransactionOf(cl)
	return t != nil && !t.aborted && t.Count > 0
}

// EachQueued calls each for the commands that the context's client has queued, in their order, with the context of the command: its reply goes
// where the caller has it go. refusal is the error with which it is refused, if it is. The transaction has ended when EachQueued returns. For
// those who have the queue run elsewhere.
func (x *Executor) EachQueued(c *command.Ctx, each func(refusal string)) {
	self, args := c.Cmd, c.Args
	var own [][]byte
	for queue := TransactionOf(c.Client).data; len(queue) > 0; {
		own, queue = next(c, queue, own[:0])
		c.DB = c.Client.DB
		refusal := ""
		if c.Client.Guarded {
			refusal = x.Access.QueuedRefusal(c)
		}
		each(refusal)
	}
	c.Cmd, c.Args, c.Failed = self, args, false
	x.EndTransaction(c.Client)
}

// runQueue runs a transaction's commands. They see the client as outside of a transaction, as their own callers would.
func (x *Executor) runQueue(c *command.Ctx, t *transaction) {
	self, args := c.Cmd, c.Args
	own := x.queuedArgs
	c.Reply.Array(t.Count)
	for queue := t.data; len(queue) > 0; {
		own, queue = next(c, queue, own[:0])
		if c.Reply.Over() && c.Cmd.OnlyAnswers() {
			continue // nobody gets the answer
		}
		c.DB = c.Client.DB
		if c.Client.Guarded {
			if refusal := x.Access.QueuedRefusal(c); refusal != "" {
				c.Err(refusal)
				continue
			}
		}
		x.Call(c, false)
	}
	clear(own)
	x.queuedArgs = x.queuedUse.fit(own)
	c.Cmd, c.Args, c.Failed = self, args, false
}
