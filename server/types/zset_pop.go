package types

import (
	"headgate/internal/number"
	"headgate/server/command"
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
func zmpopArgs(c *command.Ctx, i int) (p popArgs, ok bool) {
	n, ok := number.ParseInt(c.Args[i])
	if !ok || n < 1 {
		c.Err(errNumKeys)
		return p, false
	}
	if n >= int64(len(c.Args)-i-1) {
		c.Err(command.ErrSyntax)
		return p, false
	}
	p = popArgs{firstKey: i + 1, lastKey: i + int(n), count: 1}
	i = p.lastKey + 1
	switch {
	case c.Is(i, "MIN"):
	case c.Is(i, "MAX"):
		p.highest = true
	default:
		c.Err(command.ErrSyntax)
		return p, false
	}
	i++
	if i+1 < len(c.Args) && c.Is(i, "COUNT") {
		if p.count, ok = integerOr(c, i+1, 1, errCountPositive); !ok {
			return p, false
		}
		i += 2
	}
	if i < len(c.Args) {
		c.Err(command.ErrSyntax)
		return p, false
	}
	return p, true
}

func zmpop(c *command.Ctx) {
	if p, ok := zmpopArgs(c, 1); ok && !popFirstZSet(c, p) {
		c.Reply.NullArray()
	}
}

func bzmpop(c *command.Ctx) {
	p, ok := zmpopArgs(c, 2)
	if !ok {
		return
	}
	if until, ok := c.Timeout(1, command.TimeoutSeconds); ok { // judged last, as Redis does
		popZSetOrWait(c, p, until)
	}
}

func bzpopMin(c *command.Ctx) { popOneOrWait(c, false) }
func bzpopMax(c *command.Ctx) { popOneOrWait(c, true) }

// popOneOrWait takes one member out of the sorted sets at all arguments but the last, which is the timeout.
func popOneOrWait(c *command.Ctx, highest bool) {
	last := len(c.Args) - 1
	if until, ok := c.Timeout(last, command.TimeoutSeconds); ok {
		popZSetOrWait(c, popArgs{firstKey: 1, lastKey: last - 1, highest: highest, count: 1, single: true}, until)
	}
}

// popFirstZSet removes members of the first sorted set that has any and sends them, or sends an error; if there are none it sends
// nothing and returns false.
func popFirstZSet(c *command.Ctx, p popArgs) bool {
	for i := p.firstKey; i <= p.lastKey; i++ {
		z, ok := c.ChangeZSet(i)
		switch {
		case !ok:
			return true
		case z.Len() > 0:
			popWithKey(c, &z, c.Args[i], p)
			return true
		}
	}
	return false
}

// popZSetOrWait is popFirstZSet, and has the client wait when there is nothing.
func popZSetOrWait(c *command.Ctx, p popArgs, until int64) {
	if popFirstZSet(c, p) {
		return
	}
	if !c.MayBlock() {
		c.Reply.NullArray()
		return
	}
	c.Block(command.BlockOn{Kind: store.KindZSet, Keys: c.Args[p.firstKey : p.lastKey+1], Until: until, Serve: func(c *command.Ctx, k store.Key) bool {
		z, found, err := c.DB.ZSet(k, c.Now)
		if err != nil || !found {
			return false
		}
		popWithKey(c, &z, k.Name, p)
		return true
	}})
}

// popWithKey removes members of the sorted set of a name from one end, and sends the name and them with their scores, in pairs in
// both protocols.
func popWithKey(c *command.Ctx, z *store.ZSet, name []byte, p popArgs) {
	n := int(min(p.count, int64(z.Len())))
	if p.single {
		c.Reply.Array(3)
		c.Reply.Bulk(name)
	} else {
		c.Reply.Array(2)
		c.Reply.Bulk(name)
		c.Reply.Array(n)
	}
	takeMembers(c, z, n, p.highest, func(member []byte, score float64) {
		if !p.single {
			c.Reply.Array(2)
		}
		c.Reply.Bulk(member)
		c.Reply.Double(score)
	})
	pop := "ZPOPMIN"
	if p.highest {
		pop = "ZPOPMAX"
	}
	c.Effect(pop, name, n)
}

// takeMembers removes n members with the lowest scores, or the highest, and hands them to fn before.
func takeMembers(c *command.Ctx, z *store.ZSet, n int, highest bool, fn func(member []byte, score float64)) {
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
	notifyRemoved(c, z, event, n)
}
