package exec

import (
	"headgate/server/command"
	"headgate/server/script"
)

// pause is what CLIENT PAUSE has set.
type pause struct {
	Until       int64             // ns; 0 = not paused
	Writes      bool              // only commands that may write are held back
	HoldsWrites bool              // HoldWrites was called: those are held back in any case
	Held        []*command.Client // those who wait for its end
}

// holdsBack reports whether a client's command has to wait for the end of a pause. The client goes on when it ends. A command that
// will be refused does not wait for that, nor does a replica: what it has to say may be what the pause is for.
func (x *Executor) holdsBack(cl *command.Client, cmd *command.Command, args [][]byte, now int64) bool {
	p := &x.Pause
	timed := p.Until != 0 && now < p.Until
	if !timed && !p.HoldsWrites || cl.Replicates || cmd == nil || !cmd.ArityOK(len(args)) {
		return false
	}
	if (p.Writes || !timed) && !x.mayWrite(cl, cmd, args) {
		return false
	}
	if !cl.Held {
		cl.Held, cl.HeldAt = true, len(p.Held)
		p.Held = append(p.Held, cl)
	}
	return true
}

// mayWrite reports whether a command can change the keyspace, or have it changed once it is queued; for EXEC that is what was queued.
func (x *Executor) mayWrite(cl *command.Client, cmd *command.Command, args [][]byte) bool {
	if cmd.Flags&command.RunsQueue != 0 {
		return cl.Multi != nil && TransactionOf(cl).writes
	}
	if cmd.Sub != nil && len(args) > 1 {
		if sub := cmd.Subcommand(args[1]); sub != nil {
			cmd = sub
		}
	}
	if flags, declared := x.declaredFlags(cmd, args); declared {
		return flags&script.NoWrites == 0
	}
	return cmd.Flags&(command.Write|command.MayReplicate) != 0
}

// declaredFlags returns the flags of the script that a command is going to run, if it is one that declares them.
func (x *Executor) declaredFlags(cmd *command.Command, args [][]byte) (flags script.Flags, declared bool) {
	if cmd.Runs == command.NoProgram {
		return 0, false
	}
	return x.above.ScriptFlags(cmd, args)
}

// release forgets a client that waits for the end of the pause, since it goes.
func (p *pause) release(cl *command.Client) {
	if !cl.Held {
		return
	}
	cl.Held = false
	p.Held = command.SwapOut(p.Held, cl.HeldAt)
	if cl.HeldAt < len(p.Held) {
		p.Held[cl.HeldAt].HeldAt = cl.HeldAt
	}
}

// EndPause lets the clients go on when a pause is over. The caller holds the executor's lock; now is in ns.
func (x *Executor) EndPause(now int64) {
	p := &x.Pause
	if p.Until == 0 || now < p.Until {
		return
	}
	p.Until, p.Writes = 0, false
	x.resumeHeld()
}

// HoldWrites has clients' commands that may write wait, whatever CLIENT PAUSE says, until it is called with false. Keys stay as they are meanwhile. The
// caller holds the executor's lock.
func (x *Executor) HoldWrites(hold bool) {
	p := &x.Pause
	p.HoldsWrites = hold
	if hold {
		x.Gate.Set(command.GatePaused, true)
	} else {
		x.resumeHeld()
	}
}

// resumeHeld lets the clients go on that wait. Those who still have to are held back again.
func (x *Executor) resumeHeld() {
	p := &x.Pause
	held := p.Held
	p.Held = nil
	x.Gate.Set(command.GatePaused, p.Until != 0 || p.HoldsWrites)
	for _, cl := range held {
		cl.Held = false
		if cl.Conn.Client != nil && !cl.Conn.Closing() {
			cl.Conn.Resume()
		}
	}
}
