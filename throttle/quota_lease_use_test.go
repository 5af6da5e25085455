package throttle

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What leases are good for: how much of the rate is admitted, how much is decided without asking, and who gets it. Time is made up, and
// calls come at random.

// leaseFleet is processes that serve calls of one key by leases, and its server.
type leaseFleet struct {
	r      *rand.Rand
	server *rateServer
	now    int64
	events leaseEvents
	nodes  []*leaseUser

	from     int64 // what comes earlier is not counted
	admitted int64
	upstream int64
}

// leaseUser is a process, and what was counted of it.
type leaseUser struct {
	q        QuotaLease
	up       bool
	demand   float64 // calls a second
	calls    int64
	local    int64
	admitted int64
	recent   []int64 // when calls were admitted; for those who ask
}

// leaseEvent is what happens at a time.
type leaseEvent struct {
	at int64
	do func()
}

type leaseEvents []leaseEvent

func (e leaseEvents) Len() int           { return len(e) }
func (e leaseEvents) Less(i, j int) bool { return e[i].at < e[j].at }
func (e leaseEvents) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *leaseEvents) Push(x any)        { *e = append(*e, x.(leaseEvent)) }
func (e *leaseEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newLeaseFleet(r *rand.Rand, limit, count, period int64, demands ...float64) *leaseFleet {
	f := &leaseFleet{r: r, now: epoch, server: newRateServer(limit, count, period, LeaseOptions{Overshoot: 0.05, Max: 2 * nsPerSecond})}
	for _, demand := range demands {
		u := &leaseUser{up: true, demand: demand}
		f.nodes = append(f.nodes, u)
		f.nextCall(u)
	}
	return f
}

// after has something happen so many ns from now.
func (f *leaseFleet) after(ns int64, do func()) { heap.Push(&f.events, leaseEvent{f.now + ns, do}) }

// run lets so much time go by.
func (f *leaseFleet) run(ns int64) {
	for end := f.now + ns; ; {
		if len(f.events) == 0 || f.events[0].at > end {
			f.now = end
			return
		}
		e := heap.Pop(&f.events).(leaseEvent)
		f.now = e.at
		e.do()
	}
}

// count has everything be counted from now on.
func (f *leaseFleet) count() {
	f.from, f.admitted, f.upstream = f.now, 0, 0
	for _, u := range f.nodes {
		u.calls, u.local, u.admitted = 0, 0, 0
	}
}

// oneWay is how long a message takes.
func (f *leaseFleet) oneWay() int64 { return nsPerMs/10 + f.r.Int64N(nsPerMs/2) }

func (f *leaseFleet) nextCall(u *leaseUser) {
	f.after(int64(f.r.ExpFloat64()/u.demand*nsPerSecond)+1, func() {
		if u.up {
			f.call(u)
		}
		f.nextCall(u)
	})
}

func (f *leaseFleet) admit(u *leaseUser) {
	f.admitted++
	u.admitted++
	u.recent = append(u.recent, f.now)
}

// call is one call of a client for one unit.
func (f *leaseFleet) call(u *leaseUser) {
	u.calls++
	switch u.q.Decide(&f.server.terms, f.now, 1) {
	case LeaseSpent:
		u.local++
		f.admit(u)
	case LeaseRefused:
		u.local++
	case LeaseAsk:
		f.ask(u, 1)
		return
	}
	if u.q.Renews(&f.server.terms, f.now) {
		f.ask(u, 0)
	}
}

// ask charges a call that waits, if cost is 1, with a lease if that pays.
func (f *leaseFleet) ask(u *leaseUser, cost int64) {
	var sizes [MaxLeaseSizes]int64
	sent := f.now
	n := u.q.Sizes(&f.server.terms, f.now, cost, &sizes)
	leases := n > 0
	if !leases {
		if cost == 0 {
			return
		}
		sizes[0], n = cost, 1
	}
	f.upstream++
	f.after(f.oneWay(), func() {
		units, g, refusal := f.server.charge(f.now, sizes[:n])
		f.after(f.oneWay(), func() {
			if !u.up {
				return
			}
			if units > 0 && cost > 0 {
				f.admit(u)
			}
			switch {
			case !leases:
			case units > 0:
				g.Sent, g.Heard, g.Units = sent, f.now, units-cost
				u.q.Granted(&f.server.terms, g)
			default:
				refusal.Heard, refusal.Ahead = f.now, cost == 0
				u.q.Refused(&f.server.terms, refusal)
			}
		})
	})
}

// localShare is the share of the calls that were decided without asking.
func (f *leaseFleet) localShare() float64 {
	calls, local := int64(0), int64(0)
	for _, u := range f.nodes {
		calls, local = calls+u.calls, local+u.local
	}
	return float64(local) / float64(calls)
}

// seconds is how long it has been counted.
func (f *leaseFleet) seconds() float64 { return float64(f.now-f.from) / nsPerSecond }

// TestQuotaLeasesAdmitTheRate: eight processes that are asked for more than the limit admit at least 97 % of its rate between them, whether the
// calls come evenly or mostly to one.
func TestQuotaLeasesAdmitTheRate(t *testing.T) {
	r := newRand(t)
	even, zipf := make([]float64, 8), make([]float64, 8)
	sum := 0.0
	for i := range zipf {
		sum += 1 / float64(i+1)
	}
	for _, limit := range []int64{1000, 6000} {
		for _, over := range []float64{1.2, 2, 10} {
			for i := range even {
				even[i], zipf[i] = over*1000/8, over*1000/float64(i+1)/sum
			}
			for name, demands := range map[string][]float64{"even": even, "zipf": zipf} {
				f := newLeaseFleet(r, limit, 1000, nsPerSecond, demands...)
				f.run(int64((5 + float64(limit)/1000/(over-1)) * nsPerSecond)) // until the burst is used up
				f.count()
				f.run(20 * nsPerSecond)
				rate := float64(f.admitted) / f.seconds() / 1000
				t.Logf("capacity %d, 1000 a second, asked for %.1f times that, %s: %.4f of the rate, %.3f decided here, %.3f charges per unit", limit, over, name, rate, f.localShare(), float64(f.upstream)/float64(f.admitted))
				require.Greater(t, rate, 0.97)
				require.Less(t, rate, 1.01)
			}
		}
	}
}

// TestQuotaLeasesOfServersThatComeAndGo: 20 servers share 1,000 a second, of which each is up for a few seconds and then crashes. At least 95 % of the
// rate is admitted, and who has come up has its share within two seconds.
func TestQuotaLeasesOfServersThatComeAndGo(t *testing.T) {
	rate, fair, shares := comeAndGo(t, 1000)
	require.Greater(t, rate, 0.95)
	require.Greater(t, fair, 0.9)
	require.InDelta(t, 1, shares, 0.1)
}

// TestLongQuotaLeasesOfServersThatComeAndGo: where leases last two seconds, no more is lost by the crashes.
func TestLongQuotaLeasesOfServersThatComeAndGo(t *testing.T) {
	rate, _, _ := comeAndGo(t, 40_000)
	require.Greater(t, rate, 0.95)
}

// comeAndGo lets a minute go by when a capacity is used up, and returns how much of the rate was admitted, how many of the servers that came up had
// their share in their second second, and how much of it they had together.
func comeAndGo(t *testing.T, capacity int64) (rate, hadTheirs, share float64) {
	t.Helper()
	f := newLeaseFleet(newRand(t), capacity, 1000, nsPerSecond, make([]float64, 20)...)
	f.events = nil
	f.server.tat, f.server.exists = f.now+(capacity-1000)*nsPerMs, true
	const asked = 1500.0 // calls a second, spread over those that are up
	up := func() (n int) {
		for _, u := range f.nodes {
			if u.up {
				n++
			}
		}
		return n
	}
	spread := func() {
		for _, u := range f.nodes {
			u.demand = asked / float64(max(up(), 1))
		}
	}
	fair, joined, shares := 0, 0, 0.0
	var turn func(u *leaseUser)
	turn = func(u *leaseUser) {
		f.after(nsPerSecond*3+f.r.Int64N(4*nsPerSecond), func() {
			u.up = !u.up
			u.q = QuotaLease{}
			spread()
			turn(u)
			since := f.now
			if !u.up {
				return
			}
			f.after(2*nsPerSecond, func() {
				got := 0
				for _, at := range u.recent {
					if at >= since+nsPerSecond {
						got++
					}
				}
				u.recent = u.recent[:0]
				joined++
				shares += float64(got) * float64(up()) / 1000
				if float64(got) >= 0.7*1000/float64(up()) { // less is beyond what chance has of so few calls
					fair++
				}
			})
		})
	}
	spread()
	for _, u := range f.nodes {
		f.nextCall(u)
		turn(u)
	}
	f.run(10 * nsPerSecond)
	f.count()
	f.run(60 * nsPerSecond)
	rate = float64(f.admitted) / f.seconds() / 1000
	t.Logf("%.4f of the rate, %.3f decided here, %.2f charges per unit; of %d servers that came up %d had their share in their second second, and all together %.3f of it",
		rate, f.localShare(), float64(f.upstream)/float64(f.admitted), joined, fair, shares/float64(joined))
	return rate, float64(fair) / float64(joined), shares / float64(joined)
}

// TestQuotaLeasesAreLocal: a limit of 6,000 a minute on four processes is nearly all decided there, below the limit and beyond it.
func TestQuotaLeasesAreLocal(t *testing.T) {
	r := newRand(t)
	for _, each := range []float64{25, 100} {
		f := newLeaseFleet(r, 6000, 6000, 60*nsPerSecond, each, each, each, each)
		f.run(90 * nsPerSecond)
		f.count()
		f.run(60 * nsPerSecond)
		rate := float64(f.admitted) / f.seconds() / min(4*each, 100)
		t.Logf("%v a second each: %.4f decided here, %.4f charges per call, %.4f of what may pass does", each, f.localShare(), float64(f.upstream)/(4*each*f.seconds()), rate)
		require.Greater(t, f.localShare(), 0.95)
		require.Greater(t, rate, 0.97)
	}
}

// TestHotQuotaLeases: of a key that is asked for fifty times as often as it admits, hardly any call goes to the server, though many come
// while a charge is under way.
func TestHotQuotaLeases(t *testing.T) {
	r := newRand(t)
	for _, demands := range [][]float64{{100_000}, {25_000, 25_000, 25_000, 25_000}} {
		f := newLeaseFleet(r, 2000, 2000, nsPerSecond, demands...)
		f.run(2 * nsPerSecond)
		f.count()
		f.run(6 * nsPerSecond)
		rate := float64(f.admitted) / f.seconds() / 2000
		t.Logf("%d processes: %.4f of the rate, %.5f decided here, %.0f charges and calls a second at the server", len(demands), rate, f.localShare(), float64(f.upstream)/f.seconds())
		require.Greater(t, rate, 0.97)
		require.Less(t, rate, 1.01)
		require.Greater(t, f.localShare(), 0.998)
	}
}

// TestQuotaLeaseSizes: what a charge tries for follows the demand, what remains, and the call that waits.
func TestQuotaLeaseSizes(t *testing.T) {
	rate, err := NewRate(6000, 6000, 60*nsPerSecond)
	require.NoError(t, err)
	terms := rate.LeaseTerms(LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
	require.EqualValues(t, nsPerSecond, terms.Length)
	require.EqualValues(t, 1500, terms.MaxCost())
	now := epoch
	sizes := func(q *QuotaLease, cost int64) []int64 {
		var s [MaxLeaseSizes]int64
		n := q.Sizes(&terms, now, cost, &s)
		return s[:n]
	}
	var q QuotaLease
	require.Empty(t, sizes(&q, 1), "there is no demand")
	require.Equal(t, LeaseAsk, q.Decide(&terms, now, 1))
	require.Empty(t, sizes(&q, 1), "one call needs no lease")
	for range 63 {
		require.Equal(t, LeaseAsk, q.Decide(&terms, now, 1))
	}
	require.Equal(t, []int64{40, 35, 30, 25, 20, 15, 10, 1}, sizes(&q, 1))
	require.Empty(t, sizes(&q, 1), "a charge is under way")
	q.Failed(&terms, now)
	require.Empty(t, sizes(&q, 1), "a charge has failed")
	q.Failed(&terms, now-terms.Length/2)
	require.Equal(t, []int64{40, 35, 30, 25, 20, 15, 12}, sizes(&q, 12))
	require.Equal(t, 64.0, q.Demand(&terms, now))

	require.True(t, q.Granted(&terms, LeaseGrant{Units: 39, Sent: now, Heard: now, ChargedAt: now, Remaining: 60, ResetAfter: nsPerSecond}))
	require.EqualValues(t, 39, q.Left(now))
	require.Equal(t, LeaseSpent, q.Decide(&terms, now, 29))
	require.False(t, q.Renews(&terms, now))
	require.Equal(t, LeaseSpent, q.Decide(&terms, now, 1))
	require.Equal(t, Decision{Limit: 6000, Remaining: 69, RetryAfter: NoRetry, ResetAfter: nsPerSecond}, verdictOf(&q, now, LeaseSpent))
	require.True(t, q.Renews(&terms, now), "a quarter is left")
	require.Equal(t, []int64{59, 52, 45, 37, 30, 23, 15}, sizes(&q, 0), "for no call, a size that is of use or none")
	require.False(t, q.Renews(&terms, now))
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 15, Sent: now, Heard: now, ChargedAt: now, Remaining: 60}))
	require.Empty(t, sizes(&q, 1), "two leases are held")
	require.Equal(t, LeaseSpent, q.Decide(&terms, now, 15), "of both")
	require.EqualValues(t, 9, q.Left(now))
	require.Equal(t, LeaseAsk, q.Decide(&terms, now, 10))
	require.Equal(t, LeaseSpent, q.Decide(&terms, now, 9))

	require.NotEmpty(t, sizes(&q, 1))
	q.Refused(&terms, LeaseRefusal{Cost: 2, Heard: now, RetryAfter: nsPerMs, Remaining: 1, ResetAfter: 60 * nsPerSecond})
	require.Equal(t, LeaseAsk, q.Decide(&terms, now, 1), "less was not refused")
	require.Equal(t, LeaseRefused, q.Decide(&terms, now, 2))
	require.Equal(t, Decision{Limited: true, Limit: 6000, Remaining: 1, RetryAfter: nsPerSecond / 2, ResetAfter: 60 * nsPerSecond}, verdictOf(&q, now, LeaseRefused))
	now += nsPerSecond / 2
	require.Equal(t, LeaseAsk, q.Decide(&terms, now, 2), "half the length of a lease has passed")
	require.NotEmpty(t, sizes(&q, 1))
	q.Refused(&terms, LeaseRefusal{Cost: 1, Heard: now, RetryAfter: NoRetry})
	require.Equal(t, LeaseRefused, q.Decide(&terms, now+nsPerSecond/2-1, 1))

	q = QuotaLease{}
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 5, Sent: now, Heard: now + 1, ChargedAt: now}))
	require.Equal(t, [2]LeaseReturn{{Units: 5, ChargedAt: now}}, q.Return(&terms, now+2))
	require.Zero(t, q.Left(now+2))
	require.False(t, q.Granted(&terms, LeaseGrant{Units: 5, Sent: now, Heard: now + nsPerSecond, ChargedAt: now}), "it is spent no more")
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 7, Sent: now, Heard: now, ChargedAt: now}))
	require.Equal(t, LeaseAsk, q.Decide(&terms, now+nsPerSecond*1000/1001, 7))
	require.EqualValues(t, 12, q.Expired())
	require.Zero(t, q.Expired())
	require.Zero(t, q.Ended(&terms, now+nsPerSecond), "within a second the rate has paid off 100 units")
}

