package server

import (
	"fmt"
	"strconv"
	"time"
)

// monitorCommand is MONITOR.
func (r *Recorder) monitorCommand() *Command {
	return &Command{
		Name: "monitor", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Show every command that the server runs from now on.",
		Arity:   1, Flags: Admin | NoScript | Loading | Stale, Reply: ReplySimple, Handler: r.monitor,
	}
}

// errMonitorKeys is what a monitoring client gets for a command that uses keys, in the words that Redis has for replicas.
const errMonitorKeys = "ERR Replica can't interact with the keyspace"

// monitor does not answer a client that monitors already.
func (r *Recorder) monitor(c *Ctx) {
	switch {
	case c.client.multi != nil:
		c.err("ERR MONITOR isn't allowed for DENY BLOCKING client")
	case !c.client.monitors:
		c.client.monitors, c.client.limited, c.client.monitorsAt = true, true, len(r.monitors)
		r.monitors = append(r.monitors, c.client)
		r.gate.set(gateMonitors, true)
		c.ok()
	}
}

// endMonitoring ends what MONITOR has begun.
func (r *Recorder) endMonitoring(cl *Client) {
	if cl.monitors {
		cl.monitors, cl.limited = false, cl.subs != nil
		r.monitors = swapOut(r.monitors, cl.monitorsAt)
		if cl.monitorsAt < len(r.monitors) {
			r.monitors[cl.monitorsAt].monitorsAt = cl.monitorsAt
		}
		r.gate.set(gateMonitors, len(r.monitors) > 0)
	}
}

// showToMonitors sends a command to the clients that monitor. A script is shown before the commands that it calls, everything else
// after it has been run.
func (r *Recorder) showToMonitors(c *Ctx, cmd *Command, args [][]byte) {
	now := r.clock.Read()
	from := c.client.conn.Remote
	switch {
	case c.calledByScript():
		from = "lua"
	case c.client.unix:
		from = "unix:" + c.cfg.UnixSocket
	}
	line := fmt.Appendf(nil, "+%d.%06d [%d %s]", now/int64(time.Second), now%int64(time.Second)/int64(time.Microsecond), c.client.db.Index(), from)
	for _, arg := range c.redacted(cmd, args) {
		line = appendQuoted(append(line, ' '), arg)
	}
	line = append(line, "\r\n"...)
	for _, cl := range r.monitors {
		r.deliver(cl, line)
	}
}

// appendQuoted appends text in double quotes, with what is not printable in ASCII escaped.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, b := range text {
		switch b {
		case '\\', '"':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\a':
			dst = append(dst, `\a`...)
		case '\b':
			dst = append(dst, `\b`...)
		default:
			if b >= ' ' && b <= '~' {
				dst = append(dst, b)
				continue
			}
			dst = append(dst, `\x`...)
			if b < 0x10 {
				dst = append(dst, '0')
			}
			dst = strconv.AppendUint(dst, uint64(b), 16)
		}
	}
	return append(dst, '"')
}
