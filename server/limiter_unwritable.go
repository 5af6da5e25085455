package server

import (
	"time"

	"headgate/server/config"
	"headgate/server/limiter"
)

// inMemory is what limiters have kept in memory alone, since nothing could be written and limiter-when-unwritable has it so. The executor's
// lock guards it.
type inMemory struct {
	changes  uint64 // since the start
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

// keep does what a call's change says without having it logged.
func (m *inMemory) keep(s *state, call *limiter.Call) {
	c := s.c
	if c.core.gate.has(gateDisk) && c.logs() {
		m.missing = true
		c.core.effects.skip(func() { s.change(call) })
	} else {
		s.change(call) // the log takes it, or there is none
	}
	m.changes++
	if m.warnedAt == 0 || c.nowNs-m.warnedAt >= memoryWarnings {
		c.core.log.Warn("limiters go on in memory alone: what they change now is forgotten by a restart", "why", c.core.gate.unwritable(), "changes", m.changes-m.warned)
		m.warnedAt, m.warned = c.nowNs, m.changes
	}
}

// takeMissing reports whether the append-only file lacks changes, for somebody who has it written anew.
func (m *inMemory) takeMissing() bool {
	missing := m.missing
	m.missing = false
	return missing
}
