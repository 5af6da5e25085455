package server

import (
	"math"
	"time"

	"headgate/server/config"
)

// Some things that happen around a command are rare enough to cost nothing as long as nobody wants them: one field, attentive, says
// whether anybody does.

// defaultSlowerThan is slowlog-log-slower-than's default, in µs. Below it even commands marked Fast may pass for slow, so each is
// timed.
const defaultSlowerThan = 10_000

// lookAround works out whether commands are to be attended to one by one, which of them are slow, and whether the store is to tell of
// changes.
func (s *Server) lookAround(cfg *config.Config) {
	s.slowlog.limit(cfg.SlowlogLogSlowerThan, cfg.SlowlogMaxLen)
	s.noteFrom = s.slowlog.from
	if ms := cfg.LatencyMonitorThreshold; ms > 0 && ms <= math.MaxInt64/int(time.Millisecond) {
		s.noteFrom = min(s.noteFrom, int64(ms)*int64(time.Millisecond))
	}
	s.timesAll = s.noteFrom < defaultSlowerThan*int64(time.Microsecond)
	s.attentive = s.tracking.clients > 0 || len(s.monitors) > 0 || s.timesAll || s.noTouchers > 0
	if cfg.NotifyEvents != 0 || s.tracking.clients > 0 {
		s.keys.SetObserver(observer{s})
	} else {
		s.keys.SetObserver(nil)
	}
}

// attend runs a command and does what goes with it for those who want more than its reply. Commands that a command calls, as EXEC and
// scripts do, come here too.
func (c *Ctx) attend(timed bool) {
	s, cmd, args := c.srv, c.cmd, c.args
	if c.client.id == 0 { // a log that is replayed is no client
		c.perform(timed)
		return
	}
	isScript := cmd.Flags&SkipMonitor != 0 && cmd.Group == GroupScripting
	if isScript && len(s.monitors) > 0 {
		c.showToMonitors(cmd, args)
	}
	if c.client.noTouch {
		s.keys.IgnoreUses(cmd.Flags&CountsUses == 0)
	}
	c.perform(timed || s.timesAll)
	s.keys.IgnoreUses(false)
	c.rememberKeys(cmd, args)
	if cmd.Flags&(SkipMonitor|Admin) == 0 && len(s.monitors) > 0 {
		c.showToMonitors(cmd, args)
	}
}

// setNoTouch has the commands of a client count as uses of their keys or not.
func (s *Server) setNoTouch(cl *Client, noTouch bool) {
	if cl.noTouch == noTouch {
		return
	}
	cl.noTouch = noTouch
	if noTouch {
		s.noTouchers++
	} else {
		s.noTouchers--
	}
	s.lookAround(s.config.Get())
}

// noteSlow enters a command that took so many ns into the slow log, and among the spikes of latency, if it belongs there.
func (c *Ctx) noteSlow(cmd *Command, args [][]byte, took int64) {
	s := c.srv
	if c.client.id == 0 {
		return
	}
	if took >= s.slowlog.from && cmd.Flags&SkipSlowlog == 0 {
		s.slowlog.add(c, cmd, args, took, c.cfg.SlowlogMaxLen)
	}
	event := eventCommand
	if cmd.Flags&Fast != 0 {
		event = eventFastCommand
	}
	s.watchLatency(event, time.Duration(took))
}

// forgetCaching ends what CLIENT CACHING has said of the one command behind it, which may be a whole transaction. cmd is nil for one that
// does not exist.
func (c *Ctx) forgetCaching(cmd *Command) {
	if mode := trackingOf(c.client); mode != nil && c.client.multi == nil && (cmd == nil || cmd.Flags&KeepsCaching == 0) {
		mode.caching = false
	}
}
