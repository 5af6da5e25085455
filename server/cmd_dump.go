package server

import (
	"headgate/persistence/rdb"
	"headgate/server/config"
	"headgate/store"
)

const (
	errBusyKey    = "BUSYKEY Target key name already exists."
	errPayload    = "ERR DUMP payload version or checksum are wrong"
	errBadData    = "ERR Bad data format"
	errRestoreOff = `ERR RESTORE command not allowed. If the enable-restore-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`
)

func dump(c *Ctx) {
	e, ok := c.db.Find(c.key(1), c.now)
	if !ok {
		c.missed(c.args[1])
		c.reply.Null()
		return
	}
	enc := rdb.NewEncoder(c.cfg.RDBCompression)
	enc.BeginPayload()
	e.Emit(enc)
	enc.EndPayload()
	c.reply.Bulk(enc.Take(nil))
}

// restoreArgs are the arguments of RESTORE behind the payload.
type restoreArgs struct {
	ttl               int64
	replace, absolute bool
	idle, uses        int64 // -1: not given
}

// parseRestore reads the arguments, or sends an error and returns false.
func (c *Ctx) parseRestore() (a restoreArgs, ok bool) {
	a.idle, a.uses = -1, -1
	for i := 4; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		switch {
		case c.is(i, "REPLACE"):
			a.replace = true
		case c.is(i, "ABSTTL"):
			a.absolute = true
		case c.is(i, "IDLETIME") && more && a.uses < 0:
			i++
			n, ok := c.integer(i)
			if !ok {
				return a, false
			}
			if n < 0 {
				c.err("ERR Invalid IDLETIME value, must be >= 0")
				return a, false
			}
			a.idle = n
		case c.is(i, "FREQ") && more && a.idle < 0:
			i++
			n, ok := c.integer(i)
			if !ok {
				return a, false
			}
			if n < 0 || n > 255 {
				c.err("ERR Invalid FREQ value, must be >= 0 and <= 255")
				return a, false
			}
			a.uses = n
		default:
			c.err(errSyntax)
			return a, false
		}
	}
	return a, true
}

// restore implements RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]. The payload is read twice:
// once to see whether it is whole, so that one that is not changes nothing.
func restore(c *Ctx) {
	if !c.cfg.EnableRestoreCommand.Allows(c.client.local()) && c.client.id != 0 { // a log that is replayed is no client
		c.err(errRestoreOff)
		return
	}
	a, ok := c.parseRestore()
	if !ok {
		return
	}
	k := c.key(1)
	_, taken := c.db.Find(k, c.now)
	if taken && !a.replace {
		c.err(errBusyKey)
		return
	}
	if a.ttl, ok = c.integer(2); !ok {
		return
	}
	if a.ttl < 0 {
		c.err("ERR Invalid TTL value, must be >= 0")
		return
	}
	body, err := rdb.CheckPayload(c.args[3])
	if err != nil {
		c.err(errPayload)
		return
	}
	if rdb.CheckValue(body, &valueChecker{}) != nil {
		c.err(errBadData)
		return
	}
	if a.ttl != 0 && !a.absolute {
		a.ttl += c.now
	}
	c.restoreValue(k, body, a.ttl)
	c.restoreUse(k, a)
	c.ok()
}

// restoreUse has the key pass for used when the arguments say, if that is kept.
func (c *Ctx) restoreUse(k store.Key, a restoreArgs) {
	e, ok := c.db.Peek(k)
	counts := c.core.countsUses
	switch {
	case ok && counts && a.uses >= 0:
		e.SetUses(int(a.uses))
	case ok && !counts && a.idle >= 0:
		e.SetIdle(a.idle)
	}
}

// restoreValue makes the key a payload's value. A time that has passed leaves no key.
func (c *Ctx) restoreValue(k store.Key, body []byte, expireAt int64) {
	defer c.replacing()()
	if e, ok := c.db.Find(k, c.now); ok {
		e.Delete()
		if expireAt != 0 && expireAt < c.now {
			c.effect("DEL", k.Name)
			c.notify(config.EventGeneric, "del", k.Name)
		}
	}
	if expireAt != 0 && expireAt < c.now {
		return
	}
	l := valueLoader{db: c.db}
	l.begin(c.core.keys, k.Name, expireAt)
	if err := rdb.ReadValue(body, &l); err != nil {
		panic("server: a payload that was read once cannot be read again: " + err.Error())
	}
	c.effect("RESTORE", k.Name, expireAt, c.args[3], "REPLACE", "ABSTTL")
	c.notify(config.EventGeneric, "restore", k.Name)
}

// valueChecker is told a value and looks for what could not be loaded.
type valueChecker struct {
	seen      map[string]bool
	consumers map[string]bool // of the present group of a stream
	parts     int
}

func (v *valueChecker) begin() error {
	v.seen = map[string]bool{}
	return nil
}

func (v *valueChecker) once(element []byte) error {
	v.parts++
	if v.seen[string(element)] {
		return rdb.ErrDuplicate
	}
	v.seen[string(element)] = true
	return nil
}

// The methods of rdb.ValueSink.

func (v *valueChecker) Int(int64) error                  { return nil }
func (v *valueChecker) Text([]byte) error                { return nil }
func (v *valueChecker) Hash(int) error                   { return v.begin() }
func (v *valueChecker) Pair(field, _ []byte) error       { return v.once(field) }
func (v *valueChecker) ZSet(int) error                   { return v.begin() }
func (v *valueChecker) Scored(m []byte, _ float64) error { return v.once(m) }
func (v *valueChecker) Set(int) error                    { return v.begin() }
func (v *valueChecker) Member(m []byte) error            { return v.once(m) }
func (v *valueChecker) List(int) error                   { return v.begin() }
func (v *valueChecker) Element([]byte) error {
	v.parts++
	return nil
}
func (v *valueChecker) Stream(int) error                           { return v.begin() }
func (v *valueChecker) StreamNode(rdb.StreamID, []byte, int) error { return nil }

func (v *valueChecker) StreamInfo(int, rdb.StreamID, rdb.StreamID, rdb.StreamID, uint64) error {
	v.parts++ // a stream may be empty
	return nil
}

func (v *valueChecker) StreamGroup(name []byte, _ rdb.StreamID, _ int64) error {
	v.consumers = map[string]bool{}
	return v.once(name)
}

func (v *valueChecker) StreamPending(rdb.StreamID, int64, uint64) error { return nil }

func (v *valueChecker) StreamConsumer(name []byte, _ int64) error {
	if v.consumers[string(name)] {
		return rdb.ErrDuplicate
	}
	v.consumers[string(name)] = true
	return nil
}

func (v *valueChecker) StreamOwned(rdb.StreamID) error { return nil }

func (v *valueChecker) End() error {
	if v.parts == 0 {
		return errEmptyCollection
	}
	return nil
}
