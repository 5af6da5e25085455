package server

import (
	"headgate/internal/number"
	"headgate/store"
)

const (
	errNumKeys       = "ERR numkeys should be greater than 0"
	errCountPositive = "ERR count should be greater than 0"
)

// popArgs are the keys of ZMPOP and its like, and what is to be taken out of the first that has members.
type popArgs struct {
	firstKey, lastKey int // argument indexes
	highest           bool
	count             int64
	single            bool // as BZPOPMIN: one member, which is sent beside the key
}

// zmpopArgs parses the number of keys at args[i] and all behind it, or sends the error and returns false.
func (c *Ctx) zmpopArgs(i int) (p popArgs, ok bool) {
	n, ok := number.ParseInt(c.args[i])
	if !ok || n < 1 {
		c.err(errNumKeys)
		return p, false
	}
	if n >= int64(len(c.args)-i-1) {
		c.err(errSyntax)
		return p, false
	}
	p = popArgs{firstKey: i + 1, lastKey: i + int(n), count: 1}
	i = p.lastKey + 1
	switch {
	case c.is(i, "MIN"):
	case c.is(i, "MAX"):
		p.highest = true
	default:
		c.err(errSyntax)
		return p, false
	}
	i++
	if i+1 < len(c.args) && c.is(i, "COUNT") {
		if p.count, ok = c.integerOr(i+1, 1, errCountPositive); !ok {
			return p, false
		}
		i += 2
	}
	if i < len(c.args) {
		c.err(errSyntax)
		return p, false
	}
	return p, true
}

func zmpop(c *Ctx) {
	if p, ok := c.zmpopArgs(1); ok && !c.popFirstZSet(p) {
		c.reply.NullArray()
	}
}

func bzmpop(c *Ctx) {
	p, ok := c.zmpopArgs(2)
	if !ok {
		return
	}
	if until, ok := c.timeout(1, timeoutSeconds); ok { // judged last, as Redis does
		c.popZSetOrWait(p, until)
	}
}

func bzpopMin(c *Ctx) { c.popOneOrWait(false) }
func bzpopMax(c *Ctx) { c.popOneOrWait(true) }

// popOneOrWait takes one member out of the sorted sets at all arguments but the last, which is the timeout.
func (c *Ctx) popOneOrWait(highest bool) {
	last := len(c.args) - 1
	if until, ok := c.timeout(last, timeoutSeconds); ok {
		c.popZSetOrWait(popArgs{firstKey: 1, lastKey: last - 1, highest: highest, count: 1, single: true}, until)
	}
}

// popFirstZSet removes members of the first sorted set that has any and sends them, or sends an error; if there are none it sends
// nothing and returns false.
func (c *Ctx) popFirstZSet(p popArgs) bool {
	for i := p.firstKey; i <= p.lastKey; i++ {
		z, ok := c.changeZSet(i)
		switch {
		case !ok:
			return true
		case z.Len() > 0:
			c.popWithKey(&z, c.args[i], p)
			return true
		}
	}
	return false
}

// popZSetOrWait is popFirstZSet, and has the client wait when there is nothing.
func (c *Ctx) popZSetOrWait(p popArgs, until int64) {
	if c.popFirstZSet(p) {
		return
	}
	if !c.mayBlock() {
		c.reply.NullArray()
		return
	}
	c.block(blockOn{kind: store.KindZSet, keys: c.args[p.firstKey : p.lastKey+1], until: until, serve: func(c *Ctx, k store.Key) bool {
		z, found, err := c.db.ZSet(k, c.now)
		if err != nil || !found {
			return false
		}
		c.popWithKey(&z, k.Name, p)
		return true
	}})
}

// popWithKey removes members of the sorted set of a name from one end, and sends the name and them with their scores, in pairs in
// both protocols.
func (c *Ctx) popWithKey(z *store.ZSet, name []byte, p popArgs) {
	n := int(min(p.count, int64(z.Len())))
	if p.single {
		c.reply.Array(3)
		c.reply.Bulk(name)
	} else {
		c.reply.Array(2)
		c.reply.Bulk(name)
		c.reply.Array(n)
	}
	c.takeMembers(z, n, p.highest, func(member []byte, score float64) {
		if !p.single {
			c.reply.Array(2)
		}
		c.reply.Bulk(member)
		c.reply.Double(score)
	})
	pop := "ZPOPMIN"
	if p.highest {
		pop = "ZPOPMAX"
	}
	c.effect(pop, name, n)
}

// takeMembers removes n members with the lowest scores, or the highest, and hands them to fn before.
func (c *Ctx) takeMembers(z *store.ZSet, n int, highest bool, fn func(member []byte, score float64)) {
	z.Range(0, n-1, highest, func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
	event := "zpopmin"
	if highest {
		event = "zpopmax"
		z.RemoveRank(z.Len()-n, z.Len()-1)
	} else {
		z.RemoveRank(0, n-1)
	}
	c.notifyRemoved(z, event, n)
}
