package server

import (
	"headgate/internal/number"
	"headgate/server/config"
	"headgate/store"
)

// readHash opens the hash at args[i] for reading, and counts the hit or the miss. It sends the error for another type and returns
// ok false.
func (c *Ctx) readHash(i int) (h store.Hash, found, ok bool) {
	h, found, err := c.db.Hash(c.key(i), c.now)
	c.countRead(i, found || err != nil)
	if err != nil {
		c.fail(err)
		return h, false, false
	}
	return h, found, true
}

// changeHash opens the hash at args[i] for a change, which may create it. It sends the error for another type and returns ok false.
func (c *Ctx) changeHash(i int) (h store.Hash, ok bool) {
	h, err := c.db.HashCreate(c.key(i), c.now)
	if err != nil {
		c.fail(err)
		return h, false
	}
	return h, true
}

// readZSet opens the sorted set at args[i] for reading, and counts the hit or the miss. It sends the error for another type and
// returns ok false.
func (c *Ctx) readZSet(i int) (z store.ZSet, found, ok bool) {
	z, found, err := c.db.ZSet(c.key(i), c.now)
	c.countRead(i, found || err != nil)
	if err != nil {
		c.fail(err)
		return z, false, false
	}
	return z, found, true
}

// changeZSet opens the sorted set at args[i] for a change, which may create it. It sends the error for another type and returns
// ok false.
func (c *Ctx) changeZSet(i int) (z store.ZSet, ok bool) {
	z, err := c.db.ZSetCreate(c.key(i), c.now)
	if err != nil {
		c.fail(err)
		return z, false
	}
	return z, true
}

// readSet opens the set at args[i] for reading, and counts the hit or the miss. It sends the error for another type and returns ok
// false.
func (c *Ctx) readSet(i int) (s store.Set, found, ok bool) {
	s, found, err := c.db.Set(c.key(i), c.now)
	c.countRead(i, found || err != nil)
	if err != nil {
		c.fail(err)
		return s, false, false
	}
	return s, found, true
}

// changeSet opens the set at args[i] for a change, which may create it. It sends the error for another type and returns ok false.
func (c *Ctx) changeSet(i int) (s store.Set, found, ok bool) {
	s, found, err := c.db.Set(c.key(i), c.now)
	if err != nil {
		c.fail(err)
		return s, false, false
	}
	return s, found, true
}

// countRead counts a reader's hit or miss of the key at args[i], and tells of a miss.
func (c *Ctx) countRead(i int, hit bool) {
	c.countLookup(hit)
	if !hit {
		c.missed(c.args[i])
	}
}

// readList opens the list at args[i] for reading, and counts the hit or the miss. It sends the error for another type and returns ok
// false.
func (c *Ctx) readList(i int) (l store.List, found, ok bool) {
	l, found, err := c.db.List(c.key(i), c.now)
	c.countRead(i, found || err != nil)
	if err != nil {
		c.fail(err)
		return l, false, false
	}
	return l, found, true
}

// changeList opens the list at args[i] for a change, which may create it. It sends the error for another type and returns ok false.
func (c *Ctx) changeList(i int) (l store.List, found, ok bool) {
	l, found, err := c.db.List(c.key(i), c.now)
	if err != nil {
		c.fail(err)
		return l, false, false
	}
	return l, found, true
}

// countLookup counts a reader's hit or miss.
func (c *Ctx) countLookup(hit bool) {
	if hit {
		c.core.stats.keyspaceHits++
	} else {
		c.core.stats.keyspaceMisses++
	}
}

// deleteState removes the key k, which is e.
func (c *Ctx) deleteState(k store.Key, e *store.Entry) {
	e.Delete()
	c.effect("DEL", k.Name)
	c.notify(config.EventGeneric, "del", k.Name)
}

// storedInteger reads a value that is one number, or returns the wire form of why the key is none.
func storedInteger(e *store.Entry) (n int64, wireError string) {
	if e.Kind() != store.KindString {
		return 0, errWrongType
	}
	if n, ok := e.Int(); ok {
		return n, ""
	}
	n, ok := number.ParseInt(e.Bytes(nil))
	if !ok {
		return 0, errNotInteger
	}
	return n, ""
}
