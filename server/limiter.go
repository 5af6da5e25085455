package server

import (
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/server/config"
	"headgate/server/policy"
	"headgate/store"
	"headgate/throttle"
)

// verdict is the answer of one limiter.
type verdict struct {
	throttle.Verdict
	wait int64 // of a queue: ms for which to hold the request back, -1 when it is limited
}

// maxTrimmed is how many entries that count no longer one call takes out of a limiter's state, so that no call takes long
// however many have expired at once. It is above what a call adds, so the state shrinks.
const maxTrimmed = 8

// sendNumbers sends the five numbers of an answer.
func (c *Ctx) sendNumbers(v *throttle.Verdict) {
	c.reply.Ints(oneIf(v.Limited), v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter)
}

// oneIf is 1 for true and 0 for false.
func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// decide asks a limit about the key k, writes the answer to v, and keeps the key's new state unless the call is a peek. wireError
// says why the key's state is none of this limit's, or that a new one cannot be kept now.
func (c *Ctx) decide(k store.Key, p *policy.Policy, r *policy.Request, v *verdict) (wireError string) {
	if p.Limit < 0 {
		*v = verdict{Verdict: throttle.Unlimited}
		return ""
	}
	switch p.Algorithm {
	case policy.Fixed:
		v.Verdict, wireError = c.decideFixed(k, p, r.Call)
	case policy.Sliding:
		v.Verdict, wireError = c.decideSliding(k, p.Sliding, r.Call)
	case policy.Log:
		v.Verdict, wireError = c.decideLog(k, p, r)
	default:
		return c.decideGCRA(k, &p.Rate, r.Call, v)
	}
	return wireError
}

func (c *Ctx) decideGCRA(k store.Key, rate *throttle.Rate, call throttle.Call, v *verdict) (wireError string) {
	e, exists := c.db.Find(k, c.now)
	var d throttle.Decision
	if wireError = c.askGCRA(&e, exists, rate, call, &d, v); wireError != "" {
		return wireError
	}
	return c.storeTAT(k, &e, exists, &d)
}

// askGCRA decides about a key, which e is if it exists, and keeps nothing: that is storeTAT's.
func (c *Ctx) askGCRA(e *store.Entry, exists bool, rate *throttle.Rate, call throttle.Call, d *throttle.Decision, v *verdict) (wireError string) {
	var tat int64
	if exists {
		if tat, wireError = storedInteger(e); wireError != "" {
			return wireError
		}
	}
	if rate.ChargeTo(d, c.nowNs, tat, exists, call) != nil {
		return errNotInteger
	}
	v.Limited, v.Limit, v.Remaining = d.Limited, d.Limit, d.Remaining
	v.RetryAfter, v.ResetAfter = throttle.RetryMillis(d.RetryAfter), throttle.Millis(d.ResetAfter)
	if v.wait = throttle.Millis(rate.Wait(c.nowNs, tat, exists)); d.Limited {
		v.wait = throttle.NoRetry
	}
	return ""
}

func (c *Ctx) decideFixed(k store.Key, p *policy.Policy, call throttle.Call) (v throttle.Verdict, wireError string) {
	e, exists := c.db.Find(k, c.now)
	state := throttle.FixedState{Exists: exists}
	if exists {
		if state.Count, wireError = storedInteger(&e); wireError != "" {
			return v, wireError
		}
		state.ExpireAtMs = e.ExpireAt()
	}
	f := throttle.Fixed{Limit: p.Limit}
	switch {
	case p.Calendar != 0:
		f.EndMs = p.Calendar.End(c.now, p.Zone)
	case p.Aligned:
		f.EndMs = throttle.AlignedEnd(c.now, p.Window)
	default:
		f.EndMs = c.now + p.Window
	}
	d := f.Decide(c.now, state, call)
	if wireError = c.storeCount(k, &e, exists, &d); wireError != "" && !d.Limited {
		return v, wireError
	}
	return d.Verdict, "" // one that limits does so all the same, and gets the expiry that it lacks another time
}

// maxSlidingFields bounds the hash that is taken for a sliding window: more than any has by itself, also while it goes over from
// one number of slices to another.
const maxSlidingFields = 4 * throttle.MaxSlices

// slidingState is a sliding window as its hash holds it.
type slidingState struct {
	counts  []int64
	expired [maxTrimmed]int64 // beginnings of slices that count no longer
	dropped int               // how many of them there are
	foreign bool              // slices of another length count among these
	broken  bool              // a field or its value is no number that a limiter writes
	begins  bool              // nothing was charged yet in the slice that now lies in
}

