package scripted

import (
	"bytes"
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/server/limiter"
	"headgate/throttle"
)

// The general way: states that were loaded, and changes as the commands that make them.

// maxTrimmed is how many entries that count no longer one call takes out, as at home.
const maxTrimmed = 8

// readState reads the state of a key as load.lua answers it.
func (a *asked) readState(r *reply) error {
	elements := r.array()
	digest := r.text()
	if elements == 2 {
		return limiter.Error(bareError(string(r.text())))
	}
	a.digest = append(a.digest[:0], digest...)
	at := r.number()
	size := r.array()
	switch kindName(a) {
	case "slices":
		return a.readSlices(r, size/2)
	case "entries":
		a.readEntries(r, size/2)
		return nil
	}
	var text []byte
	if size > 0 {
		text = r.text()
	}
	if a.increx != nil {
		return a.foundIncrex(text, at)
	}
	return a.foundNumber(text, at)
}

func (a *asked) readSlices(r *reply, n int) error {
	f := &a.call.Found
	f.Slices, f.Exists = f.Slices[:0], n > 0
	whole := true
	for range n {
		start, ok := number.ParseInt(r.text())
		count, isCount := number.ParseInt(r.text())
		whole = whole && ok && isCount && count >= 0
		f.Slices = append(f.Slices, limiter.Slice{Start: start, Count: count})
	}
	if !whole {
		return limiter.ErrForeign
	}
	return nil
}

// readEntries reads a sorted set, and finds of it what the call wants to know.
func (a *asked) readEntries(r *reply, n int) {
	f, w := &a.call.Found, &a.call.Want
	a.ranks, a.state = a.ranks[:0], a.state[:0]
	f.Exists, f.MemberHeld, f.Expired, f.Used = n > 0, false, 0, 0
	for range n {
		member := r.text()
		score, _ := number.ParseScore(r.text())
		switch {
		case score <= float64(w.After):
			f.Expired++
		case w.Until >= limiter.Forever || score <= float64(w.Until):
			f.Used++
		}
		at := int64(math.Ceil(max(-limiter.Forever, min(score, limiter.Forever))))
		if w.HasMember && bytes.Equal(member, w.Member) {
			f.MemberHeld, f.MemberAt = true, at
		}
		a.state = append(a.state, entry{member, at})
	}
	a.newest = f.Expired + int(f.Used) - 1
}

// command appends a command of a key to the changes.
func (e *exchange) command(key int, name string, words ...[]byte) {
	e.changes = appendNumber(e.changes, int64(2+len(words)))
	e.changes = respcmd.AppendBulk(e.changes, name)
	e.changes = appendNumber(e.changes, int64(key))
	for _, word := range words {
		e.changes = respcmd.AppendBulk(e.changes, word)
	}
	e.words += 3 + len(words)
}

func digits(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// appendChange appends the commands that make a call's change of the key of a number.
func (e *exchange) appendChange(a *asked, key int) {
	c := a.call
	ch := &c.Change
	switch {
	case ch.Write == throttle.Keep:
	case ch.Write == throttle.Delete:
		e.command(key, "DEL")
	case kindName(a) == "slices":
		e.appendSlices(ch, key)
	case kindName(a) == "entries":
		e.appendEntries(a, key)
	default:
		text := digits(ch.Number)
		if a.increx != nil && a.increx.Float {
			text = a.increased.SumText
		}
		if ch.ExpireAtMs == 0 {
			e.command(key, "SET", text)
		} else {
			e.command(key, "SET", text, []byte("PXAT"), digits(ch.ExpireAtMs))
		}
	}
}

func (e *exchange) appendSlices(ch *limiter.Change, key int) {
	if ch.Replace {
		e.command(key, "DEL")
	}
	for _, s := range ch.Slices {
		if s.Count > 0 {
			e.command(key, "HSET", digits(s.Start), digits(s.Count))
		} else {
			e.command(key, "HDEL", digits(s.Start))
		}
	}
	e.command(key, "PEXPIREAT", digits(ch.ExpireAtMs))
}

func (e *exchange) appendEntries(a *asked, key int) {
	ch := &a.call.Change
	if ch.RemoveNewest > 0 {
		e.command(key, "ZREMRANGEBYRANK", digits(int64(a.newest+1-ch.RemoveNewest)), digits(int64(a.newest)))
	}
	if ch.Remove != nil {
		e.command(key, "ZREM", ch.Remove)
	}
	if expired := a.call.Found.Expired; ch.Trim && expired > 0 {
		e.command(key, "ZREMRANGEBYRANK", digits(0), digits(int64(min(expired, maxTrimmed)-1)))
	}
	at := digits(ch.AddAt)
	if ch.Member != nil {
		e.command(key, "ZADD", at, ch.Member)
	} else if ch.Add > 0 {
		e.appendStamps(a, key, at, ch.Add)
	}
	if ch.ExpireAtMs != 0 {
		e.command(key, "PEXPIREAT", digits(ch.ExpireAtMs))
	}
}

// appendStamps adds entries that have no ids of their own: they are named by their time and the next numbers that are free.
func (e *exchange) appendStamps(a *asked, key int, at []byte, n int) {
	held := make(map[string]bool, len(a.state))
	next := 0
	for _, s := range a.state {
		held[string(s.member)] = true
		if s.at == a.call.Change.AddAt {
			next++
		}
	}
	a.first = int64(next)
	for ; n > 0; next++ {
		name := strconv.AppendInt(append(bytes.Clone(at), '-'), int64(next), 10)
		if !held[string(name)] {
			e.command(key, "ZADD", at, name)
			a.last = int64(next)
			n--
		}
	}
}
