package throttle

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// leasesUsage is the list of all leases.
type leasesUsage struct{ ends map[int]int64 }

func (l *leasesUsage) used(at int64) *big.Int {
	n := int64(0)
	for _, end := range l.ends {
		if end > at {
			n++
		}
	}
	return big.NewInt(n)
}

func (l *leasesUsage) charge(int64, int64) {}
func (l *leasesUsage) refund(int64, int64) {}
func (l *leasesUsage) horizon() int64      { return 60 }

// alive lists the ends of the leases that have not ended, in order.
func (l *leasesUsage) alive(now int64) []int64 {
	var ends []int64
	for _, end := range l.ends {
		if end > now {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	return ends
}

func TestLeasesHistories(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		model := &leasesUsage{ends: map[int]int64{}}
		now := startMs(t)
		for range calls(t) {
			limit := rapid.Int64Range(0, 5).Draw(t, "limit")
			l := Leases{Limit: limit, TTL: rapid.Int64Range(1, 60).Draw(t, "ttl")}
			now += drawStep(t, 60)
			holder, peek := rapid.IntRange(0, 7).Draw(t, "holder"), rapid.IntRange(0, 5).Draw(t, "peek") == 0
			ends := model.alive(now)
			state := LeasesState{Held: int64(len(ends)), Mine: model.ends[holder] > now}
			others := &leasesUsage{ends: map[int]int64{}}
			for id, end := range model.ends {
				if id != holder {
					others.ends[id] = end
				}
			}
			if last := others.alive(now); len(last) > 0 {
				state.Last = last[len(last)-1]
			}
			if state.Mine {
				state.MyEnd = model.ends[holder]
			}
			asked := rapid.Int64Range(0, 1).Draw(t, "cost")
			got := l.Acquire(now, state, func(i int64) int64 { return ends[i] }, Call{Cost: asked, Peek: peek})

			// The holder of a lease passes; anybody else needs room for one more, if it asks for one.
			cost := asked
			if state.Mine {
				cost = -1
			}
			limited := cost >= 0 && int64(len(ends))+cost > limit
			if !limited && !peek && asked > 0 {
				model.ends[holder] = now + l.TTL
			}
			want := expect(model, limit, now, Call{Cost: cost, Peek: true})
			want.Limited = limited
			if !limited {
				want.RetryAfter = NoRetry
			}
			same(t, want, got, l)
			if alive := model.used(now).Int64(); !limited && !state.Mine && asked > 0 && alive > limit {
				t.Fatalf("%d hold a lease, limit %d", alive, limit)
			}
		}
	})
}

// bucket is a bucket that leaks one nanosecond's worth of debt each nanosecond.
type bucket struct {
	debt *big.Int
	at   int64
}

func (b *bucket) owed(now int64) *big.Int {
	left := minus(b.debt, big.NewInt(now-b.at))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

func TestGCRAHistories(t *testing.T) {
	checkHistories(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 1e15)).Draw(t, "count")
		periodNs := rapid.Int64Range(1000, 5_000_000_000).Draw(t, "period")
		model := bucket{debt: new(big.Int)}
		var key storedKey
		now := epoch
		for range calls(t) {
			limit := drawLimit(t)
			exact := exactRate{limit, count, periodNs}
			g, err := NewRate(limit, count, periodNs)
			if err != nil {
				t.Fatal(err)
			}
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3*(periodNs/count)+3)).Draw(t, "step")
			call := drawCall(t, limit)
			if key.exists && now > key.expireAtMs*nsPerMs {
				key = storedKey{}
			}
			var got Decision
			err = g.ChargeTo(&got, now, key.tat, key.exists, call)
			if err != nil {
				t.Fatal(err)
			}
			if wait := g.Wait(now, key.tat, key.exists); wait != model.owed(now).Int64() {
				t.Fatalf("waits %d, model: %v", wait, model.owed(now))
			}
			switch got.Write {
			case Set:
				key = storedKey{exists: true, tat: got.TAT, expireAtMs: ExpireAtMs(got.TAT)}
			case Delete:
				key = storedKey{}
			case Keep:
			}

			room := exact.tolerance()
			want := Decision{Limit: limit, RetryAfter: NoRetry}
			debt := model.owed(now)
			charged := plus(debt, exact.charge(call.Cost))
			switch {
			case call.Cost > limit:
				want.Limited = true
			case call.Cost >= 0 && charged.Cmp(room) > 0:
				want.Limited, want.RetryAfter = true, minus(charged, room).Int64()
			case !call.Peek:
				if charged.Sign() < 0 {
					charged.SetInt64(0)
				}
				model, debt = bucket{charged, now}, charged
			}
			want.ResetAfter = debt.Int64()
			want.Remaining = exact.remaining(debt.Int64()).Int64()
			got.Write, got.TAT = Keep, 0
			if got != want {
				t.Fatalf("%+v\nmodel: %+v\ngot:   %+v", call, want, got)
			}
		}
	})
}
