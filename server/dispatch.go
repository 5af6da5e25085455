package server

import (
	"strings"
	"time"

	"headgate/server/resp"
)

// dispatch is the one order of checks that every command passes: lookup, arity, authentication, transaction, memory, queueing,
// execution, statistics. timed has the command's run measured even if it is marked Fast or Sampled.
func (x *Executor) dispatch(c *Ctx, timed bool) {
	before := c.reply.Len()
	if !x.admit(c) {
		x.refused(c, before)
		return
	}
	if c.client.multi != nil && c.cmd.Flags&RunsInMulti == 0 {
		t := transactionOf(c.client)
		t.add(x, c)
		c.reply.Queued()
		if t.size()+c.client.conn.In.Buffered() > c.cfg.ClientQueryBufferLimit {
			c.client.conn.CloseNow()
		}
		return
	}
	x.call(c, timed)
}

// refused has the client's transaction fail, since a command that belongs to it could not be queued. A refused EXEC ends it at
// once, with an error that quotes the one sent; before is the output's length before that.
func (x *Executor) refused(c *Ctx, before int) {
	abortTransaction(c.client)
	if c.reply.Over() {
		return // nothing that is answered is sent any more
	}
	if c.cmd != nil && c.cmd.Flags&RunsQueue != 0 {
		x.endTransaction(c.client)
		why := strings.TrimSpace(strings.TrimPrefix(string(c.reply.Bytes()[before+1:]), "ERR "))
		c.reply.Truncate(before)
		c.err("EXECABORT Transaction discarded because of: " + why)
	}
}

// admit resolves sub-commands and sends the error of the first check that fails.
func (x *Executor) admit(c *Ctx) bool {
	if c.cmd != nil && c.cmd.Sub != nil && len(c.args) > 1 {
		if sub := c.cmd.subcommand(c.args[1]); sub != nil {
			c.cmd = sub
		} else {
			c.errUnknownSubcommand()
			return false
		}
	}
	switch {
	case c.cmd == nil && (c.is(0, "POST") || c.is(0, "HOST:")):
		x.refuseBrowser(c)
	case c.cmd == nil:
		c.errUnknownCommand()
	case !c.cmd.arityOK(len(c.args)) || (c.cmd.Handler == nil && len(c.args) == 1):
		c.errArity()
		x.stats.commands[c.cmd.id].rejected++
	case c.client.guarded && x.guards(c):
	case c.client.multi != nil && c.cmd.Flags&NoMulti != 0:
		c.reject(errNoMulti)
	case (c.client.limited || x.gate.has(gateRefuses)) && x.turnedAway(c):
	default:
		return true
	}
	return false
}

// guards refuses the command if the client may not run it, since it has not authenticated or its user lacks the right.
func (x *Executor) guards(c *Ctx) bool {
	refusal := x.access.guardRefusal(c)
	if refusal != "" {
		c.reject(refusal)
	}
	return refusal != ""
}

// turnedAway refuses the command if the gate or what its client is about demands that.
func (x *Executor) turnedAway(c *Ctx) bool {
	refusal := x.gateRefusal(c)
	if refusal != "" {
		c.reject(refusal)
	}
	return refusal != ""
}

// gateRefusal returns the error of the first reason for which the command may not run, or nothing.
func (x *Executor) gateRefusal(c *Ctx) string {
	gate, flags := &x.gate, c.cmd.Flags
	if gate.has(gateMemory) && x.lacksMemory(c) {
		return errOOM
	}
	if c.client.limited {
		if refusal := c.limitation(); refusal != "" {
			return refusal
		}
	}
	switch {
	case gate.has(gateUnwritable) && c.wantsDisk():
		return gate.unwritable()
	case gate.has(gateLoading) && flags&Loading == 0:
		return gate.refusal(gateLoading)
	case gate.has(gateBusy) && flags&AllowBusy == 0:
		return gate.refusal(gateBusy)
	}
	return ""
}

