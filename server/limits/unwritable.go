package limits

import (
	"time"

	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
)

// InMemory accounts for the changes that limiters have made in memory alone, because nothing could be written and limiter-when-unwritable or
// a policy allows that. The executor's lock guards it.
type InMemory struct {
	Changes  uint64 // since the start
	missing  bool   // some are not in the append-only file, and it has not been written anew since
	warnedAt int64  // ns, when the last warning was logged
	warned   uint64 // Changes at that time

	keys map[keyID]struct{} // which have such changes, the first maxKeysInMemory of them
}

// keyID stands for a key of a database. Two keys have the same by so rare a chance that it may be taken for certain.
type keyID struct {
	hash uint64
	db   int
}

// maxKeysInMemory is how many keys are remembered that have changes in memory alone.
const maxKeysInMemory = 1 << 16

// memoryWarnings is the shortest time between two log lines about changes that are kept in memory, in ns.
const memoryWarnings = int64(time.Minute)

// allows reports whether a change of the key k may be kept in memory alone, which is what its policy says, if it has one that does. Calls
// without a policy, such as RL.RELEASE, may also change a key that has changes in memory alone already: else a lease could be taken under a
// policy that says MEMORY, and not be given back.
func (m *InMemory) allows(c *command.Ctx, k store.Key, p *limiter.Policy) bool {
	if p != nil && p.SaysUnwritable {
		return p.Unwritable == limiter.KeepInMemory
	}
	if c.Cfg.Unwritable == limiter.KeepInMemory {
		return true
	}
	_, changed := m.keys[keyID{k.Hash, c.DB.Index()}]
	return p == nil && changed
}

// keep makes one change of the key k that a command has decided on, without having it logged.
func (m *InMemory) keep(c *command.Ctx, k store.Key, change func()) {
	if m.keys == nil {
		m.keys = make(map[keyID]struct{})
	}
	if len(m.keys) < maxKeysInMemory {
		m.keys[keyID{k.Hash, c.DB.Index()}] = struct{}{}
	}
	if c.Core.Gate.Has(command.GateDisk|command.GateRoom) && c.Core.Effects.Logged {
		if !m.missing {
			m.missing = true
			c.Core.Effects.NoteGap()
		}
		c.Core.Effects.Skip(change)
	} else {
		change() // the log takes it, or there is none
	}
	m.Changes++
	if m.warnedAt == 0 || c.NowNs-m.warnedAt >= memoryWarnings {
		c.Core.Logger.Warn("limiters continue in memory only: a restart forgets what they change now", "why", c.Core.Gate.Unwritable(), "changes", m.Changes-m.warned)
		m.warnedAt, m.warned = c.NowNs, m.Changes
	}
}

// ForgetKeys forgets which keys have changes in memory alone, as soon as they are in a file or can be.
func (m *InMemory) ForgetKeys(gate *command.Gate) {
	if !m.missing && !gate.Has(command.GateUnwritable) {
		m.keys = nil
	}
}

// Missing reports whether the append-only file lacks changes, so that it has to be written anew.
func (m *InMemory) Missing() bool { return m.missing }

// SetMissing is called with false when a file is begun that has all changes so far, and with true if that file is given up.
func (m *InMemory) SetMissing(missing bool) { m.missing = missing }
