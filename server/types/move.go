package types

import (
	"math"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
)

const (
	errFirstDB  = "ERR invalid first DB index"
	errSecondDB = "ERR invalid second DB index"
)

func copyKey(c *command.Ctx) {
	target, replace := c.DB, false
	for i := 3; i < len(c.Args); i++ {
		switch {
		case c.Is(i, "REPLACE"):
			replace = true
		case c.Is(i, "DB") && i+1 < len(c.Args):
			i++
			if target = c.Database(i); target == nil {
				return
			}
		default:
			c.Err(command.ErrSyntax)
			return
		}
	}
	from, to := c.Key(1), c.Key(2)
	if target == c.DB && string(from.Name) == string(to.Name) {
		c.Err(command.ErrSameObject)
		return
	}
	if _, ok := c.Find(1); !ok || !c.DB.Copy(from, target, to, replace, c.Now) {
		c.Reply.Zero()
		return
	}
	c.NotifyIn(target, config.EventGeneric, "copy_to", c.Args[2])
	c.Reply.One()
}

// move is refused when a database has no address left, unlike Redis's: each has its own.
func move(c *command.Ctx) {
	target := c.Database(2)
	switch {
	case target == nil:
	case target == c.DB:
		c.Err(command.ErrSameObject)
	case c.DB.Move(c.Key(1), target, c.Now):
		c.Notify(config.EventGeneric, "move_from", c.Args[1])
		c.NotifyIn(target, config.EventGeneric, "move_to", c.Args[1])
		c.Reply.One()
	default:
		c.Reply.Zero()
	}
}

// SwapDB implements SWAPDB index1 index2, which is declared with the commands of the server.
func SwapDB(c *command.Ctx) {
	var index [2]int
	for i, refusal := range []string{errFirstDB, errSecondDB} {
		n, ok := number.ParseInt(c.Args[1+i])
		if !ok || n < math.MinInt32 || n > math.MaxInt32 {
			c.Err(refusal)
			return
		}
		index[i] = int(n)
	}
	for _, n := range index {
		if n < 0 || n >= c.Core.Keys.Databases() {
			c.Err(command.ErrDBRange)
			return
		}
	}
	c.Core.Keys.Swap(index[0], index[1], c.Now)
	c.OK()
}
