package scripting

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"headgate/internal/ascii"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/resp"
	"headgate/server/script"
)

// Scripts is the script engine and, while a script runs, what the server knows about it. It is the engine's host. The executor's
// lock guards it.
type Scripts struct {
	*command.Core
	exec   *exec.Executor
	Engine *script.Engine   // which scripts and functions there are
	last   *command.Command // what was called last: loops call the same command again
	reply  resp.Writer      // of the command that the script has called
	tick   uint32           // counts calls, to choose the timed ones
	fault  []byte           // the error of the last call that failed, without its first byte and its line end
	CutOff bool             // a script that had written was ended in its midst, since the server ends: what it has written is half of it
	idle   chan struct{}    // closed when a script that overruns has ended, or nil if nobody waits for that
	scriptRun
}

// scriptRun is the script that is running. Its zero value says that none is.
type scriptRun struct {
	command.CallingScript
	ctx      *command.Ctx  // of the command that runs it
	line     [][]byte      // that command
	name     string        // the script's SHA-1, or the function's name
	isScript bool          // a script rather than a function
	readOnly bool          // may not write
	killed   bool          // SCRIPT KILL or FUNCTION KILL has been called
	long     bool          // has run for so long that the clock was looked at
	overruns bool          // has passed busy-reply-threshold
	elapsed  time.Duration // since it began, when it was last looked at
}

// Errors of scripts and of the clients that wait for one.
const (
	// ErrBusyEval is what most commands are answered with while a script overruns.
	ErrBusyEval = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	// ErrBusyFunction is the same while a function does.
	ErrBusyFunction = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
	// ErrNotBusy is what SCRIPT KILL and FUNCTION KILL are answered with while nothing runs.
	ErrNotBusy = "NOTBUSY No scripts in execution right now."
	// ErrUnkillable is what they are answered with when the script has written.
	ErrUnkillable = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script " +
		"termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."

	errScriptOOM     = "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'"
	errScriptWrites  = "ERR Can not execute a script with write flag using *_ro command."
	errCalledUnknown = "ERR Unknown Redis command called from script"
	errCalledArity   = "ERR Wrong number of args calling Redis command from script"
	errCalledRefused = "ERR This Redis command is not allowed from script"
	errCalledWrite   = "ERR Write commands are not allowed from read-only scripts."
	errCalledReply   = "ERR not enough memory" // for what the called command answers, in the words for all that a script holds
)

// keptCallReply bounds the buffer for called commands' replies that is kept between scripts.
const keptCallReply = 64 << 10

// redisVersionNumber is command.RedisVersion as scripts compare it: two hexadecimal digits for each part.
const redisVersionNumber = 0x00070204

// New returns the scripts of a server, which has none yet. What they call is run by exec.
func New(exec *exec.Executor) *Scripts {
	h := &Scripts{Core: exec.Core, exec: exec}
	h.reply.SetLimit(script.MaxHeapBytes)
	h.Engine = script.New(h, script.Options{OnSlice: h.onSlice, OnGrowth: exec.BoundScriptGarbage, Version: command.RedisVersion, VersionNum: redisVersionNumber})
	return h
}

// program is what a command is about to run: one of script and function.
type program struct {
	script   *script.Script
	function *script.Function
}

// declares returns the program's flags; ok is false for a script that has no #! line and so declares nothing.
func (p program) declares() (flags script.Flags, ok bool) {
	if p.function != nil {
		return p.function.Flags, true
	}
	return p.script.Flags, p.script.Shebang
}

// DeclaredFlags returns the flags of what a command is going to run; ok is false if it runs no script, one that declares nothing, or one
// that is not known. The caller holds the executor's lock.
func (h *Scripts) DeclaredFlags(cmd *command.Command, args [][]byte) (flags script.Flags, ok bool) {
	switch cmd.Runs {
	case command.ScriptText:
		return script.Declared(args[1])
	case command.ScriptSHA:
		if s := h.Engine.Get(args[1]); s != nil {
			return program{script: s}.declares()
		}
	case command.FunctionName:
		if f := h.Engine.Function(string(args[1])); f != nil {
			return program{function: f}.declares()
		}
	}
	return 0, false
}

func (p program) name() string {
	if p.function != nil {
		return p.function.Name
	}
	return p.script.SHA
}

