package exec

import (
	"strings"

	"headgate/server/command"
	"headgate/server/netpoll"
)

// Replay runs the commands of a log. It queues them as a Worker does those of clients, so that the cache misses of a batch overlap; but what
// has been logged was allowed when it was called, so nothing is refused to it. It is not safe for concurrent use.
type Replay struct {
	worker *Worker
	client *command.Client    // who runs them
	data   []byte             // the arguments of the queued commands
	ends   []int              // where each argument ends in data
	counts [BatchCommands]int // how many arguments each command has
}

// replayBytes is how many bytes of arguments are queued before the queue is full.
const replayBytes = 1 << 20

// Unreplayed is a command of a log that could not be run.
type Unreplayed struct {
	Index  int    // its place in the queue, counted from 0
	Name   []byte // valid until the next call of Add
	Why    string
	Failed bool // it was run, and Why is what it has answered
}

// NewReplay returns an empty queue, whose first command is for database 0.
func (x *Executor) NewReplay() *Replay {
	conn := &netpoll.Conn{FD: -1}
	r := &Replay{worker: &Worker{Exec: x}}
	r.client = &command.Client{Conn: conn, Reply: &conn.Out, DB: x.Keys.DB(0), User: x.Access.Users.Default(), Authenticated: true}
	conn.Client = r.client
	return r
}

// Rewind has the next command be for database 0, as the first one of a file is. The queue must be empty.
func (r *Replay) Rewind() { r.client.DB = r.worker.Exec.Keys.DB(0) }

// Len is how many commands are queued.
func (r *Replay) Len() int { return r.worker.count }

// Full reports whether the queue has to be run before anything is added.
func (r *Replay) Full() bool { return r.worker.count == BatchCommands || len(r.data) > replayBytes }

// Add queues a command, whose arguments are copied.
func (r *Replay) Add(args [][]byte) {
	for _, arg := range args {
		r.data = append(r.data, arg...)
		r.ends = append(r.ends, len(r.data))
	}
	r.counts[r.worker.count] = len(args)
	r.worker.count++
}

// Run runs the queued commands and empties the queue. Keys are looked up at nowMs, in ms since the Unix epoch. What report returns for a
// command that could not be run ends the batch, unless it is nil. The caller holds the executor's lock.
func (r *Replay) Run(nowMs int64, report func(Unreplayed) error) error {
	w := r.worker
	defer r.clear()
	r.prepare()
	w.touch()
	x, c := w.Exec, &w.Ctx
	c.Core, c.Worker, c.Turn, c.Cfg, c.Client, c.Reply = x.Core, w, &w.Turn, x.Config.Get(), r.client, r.client.Reply
	c.Now, c.NowNs = nowMs, x.Clock.Read()
	for i := range w.queue[:w.count] {
		p := &w.queue[i]
		c.Cmd, c.DB = p.Cmd, r.client.DB
		c.Args, c.Known, c.Failed = w.args[p.Begin:p.End], p.Known, false
		r.client.Reply.Reset()
		if why, failed := r.run(c); why != "" {
			if err := report(Unreplayed{Index: i, Name: c.Args[0], Why: why, Failed: failed}); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare looks the queued commands up. A log names them as their declarations do, whatever clients call them.
func (r *Replay) prepare() {
	w := r.worker
	from := 0
	for _, to := range r.ends {
		w.args = append(w.args, r.data[from:to:to])
		from = to
	}
	begin := 0
	for i := range w.queue[:w.count] {
		p := &w.queue[i]
		p.Client, p.Begin, p.End = r.client, int32(begin), int32(begin+r.counts[i])
		begin += r.counts[i]
		args := w.args[p.Begin:p.End]
		if cmd := w.Exec.Commands.ByOwnName(args[0]); cmd != nil {
			w.take(p, cmd, args)
		} else {
			w.prepare(p, args)
		}
	}
}

// run runs one command, and returns why it cannot, or how it has failed. Scripts may end in an error after they have written.
func (r *Replay) run(c *command.Ctx) (why string, failed bool) {
	if c.Cmd != nil && c.Cmd.Sub != nil && len(c.Args) > 1 {
		c.Cmd = c.Cmd.Subcommand(c.Args[1])
	}
	switch {
	case c.Cmd == nil || c.Cmd.Handler == nil:
		return "it is unknown", false
	case !c.Cmd.ArityOK(len(c.Args)):
		return "it has a wrong number of arguments", false
	}
	cmd := c.Cmd
	if x := r.worker.Exec; !x.Gate.Has(command.GateCrowded) || !x.refusesToAdd(c) {
		x.Run(c, false)
	}
	if c.Failed && cmd.Flags&command.MayReplicate == 0 {
		return strings.TrimSpace(strings.TrimPrefix(string(r.client.Reply.Bytes()), "-")), true
	}
	return "", false
}

// clear empties the queue.
func (r *Replay) clear() {
	r.worker.count, r.worker.args, r.data, r.ends = 0, r.worker.args[:0], r.data[:0], r.ends[:0]
}
