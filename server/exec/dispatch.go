package exec

import (
	"strings"
	"time"

	"headgate/server/command"
	"headgate/server/observe"
	"headgate/server/resp"
	"headgate/server/script"
)

// dispatch is the one order of checks that every command passes: lookup, arity, authentication, transaction, memory, queueing,
// execution, statistics. timed has the command's run measured even if it is marked Fast or Sampled.
func (x *Executor) dispatch(c *command.Ctx, timed bool) {
	before := c.Reply.Len()
	if !x.admit(c) {
		x.refused(c, before)
		return
	}
	if c.Client.Multi != nil && c.Cmd.Flags&command.RunsInMulti == 0 {
		t := TransactionOf(c.Client)
		t.add(x, c)
		c.Reply.Queued()
		if t.Size()+c.Client.Conn.In.Buffered() > c.Cfg.ClientQueryBufferLimit && !c.Client.Primary {
			c.Client.Conn.CloseNow()
		}
		return
	}
	x.Call(c, timed)
}

// refused has the client's transaction fail, since a command that belongs to it could not be queued. A refused EXEC ends it at
// once, with an error that quotes the one sent; before is the output's length before that.
func (x *Executor) refused(c *command.Ctx, before int) {
	abortTransaction(c.Client)
	if c.Reply.Over() {
		return // nothing that is answered is sent any more
	}
	if c.Cmd != nil && c.Cmd.Flags&command.RunsQueue != 0 {
		x.EndTransaction(c.Client)
		why := strings.TrimSpace(strings.TrimPrefix(string(c.Reply.Bytes()[before+1:]), "ERR "))
		c.Reply.Truncate(before)
		c.Err(errDiscarded + why)
	}
}

// errDiscarded is followed by why a whole transaction is refused.
const errDiscarded = "EXECABORT Transaction discarded because of: "

// admit resolves sub-commands and sends the error of the first check that fails.
func (x *Executor) admit(c *command.Ctx) bool {
	if c.Cmd != nil && c.Cmd.Sub != nil && len(c.Args) > 1 {
		if sub := c.Cmd.Subcommand(c.Args[1]); sub != nil {
			c.Cmd = sub
		} else {
			c.ErrUnknownSubcommand()
			return false
		}
	}
	switch {
	case c.Cmd == nil && (c.Is(0, "POST") || c.Is(0, "HOST:")):
		x.refuseBrowser(c)
	case c.Cmd == nil:
		c.ErrUnknownCommand()
	case !c.Cmd.ArityOK(len(c.Args)) || (c.Cmd.Handler == nil && len(c.Args) == 1):
		c.ErrArity()
		x.Stats.Commands[c.Cmd.ID].Rejected++
	case c.Client.Guarded && x.guards(c):
	case c.Client.Multi != nil && c.Cmd.Flags&command.NoMulti != 0:
		reject(c, command.ErrNoMulti)
	case (c.Client.Limited || x.Gate.Has(command.GateRefuses)) && x.turnedAway(c):
	default:
		return true
	}
	return false
}

// guards refuses the command if the client may not run it, since it has not authenticated or its user lacks the right.
func (x *Executor) guards(c *command.Ctx) bool {
	refusal := x.Access.GuardRefusal(c)
	if refusal != "" {
		reject(c, refusal)
	}
	return refusal != ""
}

// turnedAway refuses the command if the gate or what its client is about demands that.
func (x *Executor) turnedAway(c *command.Ctx) bool {
	if c.Client.Primary {
		return false
	}
	refusal := x.gateRefusal(c)
	if refusal != "" {
		reject(c, refusal)
	}
	return refusal != ""
}

// gateRefusal returns the error of the first reason for which the command may not run, or nothing.
func (x *Executor) gateRefusal(c *command.Ctx) string {
	gate, flags := &x.Gate, c.Cmd.Flags
	if gate.Has(command.GateMoved) {
		if refusal := x.above.Moved(c); refusal != "" {
			return refusal
		}
	}
	if gate.Has(command.GateMemory) && x.lacksMemory(c) {
		return command.ErrOOM
	}
	if c.Client.Limited {
		if refusal := limitation(c); refusal != "" {
			return refusal
		}
	}
	switch {
	case gate.Has(command.GateUnwritable) && wantsDisk(c):
		return gate.Unwritable()
	case gate.Has(command.GateNoWrites) && x.wantsToWrite(c):
		return gate.NoWrites()
	case gate.Has(command.GateStale) && !x.mayBeStale(c):
		return gate.Refusal(command.GateStale)
	case gate.Has(command.GateLoading) && flags&command.Loading == 0:
		return gate.Refusal(command.GateLoading)
	case gate.Has(command.GateBusy) && flags&command.AllowBusy == 0:
		return gate.Refusal(command.GateBusy)
	}
	return ""
}

// wantsDisk reports whether the command is refused while data cannot be kept: those that write, or have what is queued write, and those
// that health checks use.
func wantsDisk(c *command.Ctx) bool {
	flags := c.Cmd.Flags
	return c.Cmd.WantsDisk() || flags&command.HealthCheck != 0 || flags&command.RunsQueue != 0 && c.Client.Multi != nil && TransactionOf(c.Client).wantsDisk
}

// mayBeStale reports whether the command is answered though the data may be old. Scripts have to say that they are.
func (x *Executor) mayBeStale(c *command.Ctx) bool {
	if c.Cmd.Runs == command.NoProgram {
		return c.Cmd.Flags&command.Stale != 0
	}
	flags, declared := x.declaredFlags(c.Cmd, c.Args)
	return declared && flags&script.AllowStale != 0
}

