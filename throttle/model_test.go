package throttle

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// call is everything that a decision depends on.
type call struct {
	quota    Quota
	now, tat int64
	exists   bool
	quantity int64
}

// modelAnswer is what the model expects of a call that is no error.
type modelAnswer struct {
	decision     Decision
	seconds      int64 // of ResetAfter
	retrySeconds int64
	expireAtMs   int64 // of the TAT, when it is written
}

// model decides a call with integers that have no end, following the published formulae line by line and sharing no
// code with the package. Whatever int64 cannot hold is an error in the end, so no step needs care on its own.
func model(c call) (modelAnswer, error) {
	var (
		now      = big.NewInt(c.now)
		quantity = big.NewInt(c.quantity)
		zero     = new(big.Int)
		minus1   = big.NewInt(-1)
	)
	if c.quota.Count == 0 || c.quota.Period == 0 {
		return modelAnswer{}, ErrZeroRate
	}
	periodNs := times(big.NewInt(c.quota.Period), big.NewInt(1e9))
	if !periodNs.IsInt64() {
		return modelAnswer{}, ErrOverflow
	}
	interval := new(big.Int).Quo(periodNs, big.NewInt(c.quota.Count)) // Quo cuts toward zero.
	if interval.Sign() == 0 {
		return modelAnswer{}, ErrZeroRate
	}
	limit := plus(big.NewInt(c.quota.MaxBurst), big.NewInt(1))
	tolerance := times(interval, limit)
	increment := times(interval, quantity)
	tat := now
	if c.exists && c.tat > c.now {
		tat = big.NewInt(c.tat)
	}

	if interval.Sign() < 0 {
		ttl := minus(tat, now)
		if !allInt64(limit, tolerance, increment, ttl) {
			return modelAnswer{}, ErrOverflow
		}
		return newModelAnswer(true, limit, zero, minus1, ttl, Keep, nil), nil
	}

	charged := plus(tat, increment)
	newTAT := charged
	if newTAT.Cmp(now) < 0 {
		newTAT = now
	}
	allowAt := minus(newTAT, tolerance)
	limited := now.Cmp(allowAt) < 0
	retry, ttl := minus1, minus(newTAT, now)
	// The durations up to the new TAT must fit, whether or not they are reported.
	if !allInt64(limit, tolerance, increment, charged, ttl) {
		return modelAnswer{}, ErrOverflow
	}
	if limited {
		ttl = minus(tat, now)
		if increment.Cmp(tolerance) <= 0 {
			retry = minus(allowAt, now)
		}
	}
	if !allInt64(retry, ttl) {
		return modelAnswer{}, ErrOverflow
	}

	remaining := new(big.Int).Quo(minus(tolerance, ttl), interval)
	most := limit
	if most.Sign() < 0 {
		most = zero
	}
	if remaining.Cmp(most) > 0 {
		remaining = most
	}
	if remaining.Sign() < 0 {
		remaining = zero
	}
	write := Keep
	if !limited && quantity.Sign() != 0 {
		if newTAT.Cmp(now) != 0 {
			write = Set
		} else if c.exists {
			write = Delete
		}
	}
	return newModelAnswer(limited, limit, remaining, retry, ttl, write, newTAT), nil
}

func newModelAnswer(limited bool, limit, remaining, retry, ttl *big.Int, write Write, newTAT *big.Int) modelAnswer {
	answer := modelAnswer{
		decision: Decision{
			Limited: limited, Write: write, Limit: limit.Int64(), Remaining: remaining.Int64(),
			RetryAfter: retry.Int64(), ResetAfter: ttl.Int64(),
		},
		seconds:      modelSeconds(ttl),
		retrySeconds: -1,
	}
	if retry.Sign() >= 0 {
		answer.retrySeconds = max(modelSeconds(retry), 1)
	}
	if write == Set {
		answer.decision.TAT = newTAT.Int64()
		answer.expireAtMs = divideUp(newTAT, 1e6).Int64()
	}
	return answer
}

func modelSeconds(ns *big.Int) int64 {
	wholeMs := new(big.Int).Quo(ns, big.NewInt(1e6))
	return divideUp(wholeMs, 1e3).Int64()
}

// divideUp is the smallest integer not below n / unit: minus the floor of -n / unit, which Div gives.
func divideUp(n *big.Int, unit int64) *big.Int {
	negated := new(big.Int).Neg(n)
	return negated.Neg(negated.Div(negated, big.NewInt(unit)))
}

