package limits

import (
	"math"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/limiter"
	"headgate/store"
)

func resetCommand(l *Limits) *command.Command {
	return &command.Command{
		Name: "rl.reset", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n) in the number of keys, and of entries in their state",
		Summary: "Delete the limiter state at these keys and return how many had any. If a key holds anything else, none is deleted.",
		Arity:   -2, Flags: command.Write | command.DecidesFirst, Keys: command.Keys("RW ACCESS DELETE", 1, -1, 1),
		Args:   []command.Arg{command.Key("key").Multi().Means("a key with the state of any limiter")},
		Errors: []string{command.ErrWrongType},
		Reply:  command.ReplyInteger, Returns: []string{"how many of the keys existed, and were deleted"}, Handler: l.either(l.reset, l.resetElsewhere),
	}
}

// reset implements RL.RESET key [key …]. It looks at all keys before it deletes the first. While nothing can be written it forgets in memory
// alone if limiter-when-unwritable says so, or if all of the keys have changes there already: it is given no policy that might say otherwise.
func (l *Limits) reset(c *command.Ctx) {
	seen := make(map[string]bool) // keys that exist: one that is named again and again is looked at once
	unwritable, allowed := c.Core.Gate.Has(command.GateUnwritable), true
	readOnly := c.Core.Gate.Has(command.GateNoWrites)
	for i := 1; i < len(c.Args); i++ {
		if seen[string(c.Args[i])] {
			continue
		}
		k := c.Key(i)
		if keptByServer(k.Name) {
			c.Err(command.ErrWrongType)
			return
		}
		e, exists := c.DB.Find(k, c.Now)
		if !exists {
			continue
		}
		if !holdsLimiterState(c, k, &e) {
			c.Err(command.ErrWrongType)
			return
		}
		seen[string(k.Name)] = true
		allowed = allowed && (!unwritable || l.Unlogged.allows(c, k, nil))
	}
	if (!allowed || readOnly && len(seen) > 0) && !c.MayWriteNow() {
		return
	}
	for i := 1; i < len(c.Args); i++ {
		k := c.Key(i)
		e, exists := c.DB.Find(k, c.Now)
		switch {
		case !exists:
		case unwritable:
			l.Unlogged.keep(c, k, func() { c.DeleteKey(k, &e) })
		default:
			c.DeleteKey(k, &e)
		}
	}
	c.Reply.Int(int64(len(seen)))
}

// holdsLimiterState reports whether the key k, which is e, looks as a limiter has left it: a number; slices and their counts; or entries
// and leases by their times. A number may do without an expiry, since INCR leaves one so and limiters take it over.
func holdsLimiterState(c *command.Ctx, k store.Key, e *store.Entry) bool {
	switch e.Kind() {
	case store.KindString:
		return holdsNumber(e)
	case store.KindHash:
		h, _, err := c.DB.Hash(k, c.Now)
		return err == nil && e.ExpireAt() != 0 && holdsSlices(&h)
	case store.KindZSet:
		z, _, err := c.DB.ZSet(k, c.Now)
		return err == nil && e.ExpireAt() != 0 && holdsTimes(&z)
	}
	return false
}

// holdsNumber reports whether a string is one that a limiter may have written; INCREX also writes fractions.
func holdsNumber(e *store.Entry) bool {
	var digits command.IntegerText
	n, ok := number.ParseLongDouble(e.Bytes(digits[:]))
	return ok && !n.IsInf()
}

// holdsSlices reports whether a hash is a sliding window's.
func holdsSlices(h *store.Hash) bool {
	if h.Len() > MaxSlidingFields {
		return false
	}
	slices := true
	h.Each(func(field, value []byte) bool {
		_, ok := number.ParseInt(field)
		count, isCount := number.ParseInt(value)
		slices = ok && isCount && count >= 0
		return slices
	})
	return slices
}

// holdsTimes reports whether a sorted set's scores are times, as those of a log and of leases.
func holdsTimes(z *store.ZSet) bool {
	times := true
	z.Range(0, z.Len()-1, false, func(_ []byte, score float64) bool {
		times = score > 0 && score <= limiter.Forever && score == math.Trunc(score)
		return times
	})
	return times
}