// TestLongQuotaLeaseSizes: a lease of more than a second is worth 32 units, or a second's demand if that is more.
func TestLongQuotaLeaseSizes(t *testing.T) {
	rate, err := NewRate(100_000, 100, nsPerSecond)
	require.NoError(t, err)
	for calls, wanted := range map[int]int64{8: 20, 12: 30, 16: 32, 51: 32, 64: 40, 640: 400} {
		for _, length := range []int64{4 * nsPerSecond, 60 * nsPerSecond} {
			terms := rate.LeaseTerms(LeaseOptions{Overshoot: 1, Max: length})
			var q QuotaLease
			for range calls { // within a second
				require.Equal(t, LeaseAsk, q.Decide(&terms, epoch, 1))
			}
			if length > 4*nsPerSecond {
				wanted = max(wanted, enoughUnits)
			}
			require.Equal(t, wanted, q.Wanted(&terms, epoch), "%d calls", calls)
		}
	}
}

// TestScarceQuotaLeases: where there is less than a lease worth charging, calls are refused here until the next one is asked for ahead of them.
func TestScarceQuotaLeases(t *testing.T) {
	rate, err := NewRate(6000, 6000, 60*nsPerSecond)
	require.NoError(t, err)
	terms := rate.LeaseTerms(LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
	var sizes [MaxLeaseSizes]int64
	now := epoch
	asked := func(terms *LeaseTerms) *QuotaLease { // for 64 units, so that one is worth 40
		q := new(QuotaLease)
		for range 64 {
			require.Equal(t, LeaseAsk, q.Decide(terms, now, 1))
		}
		require.NotZero(t, q.Sizes(terms, now, 1, &sizes))
		return q
	}

	q := asked(&terms)
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 2, Sent: now, Heard: now, ChargedAt: now, Remaining: 9}))
	require.Equal(t, LeaseSpent, q.Decide(&terms, now, 2), "what is held is spent first")
	require.Equal(t, LeaseRefused, q.Decide(&terms, now, 1), "what is left there is not enough for a lease")
	forgotten := now + 310*nsPerMs // when 31 more have come
	require.False(t, q.Renews(&terms, forgotten-refusedAhead-1))
	require.True(t, q.Renews(&terms, forgotten-refusedAhead))
	require.Equal(t, LeaseRefused, q.Decide(&terms, forgotten-1, 1))
	require.Equal(t, LeaseAsk, q.Decide(&terms, forgotten, 1))

	q = asked(&terms)
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 2, Sent: now, Heard: now, ChargedAt: now, Remaining: 10}))
	require.Equal(t, LeaseAsk, q.Decide(&terms, now, 3), "there is enough for a lease")

	q = asked(&terms)
	q.Refused(&terms, LeaseRefusal{Cost: 10, Ahead: true, Heard: now, RetryAfter: 50 * nsPerMs, Remaining: 5})
	require.Equal(t, LeaseRefused, q.Decide(&terms, now, 1), "also what costs less than was tried ahead")
	require.Equal(t, Decision{Limited: true, Limit: 6000, RetryAfter: 350 * nsPerMs}, verdictOf(q, now, LeaseRefused))

	window := WindowLeaseTerms(6000, 60_000, LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
	q = asked(&window)
	q.Refused(&window, LeaseRefusal{Cost: 10, Ahead: true, Heard: now, RetryAfter: 50 * nsPerMs, Remaining: 5})
	require.Equal(t, LeaseAsk, q.Decide(&window, now, 1), "in a window nothing adds up")
	require.False(t, q.Renews(&window, now+nsPerSecond/4))
}

