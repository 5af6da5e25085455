package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// leaseHistories runs random histories, and returns the highest share of what may pass beyond the limit that has, and how many histories went
// beyond that.
func leaseHistories(t *testing.T, count int, draw func(r *rand.Rand) (leaseServer, LeaseTerms)) (highest float64, beyond int, first string) {
	w := leaseWorld{r: newRand(t)}
	for i := range count {
		seed := w.r.Uint64()
		own := leaseWorld{r: rand.New(rand.NewPCG(seed, 0)), nodes: w.nodes, letters: w.letters, passed: w.passed}
		server, terms := draw(own.r)
		own.begin(server, terms, 1+own.r.IntN(pickOne(own.r, 1, 2, 4, 32)))
		for range 20 + own.r.IntN(100) {
			own.step()
		}
		own.burst()
		excess, allowed := own.judge()
		if excess > allowed {
			if beyond++; beyond == 1 {
				first = fmt.Sprintf("history %d: %d more has passed, where %d may; limit %+v", i, excess, allowed, terms)
			}
		}
		if allowed > 0 {
			highest = max(highest, float64(excess)/float64(allowed))
		}
		w.nodes, w.letters, w.passed = own.nodes, own.letters, own.passed
	}
	return highest, beyond, first
}

func pickOne[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// drawOptions draws how far leases may go.
func drawOptions(r *rand.Rand) LeaseOptions {
	return LeaseOptions{Overshoot: pickOne(r, 0.05, 0.2, 0.5, 1), Max: pickOne[int64](r, nsPerSecond, nsPerSecond/10, 10*nsPerSecond)}
}

// drawRate draws a limit of a rate.
func drawRate(strict bool, refunds refunds) func(r *rand.Rand) (leaseServer, LeaseTerms) {
	return func(r *rand.Rand) (leaseServer, LeaseTerms) {
		for {
			o := drawOptions(r)
			o.Strict = strict
			count, period := pickOne[int64](r, 1, 2, 5, 10, 100, 1000), pickOne[int64](r, nsPerSecond, 10*nsPerSecond)
			if !strict && r.IntN(4) == 0 {
				count = pickOne[int64](r, 3, 7, 999) // the interval is no whole number of nanoseconds
			}
			s := newRateServer(pickOne(r, 1+r.Int64N(30), 100, 1000), count, period, o)
			s.refunds = refunds
			if s.terms.Capacity >= 1 && s.terms.Length >= 1 {
				return s, s.terms
			}
		}
	}
}

func drawFixed(r *rand.Rand) (leaseServer, LeaseTerms) {
	s := &fixedServer{limit: pickOne(r, 1+r.Int64N(30), 100, 1000), window: pickOne[int64](r, 3, 100, 1000, 60_000), aligned: r.IntN(2) == 0}
	return s, WindowLeaseTerms(s.limit, s.window, drawOptions(r))
}

func drawSliding(r *rand.Rand) (leaseServer, LeaseTerms) {
	limit, window := pickOne(r, 1+r.Int64N(30), 100, 1000), pickOne[int64](r, 10, 1000, 60_000)
	s := &slidingServer{limit: limit, sliding: NewSliding(limit, window, pickOne(r, 1, 3, 10)), slices: map[int64]int64{}}
	return s, WindowLeaseTerms(limit, window, drawOptions(r))
}

// TestQuotaLeaseHistories: whatever happens to up to 32 processes and to what they send, no more passes than the documentation says.
func TestQuotaLeaseHistories(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func(r *rand.Rand) (leaseServer, LeaseTerms)
		some bool // more may pass than without leases, and does
	}{
		{"rate", drawRate(false, rightRefund), true},
		{"strict", drawRate(true, rightRefund), false},
		{"fixed", drawFixed, false},
		{"sliding", drawSliding, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			highest, beyond, first := leaseHistories(t, *histories, c.draw)
			t.Logf("%d histories, in %d more than may passed; the most beyond the limit was %.4f of what may", *histories, beyond, highest)
			require.Zero(t, beyond, first)
			if c.some {
				require.Greater(t, highest, 0.5, "the histories are too tame to show anything")
			}
		})
	}
}

// TestQuotaLeaseHistoriesOfMutants: the histories find out either wrong way to give back.
func TestQuotaLeaseHistoriesOfMutants(t *testing.T) {
	for name, mutant := range map[string]refunds{"plain": plainRefund, "age at sending": refundsAtSend} {
		t.Run(name, func(t *testing.T) {
			_, beyond, first := leaseHistories(t, max(*histories/10, 20_000), drawRate(false, mutant))
			t.Logf("%d histories go beyond the bound; %s", beyond, first)
			require.NotZero(t, beyond)
		})
	}
}

