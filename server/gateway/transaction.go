package gateway

import (
	"bytes"
	"fmt"
	"strconv"

	"headgate/internal/respcmd"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/resp"
)

// transaction is what a client has queued, on its way to the upstream as one write: MULTI, the commands, EXEC.
type transaction struct {
	proto     int
	db        int32 // its client's
	slot      int   // of all its keys; -1: none yet
	crosses   bool
	undecided bool // the call that was added last needs more than one round trip
	sent      int  // commands that the upstream runs
	request   []byte
	elements  []element
	refusal   []byte // in place of the elements: the upstream has run nothing
	scratch   resp.Writer
}

// element is what becomes one element of the answer.
type element struct {
	call  *call  // nil: it was answered here
	fixed []byte // then
	away  bool   // it is of another database, so that an answer to SELECT stands before its own and another one behind it
}

// add makes a call part of the transaction.
func (t *transaction) add(k *call) {
	if away := k.up.DB != t.db; away {
		t.request = appendSelect(t.request, k.up.DB)
		defer func() {
			t.request = appendSelect(t.request, t.db)
			t.elements[len(t.elements)-1].away = true
			t.sent += 2
		}()
	}
	if k.up.Slot >= 0 {
		t.crosses = t.crosses || t.slot >= 0 && t.slot != k.up.Slot
		t.slot = k.up.Slot
	}
	t.request = append(t.request, k.up.Request...)
	t.elements = append(t.elements, element{call: k})
	t.sent++
}

func appendSelect(dst []byte, db int32) []byte {
	return respcmd.Append(dst, []byte("SELECT"), strconv.AppendInt(nil, int64(db), 10))
}

// errNotInMulti is the error of a transaction with a command that is answered here.
const errNotInMulti = "EXECABORT Transaction discarded because of: '%s' is not served within MULTI while upstream is set"

// errUndecidedInMulti is the error of a transaction with a limiter, or an INCREX BYFLOAT, that a script cannot decide alone.
const errUndecidedInMulti = "EXECABORT Transaction discarded because of: '%s' with these arguments is not served within MULTI while upstream is set"

// runTransaction is the handler of EXEC. here answers where there is nothing to run.
func (g *Gateway) runTransaction(here command.Handler) command.Handler {
	return func(c *command.Ctx) {
		if !g.exec.HasQueued(c.Client) {
			here(c)
			return
		}
		t := &transaction{proto: c.Reply.Proto(), db: int32(c.DB.Index()), slot: -1, request: respcmd.Append(nil, []byte("MULTI"))}
		t.scratch.SetProto(t.proto)
		own, misplaced, undecided := c.Reply, "", ""
		g.collecting, c.Reply = t, &t.scratch
		g.exec.EachQueued(c, func(refusal string) {
			before := len(t.elements)
			switch {
			case refusal != "":
				c.Err(refusal)
			case c.Cmd.Flags&command.Deferring == 0:
				misplaced = c.Cmd.FullName
			default:
				g.exec.Call(c, false)
			}
			if t.undecided {
				t.undecided, undecided = false, c.Cmd.FullName
			}
			if len(t.elements) == before {
				t.elements = append(t.elements, element{fixed: append([]byte(nil), t.scratch.Bytes()...)})
			}
			t.scratch.Reset()
		})
		g.collecting, c.Reply = nil, own
		switch {
		case misplaced != "":
			c.Errf(errNotInMulti, misplaced)
		case undecided != "":
			c.Errf(errUndecidedInMulti, undecided)
		case t.crosses:
			c.Err(errCrossSlot)
		case t.sent == 0:
			t.writeReply(nil, c)
		default:
			g.sendTransaction(c, t)
			return
		}
		t.release(g)
	}
}

func (g *Gateway) sendTransaction(c *command.Ctx, t *transaction) {
	k := g.newCall(c, t)
	k.up.Slot, k.up.Proto, k.up.Replies, k.up.Keeps = t.slot, t.proto, int32(t.sent+2), true
	k.up.Request = respcmd.Append(append(k.up.Request, t.request...), []byte("EXEC"))
	t.request = nil
	g.send(c, k)
}

// release lets the calls of the elements be used again.
func (t *transaction) release(g *Gateway) {
	for _, e := range t.elements {
		if e.call != nil {
			g.release(e.call)
		}
	}
	t.elements = nil
}

func (t *transaction) parseReply(of *call, reply []byte) bool {
	values, ok := valuesOf(reply)
	if ok && len(values) == 1 { // an error instead of all: nothing was sent
		t.refusal = append([]byte(nil), reply...)
		return false
	}
	if !ok || len(values) != t.sent+2 {
		t.refusal = []byte("-UPSTREAM the upstream's reply is not that of a transaction\r\n")
		return false
	}
	if multi := values[0]; multi[0] == '-' {
		t.refusal = append([]byte("-UPSTREAM MULTI was refused, so that the commands may have run one by one: "), multi[1:]...)
		return false
	}
	answers, ok := elementsOf(values[len(values)-1])
	if !ok || len(answers) != t.sent {
		t.refusal = discarded(values[1:])
		return false
	}
	for i := range t.elements {
		if k := t.elements[i].call; k != nil {
			if t.elements[i].away {
				answers = answers[1:]
			}
			k.up.Kept = of.up.Kept
			k.failure, k.again = nil, k.handler.parseReply(k, answers[0])
			answers = answers[1:]
			if t.elements[i].away {
				answers = answers[1:]
			}
		}
	}
	return false
}

// discarded is the reply to EXEC, the last one. If it says that the transaction was discarded, it says for which of the errors before it: whoever has
// sent the commands has been told that they are queued.
func discarded(values [][]byte) []byte {
	last := values[len(values)-1]
	if !bytes.HasPrefix(last, []byte("-EXECABORT ")) {
		return append([]byte(nil), last...)
	}
	for _, value := range values[:len(values)-1] {
		if err := scripted.WireError(value); err != nil {
			return fmt.Appendf(nil, "-EXECABORT Transaction discarded because of: %s\r\n", command.OneLine(err.Error()))
		}
	}
	return append([]byte(nil), last...)
}

// errUndecided is the error of a limiter that would need another round trip.
const errUndecided = limiter.Error("UPSTREAM the state of this key cannot be decided on within MULTI")

func (t *transaction) writeReply(k *call, c *command.Ctx) {
	if t.refusal != nil {
		sendReply(c, t.refusal)
		t.releaseAll(k)
		return
	}
	own := c.Cmd
	c.Reply.Array(len(t.elements))
	for _, e := range t.elements {
		switch {
		case e.call == nil:
			c.Reply.Raw(e.fixed)
		case e.call.again:
			c.Err(string(errUndecided))
		default:
			c.Cmd = e.call.cmd
			c.Failed = false
			e.call.g.write(e.call, c)
		}
	}
	c.Cmd, c.Failed = own, false
	t.releaseAll(k)
}

func (t *transaction) writeFailure(k *call, c *command.Ctx) {
	sendFailure(c, k.failure)
	t.releaseAll(k)
}

// releaseAll is release at the end of a call; k is nil if there was none.
func (t *transaction) releaseAll(k *call) {
	if k != nil {
		t.release(k.g)
	}
}