// TestQuotaLeaseTerms: how long leases are, and what Strict takes off.
func TestQuotaLeaseTerms(t *testing.T) {
	o := LeaseOptions{Overshoot: 0.05, Max: nsPerSecond}
	strict := o
	strict.Strict = true
	for _, c := range []struct {
		limit, count, period int64
		length, capacity     int64 // the capacity with Strict
	}{
		{6000, 6000, 60 * nsPerSecond, nsPerSecond, 5899}, // 100.1 come back within 1.001 s
		{1000, 1000, nsPerSecond, nsPerSecond / 20, 949},
		{100, 10, nsPerSecond, nsPerSecond / 2, 94},
		{1, 1, 3600 * nsPerSecond, nsPerSecond, 0},
	} {
		rate, err := NewRate(c.limit, c.count, c.period)
		require.NoError(t, err)
		terms := rate.LeaseTerms(o)
		require.Equal(t, c.length, terms.Length)
		require.Equal(t, c.limit, terms.Capacity)
		terms = rate.LeaseTerms(strict)
		require.Equal(t, c.capacity, terms.Capacity)
		require.Equal(t, c.capacity >= 1, terms.Leases())
		g, err := NewCapacityGCRA(c.limit, c.count, c.period/nsPerSecond)
		require.NoError(t, err)
		require.Equal(t, terms, g.LeaseTerms(strict))
	}
	none, err := NewCapacityGCRA(5, -1, 1)
	require.NoError(t, err)
	for _, terms := range []LeaseTerms{{}, none.LeaseTerms(o), Rate{}.LeaseTerms(o), WindowLeaseTerms(0, 1000, o)} {
		require.False(t, terms.Leases())
	}

	window := WindowLeaseTerms(100, 10_000, strict)
	require.EqualValues(t, 100, window.Capacity, "nothing more passes by leases of windows")
	require.EqualValues(t, nsPerSecond/2, window.Length)
	require.EqualValues(t, nsPerSecond, WindowLeaseTerms(1, math.MaxInt64, o).Length)
	life := nsPerSecond / 2 * int64(1000) / 1001
	require.Equal(t, epoch+life, window.LeaseEnd(epoch, nsPerSecond))
	require.Equal(t, epoch+life, window.LeaseEnd(epoch, math.MaxInt64))
	require.Equal(t, epoch+100*nsPerMs*1000/1001*1000/1001, window.LeaseEnd(epoch, 100*nsPerMs))
	require.Equal(t, epoch, window.LeaseEnd(epoch, -1))
}