// TestNeverMintedByGivingBack plays the two stories that are told of wrong ways to give back, with each way.
func TestNeverMintedByGivingBack(t *testing.T) {
	type lease struct{ units, at int64 }
	const unit = nsPerSecond / 10 // of a rate of 10 a second
	charge := func(s *rateServer, at, units int64) lease {
		got, g, _ := s.charge(epoch+at*unit, []int64{units})
		require.Equal(t, units, got, "at %d", at)
		return lease{units, g.ChargedAt}
	}
	give := func(s *rateServer, at, sent int64, l lease) {
		s.giveBack(epoch+at*unit, epoch+sent*unit, LeaseReturn{Units: l.units, ChargedAt: l.at})
	}
	twenty := func(way refunds) (held int64) {
		s := newRateServer(20, 10, nsPerSecond, LeaseOptions{Overshoot: 0.5, Max: nsPerSecond})
		s.refunds = way
		first := charge(s, 0, 10)
		held = charge(s, 10, 20).units
		give(s, 10, 10, first)
		if again := s.most(epoch + 10*unit); again > 0 {
			held += charge(s, 10, again).units
		}
		return held + s.most(epoch+20*unit)
	}
	require.EqualValues(t, 30, twenty(rightRefund), "the capacity and what comes back in the length of a lease")
	require.EqualValues(t, 40, twenty(plainRefund))

	hundred := func(way refunds) (held int64) {
		s := newRateServer(100, 10, nsPerSecond, LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
		s.refunds = way
		first := charge(s, 0, 50)
		held = charge(s, 50, 100).units
		give(s, 50, 0, first)
		return held + s.most(epoch+50*unit)
	}
	require.EqualValues(t, 100, hundred(rightRefund))
	require.EqualValues(t, 150, hundred(plainRefund))
	require.EqualValues(t, 150, hundred(refundsAtSend))
}

// leaseAttack is what somebody who controls the network, the clocks and the callers does: it raises the demand that processes see while they are
// cut off, has them lease at once when the capacity is full, and has everybody spend at the last moment.
type leaseAttack struct {
	nodes, calls, rounds int
	nodePPM, serverPPM   int64
	delay, apart         float64 // of charges, and between the nodes' charges, as shares of a lease's length
	hold                 float64 // when they are spent, as a share of the time in which they may be
	idle                 float64 // after the demand was raised, as a share of the time in which the capacity comes back
}

// run returns how much more passes than the limit says, as a share of what may.
func (a leaseAttack) run(r *rand.Rand) float64 {
	s := newRateServer(1000, 100, nsPerSecond, LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
	w := leaseWorld{r: r}
	w.begin(s, s.terms, a.nodes)
	w.clock.ppm = a.serverPPM
	for i := range w.nodes {
		w.nodes[i].clock.ppm = a.nodePPM
	}
	share := func(part float64, whole int64) int64 { return int64(part * float64(whole)) }
	for i := range w.nodes {
		for range a.calls {
			w.call(i, 1, 0, false)
			for len(w.letters) > 0 {
				w.lose(0)
			}
		}
	}
	w.now += share(a.idle, 10*nsPerSecond)
	for range a.rounds {
		for i := range w.nodes {
			w.call(i, 1, 0, false)
			w.now += share(a.delay, s.terms.Length)
			for len(w.letters) > 0 {
				w.deliver(0)
			}
			w.now += share(a.apart, s.terms.Length)
		}
	}
	if h := &w.nodes[0].q.held[0]; h.left > 0 {
		w.now += max(0, share(a.hold, w.nodes[0].clock.until(w.now, h.end-1)))
	}
	w.burst()
	excess, allowed := w.judge()
	if excess > allowed {
		return 2
	}
	return float64(excess) / float64(allowed)
}

// TestNeverMoreThanQuotaLeasesMay has an adversary search for the worst, by changing what it does a little at a time: it gets to where the bound
// says, so that this cannot be lower, and not beyond.
func TestNeverMoreThanQuotaLeasesMay(t *testing.T) {
	r := newRand(t)
	best := 0.0
	var worst leaseAttack
	for range max(2, min(20, *histories/2500)) { // searches from the start
		a := leaseAttack{nodes: 1 + r.IntN(32), calls: r.IntN(100), rounds: 1, delay: r.Float64(), apart: r.Float64(), hold: r.Float64(), idle: r.Float64()}
		reached := a.run(r)
		for range 400 {
			b := a
			switch r.IntN(9) {
			case 0:
				b.nodes = 1 + r.IntN(32)
			case 1:
				b.calls = r.IntN(1000)
			case 2:
				b.rounds = 1 + r.IntN(3)
			case 3:
				b.nodePPM = pickOne[int64](r, minPPM, 0, maxPPM)
			case 4:
				b.serverPPM = pickOne[int64](r, minPPM, 0, maxPPM)
			case 5:
				b.delay = r.Float64() * b.delay
			case 6:
				b.apart = r.Float64() * b.apart
			case 7:
				b.hold = r.Float64()*(1-b.hold) + b.hold
			case 8:
				b.idle = r.Float64()
			}
			if got := b.run(r); got >= reached {
				a, reached = b, got
			}
			require.LessOrEqual(t, reached, 1.0, "%+v", a)
		}
		if reached > best {
			best, worst = reached, a
		}
	}
	t.Logf("the worst found reaches %.4f of the overshoot: %+v", best, worst)
	require.Greater(t, best, 0.9)
}