// runScript runs a program whose keys begin at args[3], and sends its reply. readOnly is for the variants that let nothing be
// written. The context is lent to the commands that the program calls, so it is put back as it was.
func (h *Scripts) runScript(c *command.Ctx, p program, keys int, readOnly bool) {
	flags, declared := p.declares()
	full := c.Core.Gate.Has(command.GateShort)
	if declared {
		switch {
		case readOnly && flags&script.NoWrites == 0:
			c.Err(errScriptWrites)
			return
		case flags&script.NoWrites == 0 && c.Core.Gate.Has(command.GateNoWrites) && !c.Client.Primary:
			c.Err(c.Core.Gate.NoWrites())
			return
		case full && flags&(script.AllowOOM|script.NoWrites) == 0:
			c.Err(errScriptOOM)
			return
		}
	}
	h.scriptRun = scriptRun{
		ctx: c, line: c.Args, name: p.name(), isScript: p.script != nil,
		readOnly:      readOnly || flags&script.NoWrites != 0,
		CallingScript: command.CallingScript{Full: full && flags&script.AllowOOM == 0},
	}
	h.fault = h.fault[:0]
	outer, lastCmd, w := *c, c.Client.LastCmd, c.Reply
	before, depth := w.Len(), h.Effects.Depth
	c.Script, c.Reply, c.Known = &h.CallingScript, &h.reply, command.Known{}
	names, args := c.Args[3:3+keys], c.Args[3+keys:]
	if p.function != nil {
		h.Engine.RunFunction(p.function, names, args, w)
	} else {
		h.Engine.Run(p.script, names, args, w)
	}
	outer.Scratch = c.Scratch
	*c = outer
	h.Effects.Depth = depth // if a called command has panicked, which the engine makes an error, its effects have no end: nothing would be logged any more
	c.Client.DB, c.Client.LastCmd = c.DB, lastCmd
	if sent := w.Bytes(); len(sent) > before && sent[before] == '-' {
		h.failed(c, sent[before+1:])
	}
	h.finish(c)
}

// failed counts a script's error reply, unless it is that of a called command, which is counted already.
func (h *Scripts) failed(c *command.Ctx, text []byte) {
	c.Failed = true
	if len(h.fault) == 0 || !bytes.HasPrefix(text, h.fault) {
		c.Core.Stats.CountError(string(bytes.TrimSuffix(text, []byte("\r\n"))))
	}
}

// finish forgets the script that has run. Where it took long, the commands after it see what time it is now.
func (h *Scripts) finish(c *command.Ctx) {
	switch {
	case h.overruns && h.IsStopping():
		c.Client.Conn.CloseNow() // and GateBusy stays: what is still read must not see half of a script's effects
		h.Effects.Abandon()
		h.CutOff = h.Wrote
	case h.overruns:
		h.Gate.Refuse(command.GateBusy, "")
		if h.idle != nil {
			close(h.idle)
			h.idle = nil
		}
	}
	if h.long && c.Client.Multi == nil {
		c.NowNs = h.Clock.Read()
		c.Now = c.NowNs / 1e6
	}
	h.scriptRun = scriptRun{}
	if h.reply.Cap() > keptCallReply {
		h.reply.SetBuffer(nil)
	}
}

// AwaitIdle waits until no script overruns, for at most a time, and reports whether that is so. The executor's lock, which the
// caller holds, is free meanwhile.
func (h *Scripts) AwaitIdle(limit time.Duration) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for h.Gate.Has(command.GateBusy) && !h.IsStopping() {
		if h.idle == nil {
			h.idle = make(chan struct{})
		}
		idle := h.idle
		h.Unlock()
		over := false
		select {
		case <-idle:
		case <-h.Stopping():
		case <-deadline.C:
			over = true
		}
		h.Lock()
		if over {
			return !h.Gate.Has(command.GateBusy)
		}
	}
	return !h.Gate.Has(command.GateBusy)
}

// Call implements script.Host: the one order of checks for a command that a script calls.
func (h *Scripts) Call(args [][]byte, resp3 bool) []byte {
	c, w := h.ctx, &h.reply
	w.Reset()
	w.SetProto(resp.RESP2)
	if resp3 {
		w.SetProto(resp.RESP3)
	}
	cmd := h.lookup(args)
	if refusal := h.refusal(cmd, len(args)); refusal != "" {
		c.Err(refusal)
		if cmd != nil {
			h.Stats.Commands[cmd.ID].Rejected++
		}
		return h.failedCall()
	}
	c.Cmd, c.Args, c.DB, c.Failed = cmd, args, c.Client.DB, false
	if c.Client.Guarded {
		if refusal := h.exec.Access.CalledRefusal(c); refusal != "" {
			c.Err(refusal)
			h.Stats.Commands[cmd.ID].Rejected++
			return h.failedCall()
		}
	}
	h.Wrote = h.Wrote || cmd.Flags&command.Write != 0 && !cmd.AsksForRoom()
	frozen, dirty := c.NowNs, h.Keys.Dirty()
	if cmd.Flags&command.TellsTime != 0 {
		c.NowNs = h.Clock.Read()
	}
	h.tick++
	h.exec.Call(c, h.tick%command.TimedEvery == 0)
	h.Wrote = h.Wrote || cmd.AsksForRoom() && h.Keys.Dirty() != dirty // most limiters' calls that limit write nothing
	c.NowNs = frozen
	if w.Over() {
		w.Reset()
		c.Err(errCalledReply)
	}
	if c.Failed {
		return h.failedCall()
	}
	return w.Bytes()
}

