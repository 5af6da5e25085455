package server

import (
	"strconv"
	"strings"
	"time"
)

// appendClient appends a client's line of CLIENT LIST. Fields of what headgate does not have show what they do in a Redis that
// does not use it.
func (c *Ctx) appendClient(dst []byte, cl *Client) []byte {
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
	if t := transactionOf(cl); t != nil {
		queued, queuedBytes = int64(t.count), t.size()
	}
	noted := int(cl.input.Load())
	input := noted
	if cl == c.client { // the input buffers of others belong to their fronts
		input = cl.conn.In.Offset() + cl.conn.In.Buffered() - c.worker.Position()
	}
	number("id", cl.id)
	field("addr", cl.conn.Remote)
	field("laddr", cl.conn.Local)
	number("fd", int64(cl.conn.FD))
	field("name", cl.name)
	number("age", (c.core.clock.Mono()-cl.created)/int64(time.Second))
	number("idle", (c.core.clock.Mono()-cl.seen)/int64(time.Second))
	field("flags", c.clientFlags(cl))
	number("db", int64(cl.db.Index()))
	subs := subscriptionsOf(cl)
	number("sub", int64(subs.of(kindChannel)))
	number("psub", int64(subs.of(kindPattern)))
	number("ssub", int64(subs.of(kindShard)))
	number("multi", queued)
	number("qbuf", int64(input))
	number("qbuf-free", 0)
	number("argv-mem", 0)
	number("multi-mem", int64(queuedBytes))
	number("rbs", int64(cl.reply.Cap()))
	number("rbp", 0)
	number("obl", int64(cl.reply.Len()))
	number("oll", 0)
	number("omem", int64(cl.conn.Unsent()))
	number("tot-mem", int64(cl.memory()-noted+input))
	field("events", "r")
	field("cmd", cl.lastCommandName())
	field("user", cl.user.Name())
	number("redir", redirection(cl))
	number("resp", int64(cl.reply.Proto()))
	field("lib-name", cl.libName)
	field("lib-ver", cl.libVer)
	return append(dst, '\n')
}

// describeClient is a client's line for the log of denials, without its end.
func describeClient(c *Ctx, cl *Client) string {
	return strings.TrimSuffix(string(c.appendClient(nil, cl)), "\n")
}

// clientFlags returns the letters of a client's state, in Redis's order.
func (c *Ctx) clientFlags(cl *Client) string {
	var flags []byte
	add := func(when bool, letter byte) {
		if when {
			flags = append(flags, letter)
		}
	}
	add(cl.monitors, 'O')
	add(cl.subs != nil, 'P')
	add(cl.multi != nil, 'x')
	add(cl.held || cl.blocked != nil, 'b')
	if mode := trackingOf(cl); mode != nil {
		add(true, 't')
		add(mode.broken, 'R')
		add(mode.bcast, 'B')
	}
	add(cl.watches.Changed(c.now), 'd')
	add(cl.conn.Closing(), 'c')
	add(cl.unix, 'U')
	add(cl.noEvict, 'e')
	add(cl.noTouch, 'T')
	add(len(flags) == 0, 'N')
	return string(flags)
}
