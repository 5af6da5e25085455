package admin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/pubsub"
)

// appendClient appends a client's line of CLIENT LIST. Fields of what headgate does not have show what they do in a Redis that
// does not use it.
func appendClient(c *command.Ctx, dst []byte, cl *command.Client) []byte {
	field := func(name, value string) {
		if len(dst) > 0 && dst[len(dst)-1] != '\n' {
			dst = append(dst, ' ')
		}
		dst = append(append(append(dst, name...), '='), value...)
	}
	number := func(name string, n int64) {
		field(name, "")
		dst = strconv.AppendInt(dst, n, 10)
	}
	queued, queuedBytes := int64(-1), 0
	if t := exec.TransactionOf(cl); t != nil {
		queued, queuedBytes = int64(t.Count), t.Size()
	}
	noted := cl.Waiting()
	input := noted
	if cl == c.Client { // the input buffers of others belong to their fronts
		input = cl.Conn.In.Offset() + cl.Conn.In.Buffered() - c.Worker.Position()
	}
	number("id", cl.ID)
	field("addr", cl.Conn.Remote)
	field("laddr", cl.Conn.Local)
	number("fd", int64(cl.Conn.FD))
	field("name", cl.Name)
	number("age", (c.Core.Clock.Mono()-cl.Created)/int64(time.Second))
	number("idle", (c.Core.Clock.Mono()-cl.Seen)/int64(time.Second))
	field("flags", clientFlags(c, cl))
	number("db", int64(cl.DB.Index()))
	subs := pubsub.SubscriptionsOf(cl)
	number("sub", int64(subs.Of(pubsub.KindChannel)))
	number("psub", int64(subs.Of(pubsub.KindPattern)))
	number("ssub", int64(subs.Of(pubsub.KindShard)))
	number("multi", queued)
	number("qbuf", int64(input))
	number("qbuf-free", 0)
	number("argv-mem", 0)
	number("multi-mem", int64(queuedBytes))
	number("rbs", int64(cl.Reply.Cap()))
	number("rbp", 0)
	number("obl", int64(cl.Reply.Len()))
	number("oll", 0)
	number("omem", int64(cl.Conn.Unsent()))
	number("tot-mem", int64(cl.Memory()-noted+input))
	field("events", "r")
	field("cmd", cl.LastCommandName())
	field("user", userName(cl))
	number("redir", pubsub.Redirection(cl))
	number("resp", int64(cl.Reply.Proto()))
	field("lib-name", cl.LibName)
	field("lib-ver", cl.LibVer)
	awaited, waits := exec.AwaitedBy(cl)
	if w, here := cl.Blocked.(command.Waiter); here {
		awaited.What, awaited.Until = w.Awaits()
		waits = true
	}
	if waits {
		field("waits-for", oneWord(awaited.What))
		number("waits-ms", max(awaited.Until-c.NowNs, 0)/int64(time.Millisecond))
	}
	return append(dst, '\n')
}

// oneWord is a key's name as a value in a line of fields: bytes that could end it, or are not ASCII, are written as \xhh.
func oneWord(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c > ' ' && c <= '~' && c != '\\' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// userName is the name of a client's user. A primary is none: it may do everything.
func userName(cl *command.Client) string {
	if cl.Primary {
		return "(superuser)"
	}
	return cl.User.Name()
}

// DescribeClient is a client's line for the log of denials, without its end.
func DescribeClient(c *command.Ctx, cl *command.Client) string {
	var room [512]byte // who guesses passwords has many lines made
	return strings.TrimSuffix(string(appendClient(c, room[:0], cl)), "\n")
}

// clientFlags returns the letters of a client's state, in Redis's order.
func clientFlags(c *command.Ctx, cl *command.Client) string {
	var flags []byte
	add := func(when bool, letter byte) {
		if when {
			flags = append(flags, letter)
		}
	}
	add(cl.Replicates, 'S')
	add(cl.Primary, 'M')
	add(cl.Monitors, 'O')
	add(cl.Subs != nil, 'P')
	add(cl.Multi != nil, 'x')
	add(cl.Held || cl.Blocked != nil, 'b')
	if mode := pubsub.TrackingOf(cl); mode != nil {
		add(true, 't')
		add(mode.Broken, 'R')
		add(mode.Bcast, 'B')
	}
	add(cl.Watches.Changed(c.Now), 'd')
	add(cl.Conn.Closing(), 'c')
	add(cl.Unix, 'U')
	add(cl.NoEvict, 'e')
	add(cl.NoTouch, 'T')
	add(len(flags) == 0, 'N')
	return string(flags)
}
