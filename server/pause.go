package server

import "headgate/server/script"

// pause is what CLIENT PAUSE has set.
type pause struct {
	until  int64 // ns; 0 = not paused
	writes bool  // only commands that may write are held back
	held   []*Client
}

// holdsBack reports whether a client's command has to wait for the end of a pause. The client goes on when it ends. A command that
// will be refused does not wait for that.
func (x *Executor) holdsBack(cl *Client, cmd *Command, args [][]byte, now int64) bool {
	p := &x.pause
	if p.until == 0 || now >= p.until || cmd == nil || !cmd.arityOK(len(args)) {
		return false
	}
	if p.writes && !x.mayWrite(cl, cmd, args) {
		return false
	}
	if !cl.held {
		cl.held, cl.heldAt = true, len(p.held)
		p.held = append(p.held, cl)
	}
	return true
}

// mayWrite reports whether a command can change the keyspace, or have it changed once it is queued; for EXEC that is what was queued.
func (x *Executor) mayWrite(cl *Client, cmd *Command, args [][]byte) bool {
	if cmd.Flags&RunsQueue != 0 {
		return cl.multi != nil && transactionOf(cl).writes
	}
	if cmd.Sub != nil && len(args) > 1 {
		if sub := cmd.subcommand(args[1]); sub != nil {
			cmd = sub
		}
	}
	if flags, declared := x.declaredFlags(cmd, args); declared {
		return flags&script.NoWrites == 0
	}
	return cmd.Flags&(Write|MayReplicate) != 0
}

// declaredFlags returns the flags of the script that a command is going to run, if it is one that declares them.
func (x *Executor) declaredFlags(cmd *Command, args [][]byte) (flags script.Flags, declared bool) {
	if cmd.Runs == NoProgram {
		return 0, false
	}
	return x.scriptFlags(cmd, args)
}

// release forgets a client that waits for the end of the pause, since it goes.
func (p *pause) release(cl *Client) {
	if !cl.held {
		return
	}
	cl.held = false
	p.held = swapOut(p.held, cl.heldAt)
	if cl.heldAt < len(p.held) {
		p.held[cl.heldAt].heldAt = cl.heldAt
	}
}

// endPause lets the clients go on when a pause is over.
func (x *Executor) endPause(now int64) {
	p := &x.pause
	if p.until == 0 || now < p.until {
		return
	}
	held := p.held
	*p = pause{}
	x.gate.set(gatePaused, false)
	for _, cl := range held {
		cl.held = false
		if cl.conn.Client != nil && !cl.conn.Closing() {
			cl.conn.Resume()
		}
	}
}
