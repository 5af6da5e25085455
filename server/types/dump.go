package types

import (
	"headgate/persistence/rdb"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

// ErrPayload is what a payload is answered with that no DUMP has made, by RESTORE as by FUNCTION RESTORE.
const ErrPayload = "ERR DUMP payload version or checksum are wrong"

// Errors of RESTORE.
const (
	errBusyKey    = "BUSYKEY Target key name already exists."
	errBadData    = "ERR Bad data format"
	errRestoreOff = `ERR RESTORE command not allowed. If the enable-restore-command option is set to "local", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.`
)

func dump(c *command.Ctx) {
	e, ok := c.DB.Find(c.Key(1), c.Now)
	if !ok {
		c.Missed(c.Args[1])
		c.Reply.Null()
		return
	}
	enc := rdb.NewEncoder(c.Cfg.RDBCompression)
	enc.BeginPayload()
	e.Emit(enc)
	enc.EndPayload()
	c.Reply.Bulk(enc.Take(nil))
}

// restoreArgs are the arguments of RESTORE behind the payload.
type restoreArgs struct {
	ttl               int64
	replace, absolute bool
	idle, uses        int64 // -1: not given
}

// parseRestore reads the arguments, or sends an error and returns false.
func parseRestore(c *command.Ctx) (a restoreArgs, ok bool) {
	a.idle, a.uses = -1, -1
	for i := 4; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch {
		case c.Is(i, "REPLACE"):
			a.replace = true
		case c.Is(i, "ABSTTL"):
			a.absolute = true
		case c.Is(i, "IDLETIME") && more && a.uses < 0:
			i++
			n, ok := c.Integer(i)
			if !ok {
				return a, false
			}
			if n < 0 {
				c.Err("ERR Invalid IDLETIME value, must be >= 0")
				return a, false
			}
			a.idle = n
		case c.Is(i, "FREQ") && more && a.idle < 0:
			i++
			n, ok := c.Integer(i)
			if !ok {
				return a, false
			}
			if n < 0 || n > 255 {
				c.Err("ERR Invalid FREQ value, must be >= 0 and <= 255")
				return a, false
			}
			a.uses = n
		default:
			c.Err(command.ErrSyntax)
			return a, false
		}
	}
	return a, true
}

// restore implements RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]. The payload is read twice:
// once to see whether it is whole, so that one that is not changes nothing.
func restore(c *command.Ctx) {
	if !c.Cfg.EnableRestoreCommand.Allows(c.Client.Local()) && !c.Repeats() {
		c.Err(errRestoreOff)
		return
	}
	a, ok := parseRestore(c)
	if !ok {
		return
	}
	k := c.Key(1)
	_, taken := c.DB.Find(k, c.Now)
	if taken && !a.replace {
		c.Err(errBusyKey)
		return
	}
	if a.ttl, ok = c.Integer(2); !ok {
		return
	}
	if a.ttl < 0 {
		c.Err("ERR Invalid TTL value, must be >= 0")
		return
	}
	body, err := rdb.CheckPayload(c.Args[3])
	if err != nil {
		c.Err(ErrPayload)
		return
	}
	if rdb.CheckValue(body, &valueChecker{}) != nil {
		c.Err(errBadData)
		return
	}
	if a.ttl != 0 && !a.absolute {
		a.ttl += c.NowNs / 1e6 // not now, which stands still for what repeats
	}
	restoreValue(c, k, body, a.ttl)
	restoreUse(c, k, a)
	c.OK()
}

// restoreUse has the key pass for used when the arguments say, if that is kept.
func restoreUse(c *command.Ctx, k store.Key, a restoreArgs) {
	e, ok := c.DB.Peek(k)
	counts := c.Core.CountsUses
	switch {
	case ok && counts && a.uses >= 0:
		e.SetUses(int(a.uses))
	case ok && !counts && a.idle >= 0:
		e.SetIdle(a.idle)
	}
}

// restoreValue makes the key a payload's value. A time that has passed leaves no key.
func restoreValue(c *command.Ctx, k store.Key, body []byte, expireAt int64) {
	defer c.Replacing()()
	if e, ok := c.DB.Find(k, c.Now); ok {
		e.Delete()
		if expireAt != 0 && expireAt < c.Now {
			c.Effect("DEL", k.Name)
			c.Notify(config.EventGeneric, "del", k.Name)
		}
	}
	if expireAt != 0 && expireAt < c.Now {
		return
	}
	l := ValueLoader{DB: c.DB}
	l.Begin(c.Core.Keys, k.Name, expireAt)
	if err := rdb.ReadValue(body, &l); err != nil {
		panic("types: a payload that was read once cannot be read again: " + err.Error())
	}
	c.Effect("RESTORE", k.Name, expireAt, c.Args[3], "REPLACE", "ABSTTL")
	c.Notify(config.EventGeneric, "restore", k.Name)
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

// Int implements rdb.ValueSink.
func (v *valueChecker) Int(int64) error { return nil }

// Text implements rdb.ValueSink.
func (v *valueChecker) Text([]byte) error { return nil }

// Hash implements rdb.ValueSink.
func (v *valueChecker) Hash(int) error { return v.begin() }

// Pair implements rdb.ValueSink.
func (v *valueChecker) Pair(field, _ []byte) error { return v.once(field) }

// ZSet implements rdb.ValueSink.
func (v *valueChecker) ZSet(int) error { return v.begin() }

// Scored implements rdb.ValueSink.
func (v *valueChecker) Scored(m []byte, _ float64) error { return v.once(m) }

// Set implements rdb.ValueSink.
func (v *valueChecker) Set(int) error { return v.begin() }

// Member implements rdb.ValueSink.
func (v *valueChecker) Member(m []byte) error { return v.once(m) }

// List implements rdb.ValueSink.
func (v *valueChecker) List(int) error { return v.begin() }

// Element implements rdb.ValueSink.
func (v *valueChecker) Element([]byte) error {
	v.parts++
	return nil
}

// Stream implements rdb.ValueSink.
func (v *valueChecker) Stream(int) error { return v.begin() }

// StreamNode implements rdb.ValueSink.
func (v *valueChecker) StreamNode(rdb.StreamID, []byte, int) error { return nil }

// StreamInfo implements rdb.ValueSink.
func (v *valueChecker) StreamInfo(int, rdb.StreamID, rdb.StreamID, rdb.StreamID, uint64) error {
	v.parts++ // a stream may be empty
	return nil
}

// StreamGroup implements rdb.ValueSink.
func (v *valueChecker) StreamGroup(name []byte, _ rdb.StreamID, _ int64) error {
	v.consumers = map[string]bool{}
	return v.once(name)
}

// StreamPending implements rdb.ValueSink.
func (v *valueChecker) StreamPending(rdb.StreamID, int64, uint64) error { return nil }

// StreamConsumer implements rdb.ValueSink.
func (v *valueChecker) StreamConsumer(name []byte, _ int64) error {
	if v.consumers[string(name)] {
		return rdb.ErrDuplicate
	}
	v.consumers[string(name)] = true
	return nil
}

// StreamOwned implements rdb.ValueSink.
func (v *valueChecker) StreamOwned(rdb.StreamID) error { return nil }

// End implements rdb.ValueSink.
func (v *valueChecker) End() error {
	if v.parts == 0 {
		return errEmptyCollection
	}
	return nil
}
