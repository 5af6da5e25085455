package gateway

import (
	"headgate/internal/respcmd"
	"headgate/server/command"
	"headgate/server/limiter/scripted"
	"headgate/server/types"
	"headgate/server/upstream"
)

const errCrossSlot = "CROSSSLOT Keys in request don't hash to the same slot"

// passed is a command that goes as it is, and so does its reply.
type passed struct{}

func (passed) parseReply(k *call, reply []byte) bool {
	if k.up.Kept {
		k.reply = reply
	} else {
		k.reply = append(k.reply[:0], reply...)
	}
	return false
}

func (passed) writeReply(k *call, c *command.Ctx)   { sendReply(c, k.reply) }
func (passed) writeFailure(k *call, c *command.Ctx) { sendFailure(c, k.failure) }

// noRight begins an error of the upstream that is about the rights of the gateway's user there, and not of the client's here.
const noRight = "-NOPERM "

// sendReply sends a reply of the upstream as it is, but has errors about rights tell whose they are.
func sendReply(c *command.Ctx, reply []byte) {
	if len(reply) > len(noRight) && string(reply[:len(noRight)]) == noRight {
		c.Reply.Raw([]byte(noRight + scripted.OfUpstream))
		reply = reply[len(noRight):]
	}
	c.Reply.Raw(reply)
}

// pass has the context's command go to a slot's node as it is; -1 is any.
func (g *Gateway) pass(c *command.Ctx, slot int, what handler) {
	g.send(c, g.newPassed(c, slot, what))
}

// newPassed is pass, but for the sending.
func (g *Gateway) newPassed(c *command.Ctx, slot int, what handler) *call {
	k := g.newCall(c, what)
	k.up.Slot, k.up.Keeps = slot, true
	k.up.Request = respcmd.Append(k.up.Request, c.Args...)
	return k
}

// slotOf returns the slot of the context's keys, -1 if there are none or the upstream is no cluster. ok is false if they lie in several.
func (g *Gateway) slotOf(c *command.Ctx) (slot int, ok bool) {
	if !g.Up.Cluster() {
		return -1, true
	}
	slot = -1
	var indexes [8]int
	for _, spec := range c.Cmd.Keys {
		for _, i := range spec.Find(indexes[:0], c.Args) {
			s := int(upstream.Slot(c.Args[i]))
			if slot >= 0 && s != slot {
				return -1, false
			}
			slot = s
		}
	}
	return slot, true
}

// slotOfKey is slotOf for one key.
func (g *Gateway) slotOfKey(key []byte) int {
	if !g.Up.Cluster() {
		return -1
	}
	return int(upstream.Slot(key))
}

// passByKeys is the handler of commands that name keys.
func (g *Gateway) passByKeys(c *command.Ctx) {
	slot, ok := g.slotOf(c)
	if !ok {
		c.Err(errCrossSlot)
		return
	}
	if g.collecting == nil && isLong(c.Args) {
		if failure := g.Up.Resting(slot); failure != nil {
			sendFailure(c, failure)
			return
		}
	}
	g.pass(c, slot, passed{})
}

// longBytes is from how many bytes on a command is not copied for a node that rests: others wait meanwhile.
const longBytes = 64 << 10

func isLong(args [][]byte) bool {
	bytes := 0
	for _, arg := range args {
		bytes += len(arg)
	}
	return bytes >= longBytes
}

// passSort is passByKeys for SORT, which may read keys that nobody can tell before it runs.
func (g *Gateway) passSort(c *command.Ctx) {
	if types.MaySort(c) {
		g.passByKeys(c)
	}
}

// passUnlessBlocking is passByKeys for commands that block if their option BLOCK says so, and for no others that may.
func (g *Gateway) passUnlessBlocking(c *command.Ctx) {
	optional := false
	for _, arg := range c.Cmd.Args {
		optional = optional || arg.Token == "BLOCK" && arg.Optional
	}
	if !optional {
		refuse(c)
		return
	}
	switch blocks, ok := types.ReadBlocks(c.Args); {
	case !ok: // a later server may know what follows, and read keys to which nobody here has looked at the right
		c.Err(command.ErrSyntax)
	case blocks:
		refuse(c)
	default:
		g.passByKeys(c)
	}
}

// passToServer is the handler of commands about all keys of a server.
func (g *Gateway) passToServer(c *command.Ctx) {
	if g.Up.Cluster() {
		refuseBeforeCluster(c)
		return
	}
	g.pass(c, -1, passed{})
}
