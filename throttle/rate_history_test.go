package throttle

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutGCRA is how RL.GCRA decided until rates became exact: by an emission interval cut to whole nanoseconds.
type cutGCRA struct{ interval, limit, tolerance int64 }

func newCutGCRA(capacity, count, periodNs int64) (cutGCRA, error) {
	interval := periodNs / count
	if interval == 0 {
		return cutGCRA{}, ErrOverflow
	}
	tolerance, ok := mul(interval, capacity)
	if !ok {
		return cutGCRA{}, ErrOverflow
	}
	return cutGCRA{interval: interval, limit: capacity, tolerance: tolerance}, nil
}

func (g cutGCRA) charge(now, tat int64, exists bool, call Call) (Decision, error) {
	d, err := g.decide(now, tat, exists, call.Cost)
	if call.Cost >= 0 && !call.Peek || err != nil {
		return d, err
	}
	if call.Cost < 0 && d.Limited {
		newTAT := max(now, tat) + g.interval*call.Cost
		ahead := newTAT - now
		d = Decision{Write: Set, Limit: g.limit, Remaining: g.remaining(ahead), RetryAfter: NoRetry, ResetAfter: ahead, TAT: newTAT}
	}
	if call.Peek {
		ahead := g.wait(now, tat, exists)
		d.Write, d.TAT = Keep, 0
		d.Remaining, d.ResetAfter = g.remaining(ahead), ahead
	}
	return d, nil
}

func (g cutGCRA) decide(now, tat int64, exists bool, quantity int64) (Decision, error) {
	increment, ok := mul(g.interval, quantity)
	if !ok {
		return Decision{}, ErrOverflow
	}
	if !exists {
		tat = now
	}
	tat = max(now, tat)
	newTAT, ok := add(tat, increment)
	if !ok {
		return Decision{}, ErrOverflow
	}
	newTAT = max(now, newTAT)
	ahead := newTAT - now
	if ahead > g.tolerance {
		d := Decision{Limited: true, Limit: g.limit, Remaining: g.remaining(tat - now), RetryAfter: NoRetry, ResetAfter: tat - now}
		if increment <= g.tolerance {
			d.RetryAfter = ahead - g.tolerance
		}
		return d, nil
	}
	d := Decision{Limit: g.limit, Remaining: g.remaining(ahead), RetryAfter: NoRetry, ResetAfter: ahead}
	switch {
	case quantity == 0:
	case newTAT > now:
		d.Write, d.TAT = Set, newTAT
	case exists:
		d.Write = Delete
	}
	return d, nil
}

func (g cutGCRA) remaining(ahead int64) int64 { return (max(g.tolerance, ahead) - ahead) / g.interval }

func (g cutGCRA) wait(now, tat int64, exists bool) int64 {
	if !exists || tat <= now {
		return 0
	}
	return tat - now
}

// TestRateHistoriesAreAsBefore: where the count divides the period, every answer, every error and every state written is as it was before rates
// became exact.
func TestRateHistoriesAreAsBefore(t *testing.T) {
	draw := drawer{newRand(t)}
	outcomes := map[string]int{}
	for range *histories {
		interval := 1 + draw.upTo(1e12)
		count := 1 + draw.upTo(min(1e15, math.MaxInt64/interval)-1)
		now, tat, exists := draw.start(), int64(0), false
		for range 1 + draw.IntN(25) {
			capacity := draw.capacity(interval)
			rate, err := NewRate(capacity, count, interval*count)
			cut, wantErr := newCutGCRA(capacity, count, interval*count)
			if !errors.Is(err, wantErr) {
				require.Failf(t, "another error", "%d %d %d: %v; before %v", capacity, count, interval*count, err, wantErr)
			}
			if err != nil {
				outcomes["no rate"]++
				continue
			}
			if draw.IntN(3) > 0 {
				now += draw.upTo(min(3*interval, math.MaxInt64-now))
			}
			if draw.IntN(50) == 0 {
				tat, exists = draw.any(), true // by another hand
			}
			call := Call{Cost: draw.cost(capacity), Peek: draw.IntN(6) == 0}
			want, wantErr := cut.charge(now, tat, exists, call)
			var got Decision
			err = rate.ChargeTo(&got, now, tat, exists, call)
			if wantErr != nil && (call.Cost > capacity || call.Cost < 0) { // it was an error however plain the answer is
				outcomes["no error any more"]++
				require.NoError(t, err)
				require.Equal(t, call.Cost > 0, got.Limited)
				want, wantErr = got, nil
			}
			if got != want || !errors.Is(err, wantErr) || rate.Wait(now, tat, exists) != cut.wait(now, tat, exists) {
				require.Failf(t, "not as before", "%+v, now %d, TAT %d %t, %+v\nbefore: %+v, %v\ngot:    %+v, %v", rate, now, tat, exists, call, want, wantErr, got, err)
			}
			outcomes[outcome(got, err)]++
			switch got.Write {
			case Set:
				tat, exists = got.TAT, true
			case Delete:
				exists = false
			case Keep:
			}
		}
	}
	t.Logf("%d histories: %v", *histories, outcomes)
	for _, name := range []string{"no rate", "overflow", "limited for ever", "limited for a while", "kept", "set", "deleted"} {
		require.NotZero(t, outcomes[name], "calls that end as %q", name)
	}
}

// start is an instant as a server's clock shows it, or the first one, or one near the last.
func (r drawer) start() int64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return math.MaxInt64 - r.Int64N(1e13)
	}
	return epoch + r.Int64N(1e15)
}

// capacity is small, or of any length, or about as large as the interval lets it be.
func (r drawer) capacity(interval int64) int64 {
	switch r.IntN(8) {
	case 0:
		return r.upTo(math.MaxInt64)
	case 1:
		return max(math.MaxInt64/interval-1+r.Int64N(3), 0)
	}
	return r.Int64N(9)
}

// cost is small, or around the capacity, or of any length, and gives back at times.
func (r drawer) cost(capacity int64) int64 {
	switch r.IntN(8) {
	case 0:
		return r.any()
	case 1, 2:
		return capacity - 2 + r.Int64N(5) // may wrap around at the end of int64
	}
	return r.Int64N(11) - 4
}