// TestEndedQuotaLeasesOfRates: of a slow rate, what was not spent is given back, less what time has paid off.
func TestEndedQuotaLeasesOfRates(t *testing.T) {
	hour := 3600 * int64(nsPerSecond)
	rate, err := NewRate(1000, 100, hour)
	require.NoError(t, err)
	terms := rate.LeaseTerms(LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
	now := int64(epoch)
	var q QuotaLease
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 40, Sent: now, Heard: now, ChargedAt: now + 5, Remaining: 900}))
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 2, Sent: now + 1, Heard: now + 1, ChargedAt: now + 6, Remaining: 898}))
	require.Equal(t, LeaseSpent, q.Decide(&terms, now+2, 30))
	require.Zero(t, q.Ended(&terms, now+3))
	require.Equal(t, LeaseReturn{Units: 12, ChargedAt: now + 5}, q.Ended(&terms, now+nsPerSecond), "both, as of the older charge")
	require.Zero(t, q.Ended(&terms, now+nsPerSecond))

	require.False(t, q.Granted(&terms, LeaseGrant{Units: 1, Sent: now, Heard: now + nsPerSecond, ChargedAt: now + 5}), "its reply came too late")
	require.Equal(t, LeaseReturn{Units: 1, ChargedAt: now + 5}, q.Ended(&terms, now+nsPerSecond))
}

