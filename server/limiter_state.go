package server

import (
	"headgate/server/config"
	"headgate/store"
	"headgate/throttle"
)

// Limiters decide first, and then keep what they have decided by one function each: storeTAT, storeCount, storeSlices, storeEntries, and
// for leases acquire. Before its first change each of them asks refuseState.

// couldBeKept is what refuseState answers in a rehearsal instead of nothing, so that nothing is kept.
const couldBeKept = "rehearsed"

// refuseState returns the error with which a limiter is refused that has something to keep which cannot be kept now, or nothing. grows
// tells that it takes room: for a new key, or for more entries than the same call takes out. What changes in place takes none, so that
// no number of keys that strangers make up keeps a limiter from its own.
func (c *Ctx) refuseState(grows bool) string {
	if !c.core.gate.has(gateUnwritable | gateShort) {
		return ""
	}
	return c.refuseStateNow(grows)
}

// refuseStateNow is refuseState where something is amiss.
func (c *Ctx) refuseStateNow(grows bool) string {
	switch {
	case c.core.gate.has(gateUnwritable):
		return c.core.gate.unwritable()
	case grows && c.lacksRoom():
		return errOOM
	case c.rehearses:
		return couldBeKept
	}
	return ""
}

// lacksRoom reports whether the running command may not take more memory. For one that a script calls that is the script's to say.
func (c *Ctx) lacksRoom() bool {
	if c.script != nil {
		return c.script.lacksRoom()
	}
	return c.core.gate.has(gateShort) && !c.core.gate.has(gateLoading)
}

// storeTAT does to the key k what a decision asks for, or returns why that cannot be kept. e is the key if it exists.
func (c *Ctx) storeTAT(k store.Key, e *store.Entry, exists bool, d *throttle.Decision) (refusal string) {
	if d.Write == throttle.Keep {
		return ""
	}
	if refusal = c.refuseState(!exists); refusal != "" {
		return refusal
	}
	if d.Write == throttle.Delete {
		c.deleteState(k, e)
	} else {
		c.setInteger(k, e, exists, d.TAT, throttle.ExpireAtMs(d.TAT))
	}
	return ""
}

// storeCount keeps a fixed window's counter at the key k, which e is if it exists, or returns why it cannot be kept.
func (c *Ctx) storeCount(k store.Key, e *store.Entry, exists bool, d *throttle.FixedDecision) (refusal string) {
	if d.Write == throttle.Keep {
		return ""
	}
	if refusal = c.refuseState(!exists); refusal != "" {
		return refusal
	}
	c.setInteger(k, e, exists, d.Count, d.ExpireAtMs)
	return ""
}

// expireState has the key k, which is e, expire at a time.
func (c *Ctx) expireState(k store.Key, e *store.Entry, at int64) {
	e.SetExpireAt(at)
	if c.logs() {
		c.effect("PEXPIREAT", k.Name, at)
	}
	c.notify(config.EventGeneric, "expire", k.Name)
}

// setInteger makes the key k, which e is if it exists, the number n until expireAt.
func (c *Ctx) setInteger(k store.Key, e *store.Entry, exists bool, n, expireAt int64) {
	if exists {
		e.SetInt(n)
		e.SetExpireAt(expireAt)
	} else {
		c.db.SetInt(k, n, expireAt)
	}
	c.effectSet(k.Name, n, expireAt)
	c.notify(config.EventString, "set", k.Name)
	c.notify(config.EventGeneric, "expire", k.Name)
}