func plus(a, b *big.Int) *big.Int  { return new(big.Int).Add(a, b) }
func minus(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func times(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

func allInt64(numbers ...*big.Int) bool {
	for _, number := range numbers {
		if !number.IsInt64() {
			return false
		}
	}
	return true
}

// checkAgainstModel compares one call with the model, and what is promised of every answer besides.
func checkAgainstModel(t *testing.T, c call) (Decision, error) {
	t.Helper()
	want, wantErr := model(c)
	got, err := Decide(c.quota, c.now, c.tat, c.exists, c.quantity)
	if !errors.Is(err, wantErr) {
		require.Failf(t, "error differs", "%+v\nmodel: %v\nDecide: %v", c, wantErr, err)
	}
	if got != want.decision {
		require.Failf(t, "decision differs", "%+v\nmodel:  %+v\nDecide: %+v", c, want.decision, got)
	}
	if err != nil {
		return got, err
	}
	if Seconds(got.ResetAfter) != want.seconds || RetrySeconds(got.RetryAfter) != want.retrySeconds {
		require.Failf(t, "seconds differ", "%+v\nmodel: %+v\nDecide: %+v", c, want, got)
	}
	if got.Write == Set && ExpireAtMs(got.TAT) != want.expireAtMs {
		require.Failf(t, "expiry differs", "%+v\nmodel: %+v\nDecide: %d", c, want, ExpireAtMs(got.TAT))
	}
	if got.Remaining < 0 || got.Remaining > max(got.Limit, 0) || got.ResetAfter < 0 || got.RetryAfter < NoRetry || got.RetryAfter == 0 {
		require.Failf(t, "out of bounds", "%+v\nDecide: %+v", c, got)
	}
	return got, nil
}

func TestDecideAgainstModel(t *testing.T) {
	draw := drawer{newRand(t)}
	outcomes := map[string]int64{}
	for range *decideN {
		d, err := checkAgainstModel(t, draw.call())
		outcomes[outcome(d, err)]++
	}
	t.Logf("%d calls: %v", *decideN, outcomes)

	// Arguments that nearly all end in one outcome would test little.
	const enough, share = 100_000, 200
	if *decideN < enough {
		return
	}
	for _, name := range []string{"zero rate", "overflow", "limited for ever", "limited for a while", "kept", "set", "deleted"} {
		require.Greater(t, outcomes[name], *decideN/share, "calls that end as %q", name)
	}
}

func outcome(d Decision, err error) string {
	switch {
	case errors.Is(err, ErrZeroRate):
		return "zero rate"
	case err != nil:
		return "overflow"
	case d.Limited && d.RetryAfter == NoRetry:
		return "limited for ever"
	case d.Limited:
		return "limited for a while"
	case d.Write == Set:
		return "set"
	case d.Write == Delete:
		return "deleted"
	}
	return "kept"
}

// drawer draws the arguments of calls. Uniform numbers would overflow nearly always, so most calls are drawn around
// the places where a decision tips over.
type drawer struct{ *rand.Rand }

func (r drawer) call() call {
	switch r.IntN(4) {
	case 0:
		return r.wild()
	case 1:
		return r.brink()
	}
	return r.ordinary()
}

// wild takes every argument from anywhere.
func (r drawer) wild() call {
	return call{
		quota: Quota{MaxBurst: r.any(), Count: r.any(), Period: r.any()},
		now:   r.any(), tat: r.any(), exists: r.IntN(4) > 0, quantity: r.any(),
	}
}

// ordinary is a call as a server sees it, with a TAT around now, around the tolerance, or a few units used.
func (r drawer) ordinary() call {
	c := call{
		quota:    Quota{MaxBurst: r.Int64N(30) - 3, Count: 1 + r.Int64N(100), Period: 1 + r.Int64N(3600)},
		now:      epoch + r.Int64N(1e15),
		exists:   r.IntN(5) > 0,
		quantity: r.Int64N(6) - 2,
	}
	if r.IntN(8) == 0 {
		c.quota.Count, c.quota.Period = -c.quota.Count, -c.quota.Period
	}
	if r.IntN(20) == 0 {
		c.quota.Count = -c.quota.Count
	}
	if r.IntN(8) == 0 {
		c.quota.Count *= 1 << r.IntN(30) // Up to high rates, some of them too high.
	}
	limit := c.quota.MaxBurst + 1
	if r.IntN(4) == 0 {
		c.quantity = limit + r.Int64N(5) - 2
	}
	interval := c.quota.Period * 1e9 / c.quota.Count
	used := r.Int64N(max(limit, 0)+4) - 1
	c.tat = c.now + interval*used + r.offset()
	if r.IntN(16) == 0 {
		c.tat = r.any()
	}
	return c
}

// brink solves for arguments whose products and sums just fit, or just do not.
func (r drawer) brink() call {
	c := call{quota: Quota{Count: r.any(), Period: r.Int64N(2*9_223_372_037+1) - 9_223_372_037}, exists: r.IntN(4) > 0}
	if r.IntN(2) == 0 {
		c.quota.Count = 1 << r.IntN(63)
	}
	if r.IntN(4) == 0 {
		c.quota.Count, c.quota.Period = 1e9>>r.IntN(10), 1 // Intervals of powers of two reach the lowest int64 exactly.
	}
	interval := int64(1)
	if c.quota.Count != 0 {
		interval = c.quota.Period * 1e9 / c.quota.Count
	}
	if interval == 0 {
		interval = 1
	}
	edge := func() int64 { // Times interval this is near an end of int64.
		if r.IntN(2) == 0 {
			return math.MaxInt64/interval + r.offset()
		}
		return math.MinInt64/interval + r.offset()
	}
	some := func(n int64) int64 {
		if r.IntN(2) == 0 {
			return r.Int64N(n)
		}
		return edge()
	}
	c.quota.MaxBurst, c.quantity = some(10)-1, some(4)-1
	c.now = []int64{0, epoch, r.any(), math.MaxInt64 - r.Int64N(1e10)}[r.IntN(4)]
	increment := interval * c.quantity
	c.tat = []int64{c.now, math.MaxInt64 - increment, math.MinInt64 - increment, c.now + interval*(c.quota.MaxBurst+1), r.any()}[r.IntN(5)] + r.offset()
	return c
}

// any is an int64 from anywhere: the ends, zero and the largest period that fits, the numbers next to these, and
// numbers of every length.
func (r drawer) any() int64 {
	marks := []int64{0, math.MaxInt64, math.MinInt64, 1e9, -1e9, 9_223_372_036, -9_223_372_036, epoch}
	switch r.IntN(3) {
	case 0:
		return marks[r.IntN(len(marks))] + r.offset()
	case 1:
		return r.Int64N(41) - 20
	}
	return int64(r.Uint64()) >> r.IntN(64)
}

// offset is a small number, zero as often as not.
func (r drawer) offset() int64 {
	if r.IntN(2) == 0 {
		return 0
	}
	return r.Int64N(7) - 3
}