// TestEndedQuotaLeases: what was not spent can be given back to the window.
func TestEndedQuotaLeases(t *testing.T) {
	terms := WindowLeaseTerms(100, 1000, LeaseOptions{Overshoot: 0.05, Max: nsPerSecond})
	end := epoch/nsPerMs + 20
	var q QuotaLease
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 5, Sent: 100, Heard: 200, ChargedAt: epoch, WindowEnd: end, Remaining: 50}))
	require.True(t, q.Granted(&terms, LeaseGrant{Units: 6, Sent: 300, Heard: 400, ChargedAt: epoch + 1, WindowEnd: end, Remaining: 44}))
	require.Zero(t, q.Ended(&terms, 500))
	require.Equal(t, LeaseSpent, q.Decide(&terms, 500, 2))
	late := int64(20 * nsPerMs)
	require.Equal(t, LeaseReturn{9, epoch, end}, q.Ended(&terms, late))
	require.Zero(t, q.Ended(&terms, late))
	require.EqualValues(t, 9, q.Expired())

	s := FixedState{Count: 30, ExpireAtMs: end, Exists: true}
	count, ok := s.GiveBack(end-1, end, 9)
	require.True(t, ok)
	require.EqualValues(t, 21, count)
	count, ok = s.GiveBack(end-1, end, 31)
	require.True(t, ok)
	require.Zero(t, count)
	for _, now := range []int64{end, end + 1} {
		_, ok = s.GiveBack(now, end, 9)
		require.False(t, ok)
	}
	_, ok = s.GiveBack(end-1, end+1, 9)
	require.False(t, ok, "another window")
	_, ok = FixedState{}.GiveBack(end-1, end, 9)
	require.False(t, ok)
}

