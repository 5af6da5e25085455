package limits

import (
	"slices"
	"time"

	"headgate/internal/number"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/top"
	"headgate/store"
)

func topCommand(l *Limits) *command.Command {
	return &command.Command{
		Name: "rl.top", Group: command.GroupThrottle, Since: "headgate 0.1.0", Complexity: "O(n log n) in top-keys",
		Summary: "Return the keys that were limited most often recently, or with HOT those that were called most often. Counts are exact while no more than top-keys keys are called, and else estimates, each with its maximum error.",
		Arity:   -1, Flags: command.Admin | command.NoScript | command.Loading | command.Stale,
		Args: []command.Arg{
			command.Integer("count").Opt().Fails(limiter.InvalidCount).Means("how many keys to return at most, 1 or more; 10 by default"),
			command.OneOf("list", command.Tok("LIMITED"), command.Tok("HOT")).Opt().Means("the keys that were limited most often, which is the default, or those that were called most often"),
		},
		Errors: []string{command.ErrUsage, errTopOff},
		Reply:  command.ReplyMap, Returns: []string{
			"list: `limited` or `hot`", "seconds: how far the counts look back: from the start, or by top-window to twice that", "calls: of all keys in that period", "error: by how much a count may be too high at most; it may be too low by the calls that the key had before it got a place, nearly always fewer than 300",
			"keys: for each key an array of its name, its database, its calls, their maximum error, and the policy that was named or null. Only keys that the caller may read are shown",
		}, Handler: l.sendTop,
	}
}

// errTopOff is what RL.TOP is answered with if nothing is kept for it.
const errTopOff = "ERR top-keys is 0, so no keys are counted"

// TopShown is how many keys RL.TOP and INFO show by default.
const TopShown = 10

// The lists of keys.
const (
	ListLimited = "limited" // calls that were limited
	ListHot     = "hot"     // all calls
)

// TopKeys are the keys that limiters are asked about most, and those that are limited most. The executor's lock guards it.
type TopKeys struct {
	limited, Hot *top.Window // nil: they are off
	Keys         int         // that each watches
	period       int64       // ns after which the older half of the counts is forgotten
	Began, next  int64       // ns: since when calls are counted, and when counts are forgotten next
}

// apply takes top-keys and top-window over.
func (t *TopKeys) apply(cfg *config.Config, now int64) {
	if cfg.TopKeys != t.Keys {
		*t = TopKeys{Keys: cfg.TopKeys, Began: now}
		if t.Keys > 0 {
			t.limited, t.Hot = top.NewWindow(t.Keys, command.RandomSeed()), top.NewWindow(t.Keys, command.RandomSeed())
		}
	}
	if period := int64(cfg.TopWindow); period != t.period {
		t.period, t.next = period, now+period
	}
}

// GoOn forgets the calls that are older than two periods, if that is due.
func (t *TopKeys) GoOn(now int64) {
	if t.Keys == 0 || now < t.next {
		return
	}
	if now >= t.next+t.period { // nobody has looked for that long, or the clock has jumped: all is old
		t.Reset(now)
		return
	}
	t.limited.GoOn()
	t.Hot.GoOn()
	t.Began, t.next = max(t.Began, t.next-t.period), now+t.period
}

// Reset forgets all calls.
func (t *TopKeys) Reset(now int64) {
	if t.Keys > 0 {
		t.limited.Reset()
		t.Hot.Reset()
		t.Began, t.next = now, now+t.period
	}
}

// Window returns a list by its name.
func (t *TopKeys) Window(list string) *top.Window {
	if list == ListHot {
		return t.Hot
	}
	return t.limited
}

// add enters a decision about a key, by the policy of a label if that is not 0.
func (t *TopKeys) add(k store.Key, db int, label uint16, limited bool) {
	hash := k.Hash ^ (uint64(db)<<16+uint64(label))*0x9E3779B97F4A7C15 // 2^64 by the golden ratio: databases and labels differ in all bits
	t.Hot.Add(hash, db, label, k.Name)
	if limited {
		t.limited.Add(hash, db, label, k.Name)
	}
}

// sendTop implements RL.TOP [count] [LIMITED | HOT].
func (l *Limits) sendTop(c *command.Ctx) {
	count, list := int64(TopShown), ListLimited
	next := 1
	if next < len(c.Args) && !c.Is(next, "LIMITED") && !c.Is(next, "HOT") {
		var ok bool
		if count, ok = number.ParseInt(c.Args[next]); !ok || count < 1 {
			errLimiter(c, limiter.Quoting(limiter.InvalidCount, c.Args[next]))
			return
		}
		next++
	}
	switch {
	case next+1 < len(c.Args) || next < len(c.Args) && !c.Is(next, "LIMITED") && !c.Is(next, "HOT"):
		c.ErrUsage()
		return
	case next < len(c.Args) && c.Is(next, "HOT"):
		list = ListHot
	}
	t := &l.Top
	if t.Keys == 0 {
		c.Err(errTopOff)
		return
	}
	t.GoOn(c.Core.Clock.Mono())
	w := t.Window(list)
	keys := TopOf(c, w, int(min(count, top.MaxKeys)))
	c.Reply.Map(5)
	c.Reply.BulkString("list")
	c.Reply.BulkString(list)
	command.SendField(c.Reply, "seconds", int((c.Core.Clock.Mono()-t.Began)/int64(time.Second)))
	command.SendField(c.Reply, "calls", int(w.Sum()))
	command.SendField(c.Reply, "error", int(w.Bound()))
	c.Reply.BulkString("keys")
	c.Reply.Array(len(keys))
	for _, k := range keys {
		c.Reply.Array(5)
		c.Reply.Bulk(k.Name)
		c.Reply.Int(int64(k.DB))
		c.Reply.Int(int64(k.Count))
		c.Reply.Int(int64(k.Error))
		if policy := l.Policies.Counts.Labelled(k.Label); policy != "" {
			c.Reply.BulkString(policy)
		} else {
			c.Reply.Null()
		}
	}
}

// TopOf returns the first keys of a list, so many of those that the client's user may read: a key's name is for nobody else.
func TopOf(c *command.Ctx, w *top.Window, count int) []top.Key {
	if !c.Client.Guarded {
		return w.Top(count)
	}
	call, user := c.ACLCall(c.Cmd, c.Args), c.Client.User
	keys := slices.DeleteFunc(w.Top(top.MaxKeys), func(k top.Key) bool {
		if len(k.Name) == top.MaxName { // the rest, which patterns would need to see, may have been cut off
			return !user.MayWithEveryKey(call, acl.ReadKey)
		}
		return !user.MayWithKey(call, k.Name, acl.ReadKey)
	})
	return keys[:min(count, len(keys))]
}
