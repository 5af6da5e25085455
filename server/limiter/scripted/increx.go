package scripted

import (
	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/server/limiter"
	"headgate/throttle"
)

// INCREX, which no Redis before 8.8 knows.

// ErrNotFloat is what INCREX BYFLOAT is answered with if the key holds no number.
const ErrNotFloat = limiter.Error("ERR value is not a valid float")

// Increased is the answer to AskIncrex: the number, and by how much it is more than before. With Float they are the texts.
type Increased struct {
	Sum, Applied         int64
	SumText, AppliedText []byte
}

// AskIncrex is Ask for INCREX, whose answer is in Increased. x is kept until the answer is there.
func (q *Question) AskIncrex(dst, key []byte, x *limiter.Increx) []byte {
	a := q.begin(key)
	q.Call.Policy, q.Call.Request = nil, nil
	a.family, a.increx = ofIncrex, x
	a.exact = !x.Float && x.Delta <= maxExact && x.Delta >= -maxExact && x.Low <= maxExact && x.High >= -maxExact && x.TimeMs <= maxExact
	return q.decideThere(dst, false)
}

// appendIncrex appends the arguments of its part.
func appendIncrex(dst []byte, x *limiter.Increx) []byte {
	const most = 10 * maxExact
	dst = appendNumber(dst, x.Delta)
	dst = appendNumber(dst, max(x.Low, -most))
	dst = appendNumber(dst, min(x.High, most))
	dst = appendFlag(dst, x.Saturate)
	switch {
	case x.Persist:
		dst = respcmd.AppendBulk(dst, "never")
	case !x.Expires:
		dst = respcmd.AppendBulk(dst, "keep")
	case x.Relative:
		dst = respcmd.AppendBulk(dst, "in")
	default:
		dst = respcmd.AppendBulk(dst, "at")
	}
	dst = appendNumber(dst, x.TimeMs)
	return appendFlag(dst, x.Absent)
}

// foundIncrex takes the text of a key, nil for none, and when it expires, as foundNumber does.
func (a *asked) foundIncrex(text []byte, at int64) error {
	if !a.increx.Float {
		return a.foundNumber(text, at)
	}
	f := &a.call.Found
	f.Exists, f.ExpireAtMs = text != nil && at != -2, max(at, 0)
	a.fraction = number.LongDouble{}
	if !f.Exists {
		return nil
	}
	var ok bool
	if a.fraction, ok = number.ParseLongDouble(text); !ok || a.fraction.IsInf() {
		return ErrNotFloat
	}
	return nil
}

// decideIncrex is decide for INCREX.
func (a *asked) decideIncrex() {
	c, x, answer := a.call, a.increx, &a.increased
	c.Verdict.Limited, c.Change.Write = false, throttle.Keep
	current, present := int64(0), int64(0)
	if c.Found.Exists {
		current, present = c.Found.Number, c.Found.ExpireAtMs
	}
	write := false
	if *answer = (Increased{}); x.Float {
		var sum, applied number.LongDouble
		sum, applied, write = x.AddFloat(a.fraction)
		answer.SumText, answer.AppliedText = sum.Append(nil), applied.Append(nil)
	} else {
		answer.Sum, answer.Applied, write = x.Add(current)
	}
	if !write {
		return
	}
	at, kept := x.Expiry(present, c.NowMs)
	switch {
	case kept || at == 0 || at > c.NowMs:
		c.Change.Write, c.Change.Number, c.Change.ExpireAtMs = throttle.Set, answer.Sum, at
	case c.Found.Exists:
		c.Change.Write = throttle.Delete
	}
}
