package command

import (
	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// ReadHash opens the hash at args[i] for reading, and counts the hit or the miss. It sends the error for another type and returns
// ok false.
func (c *Ctx) ReadHash(i int) (h store.Hash, found, ok bool) {
	h, found, err := c.DB.Hash(c.Key(i), c.Now)
	c.CountRead(i, found || err != nil)
	if err != nil {
		c.Fail(err)
		return h, false, false
	}
	return h, found, true
}

// ChangeHash opens the hash at args[i] for a change, which may create it. It sends the error for another type and returns ok false.
func (c *Ctx) ChangeHash(i int) (h store.Hash, ok bool) {
	h, err := c.DB.HashCreate(c.Key(i), c.Now)
	if err != nil {
		c.Fail(err)
		return h, false
	}
	return h, true
}

// ReadZSet opens the sorted set at args[i] for reading, and counts the hit or the miss. It sends the error for another type and
// returns ok false.
func (c *Ctx) ReadZSet(i int) (z store.ZSet, found, ok bool) {
	z, found, err := c.DB.ZSet(c.Key(i), c.Now)
	c.CountRead(i, found || err != nil)
	if err != nil {
		c.Fail(err)
		return z, false, false
	}
	return z, found, true
}

// ChangeZSet opens the sorted set at args[i] for a change, which may create it. It sends the error for another type and returns
// ok false.
func (c *Ctx) ChangeZSet(i int) (z store.ZSet, ok bool) {
	z, err := c.DB.ZSetCreate(c.Key(i), c.Now)
	if err != nil {
		c.Fail(err)
		return z, false
	}
	return z, true
}

// ReadSet opens the set at args[i] for reading, and counts the hit or the miss. It sends the error for another type and returns ok
// false.
func (c *Ctx) ReadSet(i int) (s store.Set, found, ok bool) {
	s, found, err := c.DB.Set(c.Key(i), c.Now)
	c.CountRead(i, found || err != nil)
	if err != nil {
		c.Fail(err)
		return s, false, false
	}
	return s, found, true
}

// ChangeSet opens the set at args[i] for a change, which may create it. It sends the error for another type and returns ok false.
func (c *Ctx) ChangeSet(i int) (s store.Set, found, ok bool) {
	s, found, err := c.DB.Set(c.Key(i), c.Now)
	if err != nil {
		c.Fail(err)
		return s, false, false
	}
	return s, found, true
}

// CountRead counts a reader's hit or miss of the key at args[i], and publishes a miss.
func (c *Ctx) CountRead(i int, hit bool) {
	c.CountLookup(hit)
	if !hit {
		c.Missed(c.Args[i])
	}
}

// ReadList opens the list at args[i] for reading, and counts the hit or the miss. It sends the error for another type and returns ok
// false.
func (c *Ctx) ReadList(i int) (l store.List, found, ok bool) {
	l, found, err := c.DB.List(c.Key(i), c.Now)
	c.CountRead(i, found || err != nil)
	if err != nil {
		c.Fail(err)
		return l, false, false
	}
	return l, found, true
}

// ChangeList opens the list at args[i] for a change, which may create it. It sends the error for another type and returns ok false.
func (c *Ctx) ChangeList(i int) (l store.List, found, ok bool) {
	l, found, err := c.DB.List(c.Key(i), c.Now)
	if err != nil {
		c.Fail(err)
		return l, false, false
	}
	return l, found, true
}

// CountLookup counts a reader's hit or miss.
func (c *Ctx) CountLookup(hit bool) {
	if hit {
		c.Core.Stats.KeyspaceHits++
	} else {
		c.Core.Stats.KeyspaceMisses++
	}
}

// DeleteKey removes the key k, which is e.
func (c *Ctx) DeleteKey(k store.Key, e *store.Entry) {
	e.Delete()
	c.Effect("DEL", k.Name)
	c.Notify(config.EventGeneric, "del", k.Name)
}

// IntegerText is room for the digits of a string that is kept as an integer.
type IntegerText [20]byte

// StoredInteger reads a value that is one number, or returns the wire form of why the key is none.
func StoredInteger(e *store.Entry) (n int64, wireError string) {
	if e.Kind() != store.KindString {
		return 0, ErrWrongType
	}
	if n, ok := e.Int(); ok {
		return n, ""
	}
	n, ok := number.ParseInt(e.Bytes(nil))
	if !ok {
		return 0, ErrNotInteger
	}
	return n, ""
}
