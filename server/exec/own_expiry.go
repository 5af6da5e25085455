package exec

import (
	"time"

	"headgate/server/command"
	"headgate/store"
)

// A replica leaves keys that are past their time to its primary. Of those to which a client of a writable replica has given a time the
// primary knows nothing, so the replica remembers them and removes them itself, as Redis does (expire.c, slaveKeysWithExpire).

const (
	ownExpiriesMax   = 1 << 20 // names remembered in all; keys beyond that stay until the server is a primary
	ownExpiriesAlive = 32      // names in one round whose time has not come, after which the others have to wait
	ownExpiriesLook  = 64      // names between two looks at the clock
	ownExpiryBytes   = 48      // what a name takes up beside its letters
)

// ownExpiries are the names of the keys to which clients of a writable replica have given a time. The executor's lock guards it.
type ownExpiries struct {
	databases []ownNames // nil before there is one
	count     int
	bytes     int // that they take up, about
}

// ownNames are those of one database.
type ownNames struct {
	names map[string]struct{}
	bytes int
}

// OwnExpiries is how many keys a writable replica removes itself when their time has come, and how many bytes it takes to remember them. The
// caller holds the executor's lock.
func (x *Executor) OwnExpiries() (count, bytes int) { return x.own.count, x.own.bytes }

// ForgetOwnExpiries is told that all keys of a database have gone or have been replaced by others. The caller holds the executor's lock.
func (x *Executor) ForgetOwnExpiries(db *store.DB) { x.own.forget(db.Index()) }

func (o *ownExpiries) forget(db int) {
	if o.databases == nil {
		return
	}
	o.count -= len(o.databases[db].names)
	o.bytes -= o.databases[db].bytes
	o.databases[db] = ownNames{}
}

func (o *ownExpiries) remove(db int, name string) {
	delete(o.databases[db].names, name)
	o.grow(db, -1, -ownExpiryBytes-len(name))
}

func (o *ownExpiries) grow(db, names, bytes int) {
	o.databases[db].bytes += bytes
	o.bytes += bytes
	o.count += names
}

// ownTimes appends the times of the keys that a command names, 0 for those that have none or are not there.
func ownTimes(dst []int64, c *command.Ctx, cmd *command.Command, args [][]byte) []int64 {
	eachKey(cmd, args, func(name []byte) {
		at := int64(0)
		if e, ok := c.DB.Peek(c.Core.Keys.Key(name)); ok {
			at = e.ExpireAt()
		}
		dst = append(dst, at)
	})
	return dst
}

// rememberOwn remembers the keys whose times a command has changed.
func (x *Executor) rememberOwn(before []int64, c *command.Ctx, cmd *command.Command, args [][]byte) {
	var room [8]int64
	after, n := ownTimes(room[:0], c, cmd, args), 0
	eachKey(cmd, args, func(name []byte) {
		if n < len(before) && after[n] != 0 && after[n] != before[n] {
			x.own.add(x.Keys.Databases(), c.DB.Index(), name)
		}
		n++
	})
}

func (o *ownExpiries) add(databases, db int, name []byte) {
	if o.count >= ownExpiriesMax {
		return
	}
	if o.databases == nil {
		o.databases = make([]ownNames, databases)
	}
	if o.databases[db].names == nil {
		o.databases[db].names = map[string]struct{}{}
	}
	names := o.databases[db].names
	if _, known := names[string(name)]; !known {
		names[string(name)] = struct{}{}
		o.grow(db, 1, ownExpiryBytes+len(name))
	}
}

// eachKey calls fn for each key that a command names.
func eachKey(cmd *command.Command, args [][]byte, fn func(name []byte)) {
	var room [8]int
	for _, k := range cmd.Keys {
		if k.Access == command.NotKey {
			continue
		}
		for _, i := range k.Find(room[:0], args) {
			fn(args[i])
		}
	}
}

// expireOwn removes keys to which clients of this replica have given a time that is over, and reports whether there is likely much more to
// do. The caller holds the executor's lock.
func (x *Executor) expireOwn(nowMs int64) (more bool) {
	o := &x.own
	if !x.Gate.Has(command.GateFollows) {
		*o = ownExpiries{}
	}
	if o.count == 0 || x.LazyExpireOnly || x.Gate.Has(command.GateHalts|command.GateDisk) {
		return false
	}
	keeps := x.Keys.KeepExpired(false)
	defer x.Keys.KeepExpired(keeps)
	start, seen, alive := time.Now(), 0, 0
	for db := range o.databases {
		for name := range o.databases[db].names { // in random order
			if e, ok := x.Keys.DB(db).Look(x.Keys.Key([]byte(name)), nowMs); ok && e.ExpireAt() != 0 {
				alive++
			} else {
				o.remove(db, name)
			}
			if alive >= ownExpiriesAlive {
				return false
			}
			if seen++; seen%ownExpiriesLook == 0 && time.Since(start) > command.SliceTime*3/4 {
				return true
			}
		}
	}
	return false
}