// wantsToWrite reports whether the command is one that writes, or has what is queued write.
func (x *Executor) wantsToWrite(c *command.Ctx) bool {
	return c.Cmd.MustWrite() || c.Cmd.Flags&command.RunsQueue != 0 && c.Client.Multi != nil && TransactionOf(c.Client).changes
}

func reject(c *command.Ctx, text string) {
	c.Err(text)
	c.Core.Stats.Commands[c.Cmd.ID].Rejected++
}

// errReplicaKeys is why a replica's command on keys is not run: no pause would hold it back, and nobody could read its reply.
const errReplicaKeys = "ERR Replica can't interact with the keyspace"

// endReplica closes a replica that has sent a command with a reply, as Redis does: a replica only reports, and what it is sent is the stream.
func (x *Executor) endReplica(c *command.Ctx) {
	name := "an unknown command"
	if c.Cmd != nil {
		name = c.Cmd.FullName
	}
	x.Logger.Warn("replica closed: it has sent a command that expects a reply", "addr", c.Client.Conn.Remote, "command", name)
	c.Client.Conn.CloseNow()
}

// errConfined follows the name of a command that a subscriber may not run in RESP2.
const errConfined = "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

// limitation returns the error with which the command is refused to a client that replicates, subscribes or monitors, or nothing.
func limitation(c *command.Ctx) string {
	switch {
	case c.Client.Replicates && c.Cmd.Flags&(command.Write|command.ReadOnly|command.MayReplicate) != 0:
		return errReplicaKeys
	case c.Client.Confined() && c.Cmd.Flags&command.ForSubscribers == 0:
		return "ERR Can't execute '" + c.Cmd.FullName + errConfined
	case c.Client.Monitors && c.Cmd.Flags&(command.Write|command.ReadOnly|command.MayReplicate) != 0:
		return observe.ErrMonitorKeys
	}
	return ""
}

// Call runs the context's command, which has passed all checks, and does what monitoring, tracking and timing ask for. timed has it
// measured even if it is marked Fast or Sampled. The caller holds the executor's lock.
func (x *Executor) Call(c *command.Ctx, timed bool) {
	if x.Gate.Has(command.GateAttended) {
		x.attend(c, timed)
		return
	}
	x.perform(c, timed)
}

// perform runs the command's handler, notes its effects and keeps the statistics.
func (x *Executor) perform(c *command.Ctx, timed bool) {
	cmd := c.Cmd
	if !x.Effects.On {
		x.Run(c, timed)
		return
	}
	before := x.Effects.Begin(x.Keys, c.DB)
	x.Run(c, timed)
	c.EndEffects(cmd, before)
}

// Run runs the handler of the context's command and keeps the statistics; what it changes is noted nowhere. The caller holds the executor's
// lock.
func (x *Executor) Run(c *command.Ctx, timed bool) {
	stats := &x.Stats.Commands[c.Cmd.ID]
	sampled := c.Cmd.Flags&(command.Fast|command.Sampled) != 0
	c.Client.LastCmd = c.Cmd
	if sampled && !timed && stats.Calls >= alwaysTimed && len(c.Args) < observe.ManyArguments {
		c.Cmd.Handler(c)
	} else {
		x.runTimed(c, stats, sampled && timed && stats.Calls >= alwaysTimed && !x.Gate.Has(command.GateTimed))
	}
	x.Stats.Processed++
	stats.Calls++
	if c.Failed {
		stats.Failed++
	}
}

// alwaysTimed is how many calls of a command are timed before one in command.TimedEvery has to do: a command that is seldom called needs no
// estimate.
const alwaysTimed = command.TimedEvery

// runTimed runs the command's handler and measures how long that takes. estimate is true if the call stands for command.TimedEvery of them.
func (x *Executor) runTimed(c *command.Ctx, stats *command.Counters, estimate bool) {
	cmd, args := c.Cmd, c.Args
	start := time.Now()
	if len(args) < observe.ManyArguments || !x.refusesToAdd(c) {
		cmd.Handler(c)
	}
	took := int64(time.Since(start))
	calls := uint64(1)
	if estimate {
		calls = command.TimedEvery
	}
	c.Turn.Look(start.Add(time.Duration(took)), took)
	stats.Ns += took * int64(calls)
	if c.Cfg.LatencyTracking {
		if stats.Times == nil {
			stats.Times = &command.Histogram{}
		}
		stats.Times.Record(took, calls)
	}
	if took >= x.Recorder.NoteFrom {
		x.Recorder.NoteSlow(c, cmd, args, took)
	}
}

// browserWarnings is the shortest time between two log lines about browsers, in ns.
const browserWarnings = int64(time.Minute)

// refuseBrowser closes a connection that speaks HTTP: most likely somebody has a browser send what a web page made up, so that
// its lines are taken for commands.
func (x *Executor) refuseBrowser(c *command.Ctx) {
	x.Stats.ProtocolErrors++
	if c.NowNs-x.warnedOfBrowser > browserWarnings {
		x.warnedOfBrowser = c.NowNs
		x.Logger.Warn("closed a connection that speaks HTTP; this may be an attack through a browser", "addr", c.Client.Conn.Remote)
	}
	c.Client.Conn.CloseNow()
}

// protocolError answers input that is not RESP and has the connection closed.
func (x *Executor) protocolError(c *command.Ctx, err error) {
	x.Stats.ProtocolErrors++
	if err == resp.ErrQueryBuffer {
		c.Client.Conn.CloseNow()
		return
	}
	c.Errf("ERR %s", err)
	c.Client.Conn.CloseAfterReply()
}
