package throttle

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model of these tests knows the definition and nothing of the rule: after a return the backlog is what comes out when the whole history
// is gone through again with the actual cost in the reservation's place.

// past is one event on a key. Costs are in ns.
type past struct {
	at   int64
	what rune  // c: a charge; r: a reservation; g: somebody gives back; d: the key is deleted
	cost int64 // of a reservation that is settled: the actual one
}

// replay goes through a history, and returns the backlog at now.
func replay(history []past, now int64) (backlog int64) {
	last := int64(0)
	for _, e := range history {
		backlog = max(backlog-(e.at-last), 0)
		switch last = e.at; e.what {
		case 'c', 'r':
			backlog += e.cost
		case 'g':
			backlog = max(backlog-e.cost, 0)
		case 'd':
			backlog = 0
		}
	}
	return max(backlog-(now-last), 0)
}

// returns is a rule of what comes back.
type returns interface {
	Charge(ticket, backlog int64)
	Found(backlog int64)
	Return(ticket, unused int64) int64
}

// noted is what the mutants remember of a reservation.
type noted struct{ ticket, least, at, after int64 }

// mutants is a rule that is wrong in one way.
type mutants struct {
	now  *int64
	open []noted
	back func(r *mutants, mine noted, unused int64) int64
	last int64 // the backlog that was found last
}

func (r *mutants) Charge(ticket, backlog int64) {
	r.open = append(r.open, noted{ticket, backlog, *r.now, backlog})
}

func (r *mutants) Found(backlog int64) {
	r.last = backlog
	for i := range r.open {
		r.open[i].least = min(r.open[i].least, backlog)
	}
}

func (r *mutants) Return(ticket, unused int64) int64 {
	i := slices.IndexFunc(r.open, func(o noted) bool { return o.ticket == ticket })
	mine := r.open[i]
	r.open = slices.Delete(r.open, i, i+1)
	return min(max(r.back(r, mine, unused), 0), r.last)
}

// returnRules are the rule, the mutants, and one that is right but gives back less.
var returnRules = []struct {
	name  string
	wrong bool
	make  func(now *int64) returns
}{
	{"the rule", false, func(*int64) returns { return &Reserved{} }},
	{"a plain refund", true, func(now *int64) returns {
		return &mutants{now: now, back: func(_ *mutants, _ noted, unused int64) int64 { return unused }}
	}},
	{"what is left of the backlog after the charge", true, func(now *int64) returns {
		return &mutants{now: now, back: func(_ *mutants, mine noted, unused int64) int64 { return min(unused, mine.after-(*now-mine.at)) }}
	}},
	{"without the correction of the others", true, func(now *int64) returns {
		return &mutants{now: now, back: func(_ *mutants, mine noted, unused int64) int64 { return min(unused, mine.least) }}
	}},
	{"all others lowered alike", false, func(now *int64) returns {
		return &mutants{now: now, back: func(r *mutants, mine noted, unused int64) int64 {
			back := min(max(unused, 0), mine.least)
			for i := range r.open {
				r.open[i].least = max(r.open[i].least-back, 0)
			}
			return back
		}}
	}},
}

// adversary makes one history against a rule, and tells what came back, what would have come back at best, and how often more did.
type adversary struct {
	drawer
	rate       Rate
	now, tat   int64
	history    []past
	open       []reservation
	rule       returns
	given      float64
	ideal      float64
	violations int
	ticket     int64
	restarts   bool // the rule forgets now and then
	undone     bool // somebody has given back or deleted since the oldest reservation
}

// reservation is one that is open.
type reservation struct {
	at         int // in the history
	ticket     int64
	cost, when int64
	ns         int64
}

func (a *adversary) backlog() int64 { return max(a.tat-a.now, 0) }

// write does what every write does first.
func (a *adversary) write() { a.rule.Found(a.backlog()) }

