package observe

import (
	"fmt"
	"strconv"
	"time"

	"headgate/server/command"
)

// monitorCommand is MONITOR.
func (r *Recorder) monitorCommand() *command.Command {
	return &command.Command{
		Name: "monitor", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
		Summary: "Show every command that the server runs from now on.",
		Arity:   1, Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Reply: command.ReplySimple, Handler: r.monitor,
	}
}

// ErrMonitorKeys is what a monitoring client gets for a command that uses keys, in the words that Redis has for replicas.
const ErrMonitorKeys = "ERR Replica can't interact with the keyspace"

// monitor does not answer a client that monitors already.
func (r *Recorder) monitor(c *command.Ctx) {
	switch {
	case c.Client.Multi != nil:
		c.Err("ERR MONITOR isn't allowed for DENY BLOCKING client")
	case !c.Client.Monitors:
		c.Client.Monitors, c.Client.Limited, c.Client.MonitorsAt = true, true, len(r.Monitors)
		r.Monitors = append(r.Monitors, c.Client)
		r.Gate.Set(command.GateMonitors, true)
		c.OK()
	}
}

// EndMonitoring ends what MONITOR has begun.
func (r *Recorder) EndMonitoring(cl *command.Client) {
	if cl.Monitors {
		cl.Monitors, cl.Limited = false, cl.Subs != nil || cl.Replicates
		r.Monitors = command.SwapOut(r.Monitors, cl.MonitorsAt)
		if cl.MonitorsAt < len(r.Monitors) {
			r.Monitors[cl.MonitorsAt].MonitorsAt = cl.MonitorsAt
		}
		r.Gate.Set(command.GateMonitors, len(r.Monitors) > 0)
	}
}

// ShowToMonitors sends a command to the clients that monitor. A script is shown before the commands that it calls, everything else
// after it has been run.
func (r *Recorder) ShowToMonitors(c *command.Ctx, cmd *command.Command, args [][]byte) {
	now := r.Clock.Read()
	from := c.Client.Conn.Remote
	switch {
	case calledByScript(c):
		from = "lua"
	case c.Client.Unix:
		from = "unix:" + c.Cfg.UnixSocket
	}
	line := fmt.Appendf(nil, "+%d.%06d [%d %s]", now/int64(time.Second), now%int64(time.Second)/int64(time.Microsecond), c.Client.DB.Index(), from)
	for _, arg := range Redacted(c, cmd, args) {
		line = appendQuoted(append(line, ' '), arg)
	}
	line = append(line, "\r\n"...)
	for _, cl := range r.Monitors {
		r.Deliver(cl, line)
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
