package limits

import (
	"bytes"
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/store"
	"headgate/throttle"
)

// state keeps the state of limiters in the keyspace. It implements limiter.State for the key and the command that open was given. All that
// limiters write passes Keep.
type state struct {
	c      *command.Ctx
	key    store.Key
	entry  store.Entry // of a number that exists, or of one past its time whose place a new one may take
	hash   store.Hash
	zset   store.ZSet
	newest int // the rank of the newest entry that counts

	unlogged *InMemory // notes the changes that are made although nothing can be written

	changing bool                // a limiter's change is being made
	added    func(member []byte) // if not nil, is told of the entries that are added to a log; it must not change them
}

const (
	// maxTrimmed is how many entries that count no longer one call takes out of a limiter's state, so that no call takes long
	// however many have expired at once. It is above what a call adds, so the state shrinks.
	maxTrimmed = 8

	// MaxSlidingFields bounds the hash that is taken for a sliding window: more than a limiter ever writes, even while the number of
	// slices changes.
	MaxSlidingFields = 4 * throttle.MaxSlices
)

var _ limiter.State = (*state)(nil) // though Limits asks it without the detour

// open chooses the key, and the command that asks.
func (s *state) open(c *command.Ctx, k store.Key) { s.c, s.key, s.entry = c, k, store.Entry{} }

// Load implements limiter.State.
func (s *state) Load(call *limiter.Call) error {
	switch call.Want.Kind {
	case limiter.Slices:
		return s.loadSlices(&call.Found)
	case limiter.Entries:
		return s.loadEntries(&call.Want, &call.Found)
	}
	return s.loadNumber(&call.Found)
}

// absent returns an error if the key, which does not exist, must not become a limiter's: what the server keeps there would expire.
func (s *state) absent() error {
	if keptByServer(s.key.Name) {
		return limiter.ErrWrongType
	}
	return nil
}

// find looks the key up again, for a change that was decided before other keys were written.
func (s *state) find(f *limiter.Found) { s.entry, f.Exists = s.c.DB.FindToSet(s.key, s.c.Now) }

func (s *state) loadNumber(f *limiter.Found) error {
	if s.find(f); !f.Exists {
		return s.absent()
	}
	n, wireError := command.StoredInteger(&s.entry)
	switch wireError {
	case "":
	case command.ErrWrongType:
		return limiter.ErrWrongType
	default:
		return limiter.ErrForeign
	}
	f.Number, f.ExpireAtMs = n, s.entry.ExpireAt()
	return nil
}

func (s *state) loadSlices(f *limiter.Found) (err error) {
	if s.hash, f.Exists, err = s.c.DB.Hash(s.key, s.c.Now); err != nil {
		return limiter.ErrWrongType
	}
	f.Slices = f.Slices[:0]
	if !f.Exists {
		return s.absent()
	}
	if s.hash.Len() > MaxSlidingFields {
		return limiter.ErrForeign
	}
	whole := true
	s.hash.Each(func(field, value []byte) bool {
		start, ok := number.ParseInt(field)
		count, isCount := number.ParseInt(value)
		whole = ok && isCount && count >= 0
		f.Slices = append(f.Slices, limiter.Slice{Start: start, Count: count})
		return whole
	})
	if !whole {
		return limiter.ErrForeign
	}
	return nil
}

func (s *state) loadEntries(w *limiter.Want, f *limiter.Found) (err error) {
	if s.zset, f.Exists, err = s.c.DB.ZSet(s.key, s.c.Now); err != nil {
		return limiter.ErrWrongType
	}
	if !f.Exists && s.absent() != nil {
		return limiter.ErrWrongType
	}
	after := s.zset.CountAfter(w.After)
	f.Expired = s.zset.Len() - after
	if after > 0 && w.Until < limiter.Forever {
		if _, last := s.zset.AtRank(s.zset.Len() - 1); last > float64(w.Until) {
			after -= s.zset.CountAfter(w.Until)
		}
	}
	f.Used, s.newest = int64(after), f.Expired+after-1
	if f.MemberHeld = false; w.HasMember {
		var score float64
		if score, f.MemberHeld = s.zset.Score(w.Member); f.MemberHeld {
			f.MemberAt = scoreTime(score)
		}
	}
	return nil
}

// timeOf is the time of one of the entries that count, by its rank from the newest.
func (s *state) timeOf(rank int64) int64 {
	_, score := s.zset.AtRank(s.newest - int(rank))
	return scoreTime(score)
}

// scoreTime is a score as a time in ms; one between two counts as the later. Forever is exact as a score.
func scoreTime(score float64) int64 {
	return int64(math.Ceil(max(-limiter.Forever, min(score, limiter.Forever))))
}