// read adds a field up.
func (s *slidingState) read(w throttle.Sliding, now int64, field, value []byte) bool {
	start, ok1 := number.ParseInt(field)
	count, ok2 := number.ParseInt(value)
	if !ok1 || !ok2 || count < 0 {
		s.broken = true
		return false
	}
	i, counts := w.Index(now, start)
	switch {
	case counts:
		if s.counts[i] += count; s.counts[i] < 0 {
			s.counts[i] = math.MaxInt64
		}
		s.foreign = s.foreign || start != w.StartOf(now, i)
	case start > now: // which stays until it counts, if the key lives so long
	case s.dropped < maxTrimmed:
		s.expired[s.dropped] = start
		s.dropped++
	}
	return true
}

func (c *Ctx) decideSliding(k store.Key, w throttle.Sliding, call throttle.Call) (v throttle.Verdict, wireError string) {
	h, found, err := c.db.Hash(k, c.now)
	if err != nil {
		return v, errWrongType
	}
	if found && h.Len() > maxSlidingFields {
		return v, errNotInteger
	}
	s := slidingState{counts: c.srv.slices[:w.Counts()]}
	clear(s.counts)
	h.Each(func(field, value []byte) bool { return s.read(w, c.now, field, value) })
	if s.broken {
		return v, errNotInteger
	}
	s.begins = s.counts[0] == 0
	d := w.Decide(c.now, s.counts, call)
	if wireError = c.storeSlices(k, &h, w, &s, &d); wireError != "" {
		return v, wireError
	}
	return d.Verdict, ""
}

// storeSlices keeps what a decision has changed of a sliding window, or returns why it cannot be kept.
func (c *Ctx) storeSlices(k store.Key, h *store.Hash, w throttle.Sliding, s *slidingState, d *throttle.SlidingDecision) (refusal string) {
	if d.Write == throttle.Keep {
		return ""
	}
	if refusal = c.refuseState(s.grows(h.Len())); refusal != "" {
		return refusal
	}
	if d.Write == throttle.Delete {
		c.deleteState(k, h.Entry())
		return ""
	}
	last := d.LastChanged
	if s.foreign {
		// The slices of another length are summed up in ours: keep those alone. What is of the future goes too.
		last = len(s.counts) - 1
		if h.Len() > 0 {
			c.deleteState(k, h.Entry())
		}
		*h, _ = c.db.HashCreate(k, c.now)
		s.dropped = 0
	}
	for i, count := range s.counts[:last+1] {
		field, value := c.sliceField(w.StartOf(c.now, i), count)
		switch {
		case count > 0:
			h.Set(field, value)
			if c.logs() {
				c.effect("HSET", k.Name, field, value)
			}
		case h.Delete(field):
			c.effect("HDEL", k.Name, field)
		}
	}
	for _, start := range s.expired[:s.dropped] {
		field, _ := c.sliceField(start, 0)
		h.Delete(field)
		c.effect("HDEL", k.Name, field)
	}
	c.notify(config.EventHash, "hset", k.Name)
	c.expireState(k, h.Entry(), d.ExpireAtMs)
	return ""
}

// grows reports whether the hash has more fields after the decision than so many before.
func (s *slidingState) grows(before int) bool {
	if !s.foreign {
		return s.begins && s.counts[0] > 0 && s.dropped == 0
	}
	for _, count := range s.counts {
		if count > 0 {
			before--
		}
	}
	return before < 0
}

// sliceField renders a slice's field and value, which are valid until the next call.
func (c *Ctx) sliceField(start, count int64) (field, value []byte) {
	text := strconv.AppendInt(c.scratch[:0], start, 10)
	n := len(text)
	text = strconv.AppendInt(text, count, 10)
	c.scratch = text
	return text[:n:n], text[n:]
}

func (c *Ctx) decideLog(k store.Key, p *policy.Policy, r *policy.Request) (v throttle.Verdict, wireError string) {
	z, _, err := c.db.ZSet(k, c.now)
	if err != nil {
		return v, errWrongType
	}
	l := throttle.Log{Limit: p.Limit, Window: p.Window}
	since := l.Since(c.now)
	first, used := window(&z, since, c.now)
	at := func(i int64) int64 { return timeAt(&z, first+int(i)) }
	call := r.Call
	if r.HasMember {
		score, held := z.Score(r.Member)
		inside := held && score > float64(since) && score <= float64(c.now)
		switch {
		case inside && call.Cost >= 0:
			call.Cost = 0 // an id that is inside is allowed again, and charged nothing; a look tells so too
			d := l.Decide(c.now, int64(used), at, call)
			d.Limited, d.RetryAfter = false, throttle.NoRetry
			return d.Verdict, ""
		case call.Cost < 0:
			return c.forgetMember(k, &z, l, r, inside)
		}
	}
	d := l.Decide(c.now, int64(used), at, call)
	if wireError = c.storeEntries(k, &z, r, first, used, &d); wireError != "" {
		return v, wireError
	}
	return d.Verdict, ""
}