// TestGiveBack: to the nanosecond, and nothing where there is nothing.
func TestGiveBack(t *testing.T) {
	g, err := NewCapacityGCRA(10, 10, 1)
	require.NoError(t, err)
	r, err := NewRate(10, 10, nsPerSecond)
	require.NoError(t, err)
	const unit = nsPerSecond / 10
	for _, c := range []struct {
		tat, charged, units int64 // of tat and charged how long from now on
		exists              bool
		write               Write
		after               int64
	}{
		{5 * unit, 0, 2, true, Set, 3 * unit},
		{5 * unit, -unit, 2, true, Set, 4 * unit},
		{5 * unit, 1 - 2*unit, 2, true, Set, 5*unit - 1},
		{5 * unit, -2 * unit, 2, true, Keep, 0},
		{2 * unit, 0, 2, true, Delete, 0},
		{2 * unit, 0, 3, true, Delete, 0},
		{0, 0, 1, true, Keep, 0},
		{unit, 1, 1, true, Keep, 0}, // the clock was set back
		{unit, 0, 1, false, Keep, 0},
		{unit, 0, math.MaxInt64, true, Keep, 0},
		{unit, math.MinInt64 / 2, 1, true, Keep, 0},
	} {
		want := c.after
		if c.write == Set {
			want += epoch
		}
		write, tat := g.GiveBack(epoch, epoch+c.tat, c.exists, epoch+c.charged, c.units)
		require.Equal(t, []any{c.write, want}, []any{write, tat}, "%+v", c)
		write, tat = r.GiveBack(epoch, epoch+c.tat, c.exists, epoch+c.charged, c.units)
		require.Equal(t, []any{c.write, want}, []any{write, tat}, "%+v", c)
	}
	write, _ := (&GCRA{}).GiveBack(epoch, epoch+1, true, epoch, 1)
	require.Equal(t, Keep, write)
}