// wantsDisk reports whether the command is refused while data cannot be kept: those that write, or have what is queued write, and those
// that health checks use.
func (c *Ctx) wantsDisk() bool {
	flags := c.cmd.Flags
	return c.cmd.wantsDisk() || flags&HealthCheck != 0 || flags&RunsQueue != 0 && c.client.multi != nil && transactionOf(c.client).wantsDisk
}

func (c *Ctx) reject(text string) {
	c.err(text)
	c.core.stats.commands[c.cmd.id].rejected++
}

// errConfined follows the name of a command that a subscriber may not run in RESP2.
const errConfined = "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"

// limitation returns the error with which the command is refused to a client that subscribes or monitors, or nothing.
func (c *Ctx) limitation() string {
	switch {
	case c.client.confined() && c.cmd.Flags&ForSubscribers == 0:
		return "ERR Can't execute '" + c.cmd.fullName + errConfined
	case c.client.monitors && c.cmd.Flags&(Write|ReadOnly|MayReplicate) != 0:
		return errMonitorKeys
	}
	return ""
}

// call runs the command, with what goes with that for those who have asked to know more.
func (x *Executor) call(c *Ctx, timed bool) {
	if x.gate.has(gateAttended) {
		x.attend(c, timed)
		return
	}
	x.perform(c, timed)
}

// perform runs the command's handler, notes its effects and keeps the statistics.
func (x *Executor) perform(c *Ctx, timed bool) {
	cmd := c.cmd
	if !x.effects.on {
		x.run(c, timed)
		return
	}
	before := x.effects.begin(x.keys, c.db)
	x.run(c, timed)
	c.endEffects(cmd, before)
}

// run runs the command's handler and keeps the statistics.
func (x *Executor) run(c *Ctx, timed bool) {
	stats := &x.stats.commands[c.cmd.id]
	sampled := c.cmd.Flags&(Fast|Sampled) != 0
	c.client.lastCmd = c.cmd
	if sampled && !timed && stats.calls >= alwaysTimed && len(c.args) < manyArguments {
		c.cmd.Handler(c)
	} else {
		x.runTimed(c, stats, sampled && timed && stats.calls >= alwaysTimed && !x.gate.has(gateTimed))
	}
	x.stats.processed++
	stats.calls++
	if c.failed {
		stats.failed++
	}
}

// alwaysTimed is how many calls of a command are timed before one in timedEvery has to do: a command that is seldom called needs no
// estimate.
const alwaysTimed = timedEvery

// runTimed runs the command's handler and measures how long that takes. estimate tells that the call stands for timedEvery of them.
func (x *Executor) runTimed(c *Ctx, stats *commandStats, estimate bool) {
	cmd, args := c.cmd, c.args
	start := time.Now()
	cmd.Handler(c)
	took := int64(time.Since(start))
	calls := uint64(1)
	if estimate {
		calls = timedEvery
	}
	c.turn.spent += took
	c.turn.busy += took
	stats.ns += took * int64(calls)
	if c.cfg.LatencyTracking {
		if stats.times == nil {
			stats.times = &histogram{}
		}
		stats.times.record(took, calls)
	}
	if took >= x.recorder.noteFrom {
		x.recorder.noteSlow(c, cmd, args, took)
	}
}

// browserWarnings is the shortest time between two log lines about browsers, in ns.
const browserWarnings = int64(time.Minute)

// refuseBrowser closes a connection that speaks HTTP: most likely somebody has a browser send what a web page made up, so that
// its lines are taken for commands.
func (x *Executor) refuseBrowser(c *Ctx) {
	x.stats.protocolErrors++
	if c.nowNs-x.warnedOfBrowser > browserWarnings {
		x.warnedOfBrowser = c.nowNs
		x.log.Warn("closed a connection that speaks HTTP; this may be an attack by way of a browser", "addr", c.client.conn.Remote)
	}
	c.client.conn.CloseNow()
}

// protocolError answers input that is no RESP and has the connection closed.
func (x *Executor) protocolError(c *Ctx, err error) {
	x.stats.protocolErrors++
	if err == resp.ErrQueryBuffer {
		c.client.conn.CloseNow()
		return
	}
	c.errf("ERR %s", err)
	c.client.conn.CloseAfterReply()
}