// Keep implements limiter.State.
func (s *state) Keep(call *limiter.Call) error {
	if s.c.Core.Gate.Has(command.GateChanges) {
		return s.keepIfRoom(call)
	}
	s.change(call)
	return nil
}

// keepIfRoom is Keep while there may be no room, on the disk or in memory, or nothing is to be written here.
func (s *state) keepIfRoom(call *limiter.Call) error {
	if refusal := s.refusal(call, 1); refusal != nil {
		return refusal
	}
	if s.c.Core.Gate.Has(command.GateUnwritable) && call.Change.Write != throttle.Keep {
		s.unlogged.keep(s.c, s.key, func() { s.change(call) })
	} else {
		s.change(call)
	}
	return nil
}

// change does what a call's Change says.
func (s *state) change(call *limiter.Call) {
	s.changing = true
	switch ch := &call.Change; {
	case ch.Write == throttle.Keep:
	case ch.Write == throttle.Delete:
		s.c.DeleteKey(s.key, s.held(call))
	case call.Want.Kind == limiter.Slices:
		s.keepSlices(call)
	case call.Want.Kind == limiter.Entries:
		s.keepEntries(call)
	default:
		s.keepNumber(call)
	}
	s.changing = false
}

// held is the key as Load has found it.
func (s *state) held(call *limiter.Call) *store.Entry {
	switch call.Want.Kind {
	case limiter.Slices:
		return s.hash.Entry()
	case limiter.Entries:
		return s.zset.Entry()
	}
	return &s.entry
}

// refusal returns why a call's change cannot be kept now, or nil. What changes in place takes no room, so that no number of keys that
// strangers make up keeps a limiter from its own. Each of so many keys may be new.
func (s *state) refusal(call *limiter.Call, keys int) error {
	if call.Change.Write == throttle.Keep { // and a policy without a limit has not even opened a key
		return nil
	}
	gate := &s.c.Core.Gate
	switch {
	case gate.Has(command.GateNoWrites) && !s.c.Client.Primary:
		return limiter.Error(gate.NoWrites())
	case gate.Has(command.GateUnwritable) && !s.unlogged.allows(s.c, s.key, call.Policy):
		return limiter.Error(gate.Unwritable())
	case gate.Has(command.GateShort|command.GateCrowded) && lacksRoom(s.c, keys) && grows(call):
		return limiter.Error(command.ErrOOM)
	}
	return nil
}

// lacksRoom reports whether the running command may not take more memory for so many keys. For one that a script calls that is the script's to
// say, unless the keyspace has no address left for them.
func lacksRoom(c *command.Ctx, keys int) bool {
	if c.Core.Gate.Has(command.GateCrowded) && c.Core.Keys.Full(keys) {
		return true
	}
	if c.Script != nil {
		return c.Script.LacksRoom()
	}
	return c.Core.Gate.Has(command.GateShort) && !c.Core.Gate.Has(command.GateLoading)
}

// grows reports whether a change takes room: for a new key, or for more than the same call takes out.
func grows(call *limiter.Call) bool {
	f, ch := &call.Found, &call.Change
	switch {
	case ch.Write == throttle.Delete:
		return false
	case call.Want.Kind == limiter.Slices:
		return moreSlices(f.Slices, ch)
	case call.Want.Kind != limiter.Entries:
		return !f.Exists
	case ch.Drawn: // as long as others that were drawn
		return f.Expired == 0
	case ch.Member != nil: // whatever is trimmed for it: it may be of any length
		return !f.MemberHeld
	}
	return ch.Add > min(f.Expired, maxTrimmed)
}

// moreSlices reports whether a hash of slices has more of them after a change.
func moreSlices(before []limiter.Slice, ch *limiter.Change) bool {
	more := 0
	for _, changed := range ch.Slices {
		there := false
		for _, s := range before {
			there = there || s.Start == changed.Start
		}
		switch {
		case changed.Count > 0 && (ch.Replace || !there):
			more++
		case changed.Count == 0 && there:
			more--
		}
	}
	if ch.Replace {
		more -= len(before)
	}
	return more > 0
}

// keepNumber makes the key a number with an expiry.
func (s *state) keepNumber(call *limiter.Call) {
	c, n, at := s.c, call.Change.Number, call.Change.ExpireAtMs
	switch {
	case call.Found.Exists:
		s.entry.SetInt(n)
		s.entry.SetExpireAt(at)
	case !s.entry.IsZero():
		s.changing = false // that the old one has ended is no part of the change
		s.entry.Lapse()
		s.changing = true
		s.entry.Renew(n, at)
	default:
		c.DB.SetInt(s.key, n, at)
	}
	c.EffectSet(s.key.Name, n, at)
	c.Notify(config.EventString, "set", s.key.Name)
	c.Notify(config.EventGeneric, "expire", s.key.Name)
}

