package limits

import (
	"time"

	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
)

// InMemory is what limiters have kept in memory alone, since nothing could be written and limiter-when-unwritable has it so. The executor's
// lock guards it.
type InMemory struct {
	Changes  uint64 // since the start
	missing  bool   // some are not in the append-only file, and it has not been written anew since
	warnedAt int64  // ns, when the log last told of them
	warned   uint64 // how many there were then
}

// memoryWarnings is the shortest time between two log lines about changes that are kept in memory, in ns.
const memoryWarnings = int64(time.Minute)

// whenUnwritable is what becomes of a change while nothing can be written: what its policy says, if it has one that does.
func whenUnwritable(cfg *config.Config, p *limiter.Policy) limiter.Unwritable {
	if p != nil && p.SaysUnwritable {
		return p.Unwritable
	}
	return cfg.Unwritable
}

// keep makes one change of a key that a command has decided on, without having it logged.
func (m *InMemory) keep(c *command.Ctx, change func()) {
	if c.Core.Gate.Has(command.GateDisk) && c.Logs() {
		m.missing = true
		c.Core.Effects.Skip(change)
	} else {
		change() // the log takes it, or there is none
	}
	m.Changes++
	if m.warnedAt == 0 || c.NowNs-m.warnedAt >= memoryWarnings {
		c.Core.Logger.Warn("limiters go on in memory alone: what they change now is forgotten by a restart", "why", c.Core.Gate.Unwritable(), "changes", m.Changes-m.warned)
		m.warnedAt, m.warned = c.NowNs, m.Changes
	}
}

// Missing reports whether the append-only file lacks changes, so that it has to be written anew.
func (m *InMemory) Missing() bool { return m.missing }

// SetMissing tells that a file is begun that has all changes so far, or that it has come to nothing.
func (m *InMemory) SetMissing(missing bool) { m.missing = missing }
