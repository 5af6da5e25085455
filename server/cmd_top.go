package server

import (
	"slices"
	"time"

	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/top"
	"headgate/store"
)

func topCommand(l *Limits) *Command {
	return &Command{
		Name: "rl.top", Group: GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n log n) in top-keys",
		Summary: "Return the keys that were limited most of late, or those that limiters were asked about most, with the most that each number may be too high by.",
		Arity:   -1, Flags: Admin | NoScript | Loading | Stale,
		Args:   []Arg{integer("count").opt().fails(string(limiter.ErrCount)), oneOf("list", tok("LIMITED"), tok("HOT")).opt()},
		Errors: []string{errUsage, errTopOff},
		Reply:  ReplyMap, Handler: l.sendTop,
	}
}

// errTopOff is what RL.TOP is answered with if nothing is kept for it.
const errTopOff = "ERR top-keys is 0, so no keys are counted"

// topShown is how many keys RL.TOP and INFO show when they are not told.
const topShown = 10

// The lists of keys.
const (
	listLimited = "limited" // calls that were limited
	listHot     = "hot"     // all calls
)

// topKeys are the keys that limiters are asked about most, and those that are limited most. The executor's lock guards it.
type topKeys struct {
	limited, hot *top.Window // nil: they are off
	keys         int         // that each watches
	period       int64       // ns after which they go on
	began, next  int64       // ns: from when on they count, and when they go on
}

// apply takes top-keys and top-window over.
func (t *topKeys) apply(cfg *config.Config, now int64) {
	if cfg.TopKeys != t.keys {
		*t = topKeys{keys: cfg.TopKeys, began: now}
		if t.keys > 0 {
			t.limited, t.hot = top.NewWindow(t.keys, randomSeed()), top.NewWindow(t.keys, randomSeed())
		}
	}
	if period := int64(cfg.TopWindow); period != t.period {
		t.period, t.next = period, now+period
	}
}

// goOn forgets what is older than two periods, if it is time.
func (t *topKeys) goOn(now int64) {
	if t.keys == 0 || now < t.next {
		return
	}
	if now >= t.next+t.period { // nobody has looked for that long, or the clock has jumped: all is old
		t.reset(now)
		return
	}
	t.limited.GoOn()
	t.hot.GoOn()
	t.began, t.next = max(t.began, t.next-t.period), now+t.period
}

// reset forgets all calls.
func (t *topKeys) reset(now int64) {
	if t.keys > 0 {
		t.limited.Reset()
		t.hot.Reset()
		t.began, t.next = now, now+t.period
	}
}

// window returns a list by its name.
func (t *topKeys) window(list string) *top.Window {
	if list == listHot {
		return t.hot
	}
	return t.limited
}

// add enters a decision about a key.
func (t *topKeys) add(k store.Key, db int, limited bool) {
	hash := k.Hash ^ uint64(db)*0x9E3779B97F4A7C15 // 2^64 by the golden ratio: databases differ in all bits
	t.hot.Add(hash, db, k.Name)
	if limited {
		t.limited.Add(hash, db, k.Name)
	}
}

// sendTop implements RL.TOP [count] [LIMITED | HOT].
func (l *Limits) sendTop(c *Ctx) {
	count, list := int64(topShown), listLimited
	next := 1
	if next < len(c.args) && !c.is(next, "LIMITED") && !c.is(next, "HOT") {
		var ok bool
		if count, ok = number.ParseInt(c.args[next]); !ok || count < 1 {
			c.errLimiter(limiter.ErrCount)
			return
		}
		next++
	}
	switch {
	case next+1 < len(c.args) || next < len(c.args) && !c.is(next, "LIMITED") && !c.is(next, "HOT"):
		c.errUsage()
		return
	case next < len(c.args) && c.is(next, "HOT"):
		list = listHot
	}
	t := &l.top
	if t.keys == 0 {
		c.err(errTopOff)
		return
	}
	t.goOn(c.core.clock.Mono())
	w := t.window(list)
	keys := c.topOf(w, int(min(count, top.MaxKeys)))
	c.reply.Map(5)
	c.reply.BulkString("list")
	c.reply.BulkString(list)
	sendField(c.reply, "seconds", int((c.core.clock.Mono()-t.began)/int64(time.Second)))
	sendField(c.reply, "calls", int(w.Sum()))
	sendField(c.reply, "error", int(w.Bound()))
	c.reply.BulkString("keys")
	c.reply.Array(len(keys))
	for _, k := range keys {
		c.reply.Array(4)
		c.reply.Bulk(k.Name)
		c.reply.Int(int64(k.DB))
		c.reply.Int(int64(k.Count))
		c.reply.Int(int64(k.Error))
	}
}

// topOf returns the first keys of a list, so many of those that the client's user may read: a key's name is for nobody else.
func (c *Ctx) topOf(w *top.Window, count int) []top.Key {
	if !c.client.guarded {
		return w.Top(count)
	}
	call, user := c.described(c.cmd, c.args), c.client.user
	keys := slices.DeleteFunc(w.Top(top.MaxKeys), func(k top.Key) bool {
		if len(k.Name) == top.MaxName { // the rest, which patterns would need to see, may have been cut off
			return !user.MayWithEveryKey(call, acl.ReadKey)
		}
		return !user.MayWithKey(call, k.Name, acl.ReadKey)
	})
	return keys[:min(count, len(keys))]
}