// lookup finds the command that a script calls, a sub-command by its two words, or nil.
func (h *Scripts) lookup(args [][]byte) *command.Command {
	cmd := h.last
	if cmd == nil || !ascii.EqualFold(args[0], cmd.Upper) {
		if cmd = h.Commands.Lookup(args[0]); cmd == nil {
			return nil
		}
		h.last = cmd
	}
	if cmd.Sub != nil && len(args) > 1 {
		return cmd.Subcommand(args[1])
	}
	return cmd
}

// refusal returns the error of the first check that keeps a script from calling cmd with n arguments, the name included.
func (h *Scripts) refusal(cmd *command.Command, n int) string {
	switch {
	case cmd == nil:
		return errCalledUnknown
	case !cmd.ArityOK(n):
		return errCalledArity
	case cmd.Flags&command.NoScript != 0:
		return errCalledRefused
	case h.readOnly && cmd.Flags&(command.Write|command.MayReplicate) != 0:
		return errCalledWrite
	case h.Gate.Has(command.GateUnwritable) && cmd.WantsDisk():
		return h.Gate.Unwritable()
	case h.Gate.Has(command.GateNoWrites) && cmd.MustWrite() && !h.ctx.Client.Primary:
		return h.Gate.NoWrites()
	case h.LacksRoom() && cmd.WantsMemory():
		return command.ErrOOM
	}
	return ""
}

// failedCall remembers the error that a called command was answered with, and returns the reply.
func (h *Scripts) failedCall() []byte {
	reply := h.reply.Bytes()
	h.fault = append(h.fault[:0], bytes.TrimSuffix(reply[1:], []byte("\r\n"))...)
	return reply
}

// Log implements script.Host.
func (h *Scripts) Log(level int, text string) {
	h.Logger.Log(context.Background(), scriptLevels[level], "a script says: "+text, "script", h.name)
}

// scriptLevels are the levels of redis.log as slog has them.
var scriptLevels = [...]slog.Level{
	script.LogDebug: slog.LevelDebug, script.LogVerbose: command.LevelVerbose,
	script.LogNotice: slog.LevelInfo, script.LogWarning: slog.LevelWarn,
}

// ACLCheck implements script.Host.
func (h *Scripts) ACLCheck(args [][]byte) (allowed, known bool) {
	cmd := h.lookup(args)
	if cmd == nil {
		return false, false
	}
	denial, _ := h.ctx.Client.User.Judge(h.ctx.ACLCall(cmd, args))
	return denial == acl.Allowed, true
}

// SetReplication implements script.Host. Nothing is replicated, and unlike Redis headgate keeps nothing out of the append-only file: what was
// acknowledged and decided, by limiters above all, must be there after a restart.
func (h *Scripts) SetReplication(int) {}

// onSlice looks after a script that has been running for a while: it is stopped at script-time-limit, and past
// busy-reply-threshold other clients get a turn.
func (h *Scripts) onSlice(elapsed time.Duration) script.Action {
	if h.ctx == nil {
		return script.Continue // a library is being loaded
	}
	h.long, h.elapsed = true, elapsed
	cfg, ms := h.Config.Get(), int(elapsed/time.Millisecond)
	if cfg.ScriptTimeLimit > 0 && ms >= cfg.ScriptTimeLimit && !h.Wrote {
		h.Logger.Warn("a script was stopped: it exceeded script-time-limit", "script", h.name, "ms", ms)
		return script.TimeLimit
	}
	if !h.overruns && (cfg.BusyReplyThreshold == 0 || ms < cfg.BusyReplyThreshold) && !h.Asked.Load() { // Shutdown needs the lock to wait
		return script.Continue
	}
	if !h.overruns {
		h.overrun(ms)
	}
	if !h.killed {
		h.exec.Yield(h.ctx)
	}
	if h.killed || h.IsStopping() {
		return script.Kill
	}
	return script.Continue
}

// overrun has the other clients told that a script keeps them waiting.
func (h *Scripts) overrun(ms int) {
	h.overruns = true
	refusal, kill := ErrBusyFunction, "FUNCTION KILL"
	if h.isScript {
		refusal, kill = ErrBusyEval, "SCRIPT KILL"
	}
	h.Gate.Refuse(command.GateBusy, refusal)
	h.Logger.Warn("a script has been running for a long time, and other clients wait for it; "+kill+" ends it unless it has written", "script", h.name, "ms", ms)
}

// kill has the running script end at its next slice, or sends the error. eval tells that it is SCRIPT KILL, which is for scripts as
// FUNCTION KILL is for functions.
func (h *Scripts) kill(c *command.Ctx, eval bool) {
	switch {
	case h.ctx == nil:
		c.Err(ErrNotBusy)
	case h.Wrote:
		c.Err(ErrUnkillable)
	case eval != h.isScript:
		c.Err(h.Gate.Refusal(command.GateBusy))
	default:
		h.killed = true
		c.OK()
	}
}