func (s *state) keepSlices(call *limiter.Call) {
	c, ch := s.c, &call.Change
	if ch.Replace {
		if s.hash.Len() > 0 {
			c.DeleteKey(s.key, s.hash.Entry())
		}
		s.hash, _ = c.DB.HashCreate(s.key, c.Now)
	}
	for _, slice := range ch.Slices {
		field, value := sliceField(c, slice.Start, slice.Count)
		switch {
		case slice.Count > 0:
			s.hash.Set(field, value)
			if c.Logs() {
				c.Effect("HSET", s.key.Name, field, value)
			}
		case s.hash.Delete(field):
			c.Effect("HDEL", s.key.Name, field)
		}
	}
	c.Notify(config.EventHash, "hset", s.key.Name)
	s.expire(s.hash.Entry(), ch.ExpireAtMs)
}

// sliceField renders a slice's field and value, which are valid until the next call.
func sliceField(c *command.Ctx, start, count int64) (field, value []byte) {
	text := strconv.AppendInt(c.Scratch[:0], start, 10)
	n := len(text)
	text = strconv.AppendInt(text, count, 10)
	c.Scratch = text
	return text[:n:n], text[n:]
}

func (s *state) keepEntries(call *limiter.Call) {
	c, z, ch := s.c, &s.zset, &call.Change
	if ch.RemoveNewest > 0 {
		s.removeRanks(s.newest+1-ch.RemoveNewest, s.newest)
	}
	if ch.Remove != nil {
		z.Remove(ch.Remove)
		c.Effect("ZREM", s.key.Name, ch.Remove)
		c.Notify(config.EventZSet, "zrem", s.key.Name)
		if z.Len() == 0 {
			c.NotifyDeleted(true, s.key.Name)
			return
		}
	}
	if ch.Trim && call.Found.Expired > 0 {
		s.removeRanks(0, min(call.Found.Expired, maxTrimmed)-1)
	}
	s.addEntries(ch)
	if ch.ExpireAtMs != 0 {
		s.expire(z.Entry(), ch.ExpireAtMs)
	}
}

// addEntries adds the entries, or the member, that a change names.
func (s *state) addEntries(ch *limiter.Change) {
	c, z := s.c, &s.zset
	switch {
	case ch.Member != nil:
		z.Add(float64(ch.AddAt), ch.Member)
		if c.Logs() {
			c.Effect("ZADD", s.key.Name, ch.AddAt, ch.Member)
		}
	case ch.Add == 0:
		return
	case c.Logs() && ch.Add > 1:
		s.addLogged(ch)
	case c.Logs() || s.added != nil:
		z.AppendStamps(ch.AddAt, ch.Add, func(member []byte) {
			if s.added != nil {
				s.added(member)
			}
			c.Effect("ZADD", s.key.Name, ch.AddAt, member)
		})
	default:
		z.AppendStamps(ch.AddAt, ch.Add, nil)
	}
	c.Notify(config.EventZSet, "zadd", s.key.Name)
}

// loggedAtOnce is how many entries one command of the log adds at most.
const loggedAtOnce = 256

// addLogged is addEntries for several entries, of which the log hears many at a time.
func (s *state) addLogged(ch *limiter.Change) {
	words := make([]any, 0, 2+2*min(ch.Add, loggedAtOnce))
	words = append(words, "ZADD", s.key.Name)
	s.zset.AppendStamps(ch.AddAt, ch.Add, func(member []byte) {
		if s.added != nil {
			s.added(member)
		}
		if words = append(words, ch.AddAt, bytes.Clone(member)); len(words) == cap(words) {
			s.c.Effect(words...)
			words = words[:2]
		}
	})
	if len(words) > 2 {
		s.c.Effect(words...)
	}
}

// removeRanks takes the entries of ranks start to stop out.
func (s *state) removeRanks(start, stop int) {
	c := s.c
	s.zset.RemoveRank(start, stop)
	if c.Logs() {
		c.Effect("ZREMRANGEBYRANK", s.key.Name, start, stop)
	}
	c.Notify(config.EventZSet, "zremrangebyrank", s.key.Name)
}

// expire sets the expiry of the key, which is e.
func (s *state) expire(e *store.Entry, at int64) {
	e.SetExpireAt(at)
	if s.c.Logs() {
		s.c.Effect("PEXPIREAT", s.key.Name, at)
	}
	s.c.Notify(config.EventGeneric, "expire", s.key.Name)
}