// TestQuotaLeasesAllocateNothing for a call.
func TestQuotaLeasesAllocateNothing(t *testing.T) {
	terms := WindowLeaseTerms(1000, 1000, LeaseOptions{Overshoot: 1, Max: nsPerSecond})
	var q QuotaLease
	var sizes [MaxLeaseSizes]int64
	now := int64(1)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now += nsPerMs
		if q.Decide(&terms, now, 1) == LeaseAsk && q.Sizes(&terms, now, 1, &sizes) > 0 {
			q.Granted(&terms, LeaseGrant{Units: sizes[0], Sent: now, Heard: now, ChargedAt: epoch, WindowEnd: epoch/nsPerMs + 1000})
		}
		q.Ended(&terms, now)
	}))
}

// TestLeaseTellsOfRefusals: that of a window is remembered for half of a lease's length.
func TestLeaseTellsOfRefusals(t *testing.T) {
	var q QuotaLease
	require.Zero(t, q.Refuses(1000))
	q.Refused(&LeaseTerms{Capacity: 10, Length: 100, Window: true}, LeaseRefusal{Heard: 1000, Cost: 1, RetryAfter: NoRetry})
	require.EqualValues(t, 1, q.Refuses(1049))
	require.Zero(t, q.Refuses(1050))
}

// verdictOf is the answer to a call of a limit of 6,000.
func verdictOf(q *QuotaLease, now int64, answer LeaseAnswer) (d Decision) {
	q.VerdictTo(&d, now, answer, 6000)
	return d
}