// storeEntries keeps what a decision has changed of a log, or returns why it cannot be kept. Of its entries, used count, and before
// these come so many that count no longer.
func (c *Ctx) storeEntries(k store.Key, z *store.ZSet, r *policy.Request, expired, used int, d *throttle.LogDecision) (refusal string) {
	if d.Write == throttle.Keep {
		return ""
	}
	grows := int(d.Add) > min(expired, maxTrimmed)
	if r.HasMember {
		grows = !has(z, r.Member)
	}
	if refusal = c.refuseState(grows); refusal != "" {
		return refusal
	}
	if d.Write == throttle.Delete {
		c.deleteState(k, z.Entry())
		return ""
	}
	if d.Remove > 0 {
		c.removeRanks(k, z, expired+used-int(d.Remove), expired+used-1)
	}
	c.trim(k, z, expired)
	c.appendLog(k, z, r, int(d.Add))
	c.expireState(k, z.Entry(), d.ExpireAtMs)
	return ""
}

// has reports whether an id stands in a sorted set, still inside or not. One that does not takes room, whatever is trimmed for it: it may
// be of any length.
func has(z *store.ZSet, id []byte) bool {
	_, held := z.Score(id)
	return held
}

// window returns the rank of the first entry later than since, and how many there are up to now.
func window(z *store.ZSet, since, now int64) (first, used int) {
	after := z.CountAfter(since)
	first = z.Len() - after
	if after > 0 {
		if _, newest := z.AtRank(z.Len() - 1); newest > float64(now) {
			after -= z.CountAfter(now)
		}
	}
	return first, after
}

// timeAt is the score of a rank as a time in ms; one between two counts as the later.
func timeAt(z *store.ZSet, rank int) int64 {
	_, score := z.AtRank(rank)
	return scoreTime(score)
}

// maxScoreTime is beyond every instant that limiters write, and exact as a score.
const maxScoreTime = 1 << 53

// scoreTime is a score as a time in ms.
func scoreTime(score float64) int64 {
	return int64(math.Ceil(max(-maxScoreTime, min(score, maxScoreTime))))
}

// forgetMember gives an id back.
func (c *Ctx) forgetMember(k store.Key, z *store.ZSet, l throttle.Log, r *policy.Request, inside bool) (v throttle.Verdict, wireError string) {
	since := l.Since(c.now)
	if inside && !r.Call.Peek {
		if wireError = c.refuseState(false); wireError != "" {
			return v, wireError
		}
		z.Remove(r.Member)
		c.effect("ZREM", k.Name, r.Member)
		c.notify(config.EventZSet, "zrem", k.Name)
		c.notifyDeleted(z.Len() == 0, k.Name)
	}
	first, used := window(z, since, c.now)
	d := l.Decide(c.now, int64(used), func(i int64) int64 { return timeAt(z, first+int(i)) }, throttle.Call{Peek: true})
	d.Limited, d.RetryAfter = false, throttle.NoRetry
	if inside && !r.Call.Peek && used > 0 {
		c.expireState(k, z.Entry(), d.ExpireAtMs)
	}
	return d.Verdict, ""
}

// appendLog adds n entries at now, or the id that the call names.
func (c *Ctx) appendLog(k store.Key, z *store.ZSet, r *policy.Request, n int) {
	switch {
	case n == 0:
		return
	case r.HasMember:
		z.Add(float64(c.now), r.Member)
		if c.logs() {
			c.effect("ZADD", k.Name, c.now, r.Member)
		}
	case c.logs():
		z.AppendStamps(c.now, n, func(member []byte) { c.effect("ZADD", k.Name, c.now, member) })
	default:
		z.AppendStamps(c.now, n, nil)
	}
	c.notify(config.EventZSet, "zadd", k.Name)
}

// trim takes a few of the oldest entries out, of which so many count no longer.
func (c *Ctx) trim(k store.Key, z *store.ZSet, expired int) {
	if expired > 0 {
		c.removeRanks(k, z, 0, min(expired, maxTrimmed)-1)
	}
}

// removeRanks takes the entries of ranks start to stop out.
func (c *Ctx) removeRanks(k store.Key, z *store.ZSet, start, stop int) {
	z.RemoveRank(start, stop)
	if c.logs() {
		c.effect("ZREMRANGEBYRANK", k.Name, start, stop)
	}
	c.notify(config.EventZSet, "zremrangebyrank", k.Name)
}
