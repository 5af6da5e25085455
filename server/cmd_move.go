package server

import (
	"math"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/server/resp"
)

const (
	errFirstDB  = "ERR invalid first DB index"
	errSecondDB = "ERR invalid second DB index"
)

func copyKey(c *Ctx) {
	target, replace := c.db, false
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "REPLACE"):
			replace = true
		case c.is(i, "DB") && i+1 < len(c.args):
			i++
			if target = c.database(i); target == nil {
				return
			}
		default:
			c.err(errSyntax)
			return
		}
	}
	from, to := c.key(1), c.key(2)
	if target == c.db && string(from.Name) == string(to.Name) {
		c.err(errSameObject)
		return
	}
	if _, ok := c.lookupRead(1); !ok || !c.db.Copy(from, target, to, replace, c.now) {
		c.reply.Zero()
		return
	}
	c.notifyIn(target, config.EventGeneric, "copy_to", c.args[2])
	c.reply.One()
}

// move is refused when memory is full, unlike Redis's: a database has its own, so a key that arrives takes up more of it.
func move(c *Ctx) {
	target := c.database(2)
	switch {
	case target == nil:
	case target == c.db:
		c.err(errSameObject)
	case c.core.keys.Full():
		c.err(errOOM)
	case c.db.Move(c.key(1), target, c.now):
		c.notify(config.EventGeneric, "move_from", c.args[1])
		c.notifyIn(target, config.EventGeneric, "move_to", c.args[1])
		c.reply.One()
	default:
		c.reply.Zero()
	}
}

func swapDB(c *Ctx) {
	var index [2]int
	for i, refusal := range []string{errFirstDB, errSecondDB} {
		n, ok := number.ParseInt(c.args[1+i])
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			c.err(refusal)
			return
		}
		index[i] = int(n)
	}
	for _, n := range index {
		if n < 0 || n >= c.core.keys.Databases() {
			c.err(errDBRange)
			return
		}
	}
	c.core.keys.Swap(index[0], index[1], c.now)
	c.ok()
}

// wait answers 0 when the time is over, or at once if that is enough: no replica is ever going to come.
func wait(c *Ctx) {
	wanted, ok := c.integer(1)
	if !ok {
		return
	}
	until, ok := c.timeout(2, timeoutMs)
	switch {
	case !ok:
	case wanted <= 0 || !c.mayBlock():
		c.reply.Zero()
	default:
		c.block(blockOn{until: until, late: (*resp.Writer).Zero})
	}
}