// wait lets time go by: none, a little, or until about nothing or as much as a reservation is left.
func (a *adversary) wait() {
	switch a.IntN(6) {
	case 0:
		a.now += a.Int64N(4)
	case 1:
		a.now += a.Int64N(a.rate.tolerance + 2)
	case 2:
		a.now += max(a.backlog()+a.Int64N(3)-1, 0)
	case 3:
		if len(a.open) > 0 {
			a.now += max(a.backlog()-a.open[a.IntN(len(a.open))].ns+a.Int64N(3)-1, 0)
		}
	}
}

// cost is 1, as much as fits, or something in between.
func (a *adversary) cost() int64 {
	room := a.rate.remaining(a.backlog())
	switch a.IntN(4) {
	case 0:
		return 1
	case 1:
		return max(room, 1)
	}
	return 1 + a.Int64N(max(room, 1))
}

// take asks for a cost, and reports whether it passed and what it has charged.
func (a *adversary) take(cost int64) (ns int64, passed bool) {
	var d Decision
	if a.rate.ChargeTo(&d, a.now, a.tat, true, Call{Cost: cost}) != nil || d.Limited {
		return 0, false
	}
	a.write()
	ns, _ = a.rate.charge(cost)
	a.tat = max(a.tat, a.now) + ns
	return ns, true
}

func (a *adversary) charge() {
	if ns, passed := a.take(a.cost()); passed {
		a.history = append(a.history, past{a.now, 'c', ns})
	}
}

func (a *adversary) reserve() {
	cost := a.cost()
	ns, passed := a.take(cost)
	if !passed {
		return
	}
	a.ticket++
	a.rule.Charge(a.ticket, a.backlog())
	a.open = append(a.open, reservation{len(a.history), a.ticket, cost, a.now, ns})
	a.history = append(a.history, past{a.now, 'r', ns})
}

// settle ends a reservation, which has used nothing, some, all, or more.
func (a *adversary) settle() {
	if len(a.open) == 0 {
		return
	}
	i := a.IntN(len(a.open))
	r := a.open[i]
	a.open = slices.Delete(a.open, i, i+1)
	actual := int64(0)
	if a.IntN(2) == 0 {
		actual = a.Int64N(r.cost + 1)
	}
	used, _ := a.rate.charge(actual)
	a.write()
	before := replay(a.history, a.now)
	back := a.rule.Return(r.ticket, r.ns-used)
	a.tat = max(a.tat, a.now) - back
	a.history[r.at].cost = used
	best := replay(a.history, a.now)
	a.given += float64(back)
	a.ideal += float64(before - best)
	if a.backlog() < best {
		a.violations++
	}
	if a.IntN(8) == 0 { // and it has used more than reserved
		ns, _ := a.rate.charge(1 + a.Int64N(3))
		a.write()
		a.tat = max(a.tat, a.now) + ns
		a.history = append(a.history, past{a.now, 'c', ns})
	}
	if len(a.open) == 0 {
		a.undone = false
	}
}

// meddle is what others do to the key.
func (a *adversary) meddle() {
	a.write()
	a.undone = true
	if a.IntN(2) == 0 {
		a.tat = a.now
		a.history = append(a.history, past{a.now, 'd', 0})
		return
	}
	ns := a.Int64N(a.rate.tolerance + 1)
	a.tat = max(a.tat, a.now) - min(a.backlog(), ns)
	a.history = append(a.history, past{a.now, 'g', ns})
}

// restart has the rule know no more than what is kept of the reservations, in any order.
func (a *adversary) restart() {
	if a.undone {
		return
	}
	fresh := &Reserved{}
	if a.IntN(2) == 0 {
		for _, i := range a.Perm(len(a.open)) {
			r := a.open[i]
			fresh.Restore(r.ticket, r.ns-(a.now-r.when))
		}
	} else { // in order, where the TAT that they would make by themselves is certain
		slices.SortFunc(a.open, func(r, o reservation) int { return int(r.ticket - o.ticket) })
		tat := int64(0)
		for _, r := range a.open {
			tat = max(tat, r.when) + r.ns
			fresh.Restore(r.ticket, tat-a.now)
		}
	}
	fresh.Found(a.backlog())
	a.rule = fresh
}

