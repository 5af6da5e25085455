package replication

import (
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/resp"
)

// wait is a client that waits for replicas to have what was changed before it asked.
type wait struct {
	client *command.Client
	block  command.Sized // the client's wait as the executor knows it: another, or none, when this one is over
	offset int64         // behind what the replicas are to have
	wanted int64         // how many of them
}

// over reports whether the client waits no more.
func (w *wait) over() bool { return w.client.Blocked != w.block }

// asked is where in the stream replicas were last asked how far they have come.
type asked struct{ before, behind int64 }

const errWaitOnReplica = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be " +
	"writable (which is not the default) writes to replicas are just local and are not propagated."

// waitCommand is the declaration of WAIT.
func waitCommand(p *Primary) *command.Command {
	return &command.Command{
		Name: "wait", Group: command.GroupGeneric, Since: "3.0.0", Complexity: "O(1)",
		Summary: "Wait, for at most so many milliseconds, until so many replicas have acknowledged all earlier writes, and return how many have.",
		Arity:   3, Flags: command.NoScript | command.NotKeyspace | command.HomeOnly, Categories: acl.Connection,
		Tips: "request_policy:all_shards response_policy:agg_min",
		Args: []command.Arg{command.Integer("numreplicas"), command.Integer("timeout")}, Reply: command.ReplyInteger, Handler: p.wait,
	}
}

// wait implements WAIT numreplicas timeout. It waits for all that has been changed so far, by whomever; Redis for what had been changed when this client's command
// before it ended, which is a little less if others have changed something since.
func (p *Primary) wait(c *command.Ctx) {
	if c.Core.Gate.Has(command.GateFollows) {
		c.Err(errWaitOnReplica)
		return
	}
	wanted, ok := c.Integer(1)
	if !ok {
		return
	}
	until, ok := c.Timeout(2, command.TimeoutMs)
	if !ok {
		return
	}
	p.Effects.Feed()
	offset := p.offset()
	if p.asked.behind == offset {
		offset = p.asked.before // nothing but the question has come since
	}
	if have := p.countAcks(offset); have >= wanted || !c.MayBlock() {
		c.Reply.Int(have)
		return
	}
	if len(p.feeds) > 0 && p.asked.before != offset {
		p.askAcks()
		p.asked = asked{before: offset, behind: p.backlog.End()}
	}
	c.Block(command.BlockOn{Until: until, Late: func(reply *resp.Writer) { reply.Int(p.countAcks(offset)) }})
	p.waits = append(p.waits, wait{client: c.Client, block: c.Client.Blocked, offset: offset, wanted: wanted})
}

// countAcks counts the replicas that have acknowledged what is before an offset.
func (p *Primary) countAcks(offset int64) (n int64) {
	for _, f := range p.feeds {
		if f.state == feedOnline && !f.ended && f.acked >= offset {
			n++
		}
	}
	return n
}

// serveWaits answers the clients that have waited for what replicas have by now. The caller holds the executor's lock.
func (p *Primary) serveWaits() {
	if len(p.waits) == 0 {
		return
	}
	now := p.Clock.Read()
	for _, w := range p.waits {
		if !w.over() && p.countAcks(w.offset) >= w.wanted {
			p.exec.GiveUp(w.client, "", now)
		}
	}
	p.forgetWaits()
}

// forgetWaits lets go of those that are over.
func (p *Primary) forgetWaits() {
	kept := p.waits[:0]
	for _, w := range p.waits {
		if !w.over() {
			kept = append(kept, w)
		}
	}
	clear(p.waits[len(kept):])
	p.waits = kept
}