// run makes a history of some length.
func (a *adversary) run(events int) {
	for range events {
		a.wait()
		switch n := a.IntN(20); {
		case n < 7:
			a.reserve()
		case n < 12:
			a.charge()
		case n < 18:
			a.settle()
		case n == 18:
			a.meddle()
		case a.restarts:
			a.restart()
		}
	}
}

// newAdversary draws a limit of a few units, of any length in ns.
func newAdversary(t *testing.T, draw drawer, make func(now *int64) returns) *adversary {
	t.Helper()
	rate, err := NewRate(1+draw.Int64N(40), 1+draw.Int64N(7), 1+draw.Int64N(100))
	require.NoError(t, err)
	a := &adversary{drawer: draw, rate: rate, now: epoch, tat: epoch}
	a.rule = make(&a.now)
	return a
}

// TestReservedHistories goes through random histories of an adversary against the rule and against its mutants. Never may more come back than
// if the actual cost had been asked at the time of the reservation, of the rule at least 95 % of that does, and each of the mutants fails.
func TestReservedHistories(t *testing.T) {
	for _, tc := range returnRules {
		t.Run(tc.name, func(t *testing.T) {
			draw := drawer{newRand(t)}
			given, ideal, violations := 0.0, 0.0, 0
			for range *histories {
				a := newAdversary(t, draw, tc.make)
				a.run(12 + draw.IntN(30))
				given, ideal, violations = given+a.given, ideal+a.ideal, violations+a.violations
			}
			t.Logf("%d histories: %d violations, %.1f %% of the ideal came back", *histories, violations, 100*given/ideal)
			if tc.wrong {
				require.NotZero(t, violations)
				return
			}
			require.Zero(t, violations)
			if tc.name == "the rule" {
				require.InDelta(t, ideal, given, 0.5, "all that could come back")
			}
		})
	}
}

// TestReservedHistoriesAcrossRestarts: what is forgotten never has more come back.
func TestReservedHistoriesAcrossRestarts(t *testing.T) {
	draw := drawer{newRand(t)}
	given, ideal, restarts := 0.0, 0.0, 0
	for range *histories {
		a := newAdversary(t, draw, returnRules[0].make)
		a.restarts = true
		a.run(12 + draw.IntN(30))
		require.Zero(t, a.violations)
		given, ideal, restarts = given+a.given, ideal+a.ideal, restarts+1
	}
	t.Logf("%d histories: %.1f %% of the ideal came back", *histories, 100*given/ideal)
	require.Greater(t, given, ideal/2)
	require.Less(t, given, ideal)
}

// TestReservedKeepsFewLevels: whatever the number of reservations, those of one m are one level, and none are left behind.
func TestReservedKeepsFewLevels(t *testing.T) {
	var r Reserved
	for i := range int64(1000) {
		r.Charge(i, 10*(i+1))
	}
	require.Len(t, r.levels, 1000)
	r.Found(5)
	require.Len(t, r.levels, 1)
	require.Equal(t, 1000, r.Open())
	require.Equal(t, int64(3), r.Return(500, 3))
	require.Equal(t, int64(2), r.Return(501, math.MaxInt64))
	require.Zero(t, r.Return(999, 1))
	require.Zero(t, r.Return(0, -1))
	for i := range int64(1000) {
		if i != 500 && i != 501 && i != 999 && i != 0 {
			r.Return(i, 0)
		}
	}
	require.Empty(t, r.levels)
	require.Zero(t, r.Open())
}

// TestReservedRestoresInAnyOrder: a reservation that comes late finds its place, and is bounded by those before and behind it.
func TestReservedRestoresInAnyOrder(t *testing.T) {
	var r Reserved
	r.Restore(30, 300)
	r.Restore(10, 100)
	r.Restore(20, 50) // an earlier one has more left, so it has too
	r.Restore(25, 900)
	require.Equal(t, 4, r.Open())
	require.Equal(t, int64(100), r.Return(20, 1000))
	require.Zero(t, r.Return(10, 1000))
	require.Equal(t, int64(200), r.Return(25, 1000))
	require.Zero(t, r.Return(30, 1000))
	require.Empty(t, r.levels)
}
