package waitqueue

import (
	"flag"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// histories is how many random histories a queue is compared on; -rapid.seed repeats a run.
var histories = flag.Int("waitqueue.histories", 5000, "random histories of a queue; make waits takes a million")

// modelKey is a key and those who wait for it, without any plan: what it says is found by letting one ns after the other pass.
type modelKey struct {
	rate    bool
	now     int64
	tat     int64 // of a rate
	free    int64 // units that a limit which is no rate has left
	renews  int64 // when it has them all back
	limit   int64
	waiting []*Place
}

// passes reports whether a call that comes at an instant to a rate with this TAT passes.
func passes(p Pace, at, tat int64) bool { return max(at, tat)+p.Charge-at <= p.Tolerance }

// times are when those who wait pass if nothing else happens. Without a rate the first one's time stands for all.
func (m *modelKey) times() (times []int64) {
	at, tat := m.now, m.tat
	for i, p := range m.waiting {
		switch {
		case m.rate:
			for !passes(p.Pace, at, tat) {
				at++
			}
			tat = max(at, tat) + p.Pace.Charge
		case i == 0 && p.Cost > m.free:
			at = m.renews
		}
		times = append(times, at)
	}
	return times
}

// first is what the limit says of the first one: whether it passes now, and when it does.
func (m *modelKey) first() (now bool, at, tat int64) {
	at = m.times()[0]
	if m.rate {
		tat = m.tat
	}
	return at == m.now, at, tat
}

// late is who cannot pass in time, or has not, by name of places.
func (m *modelKey) late() (late []*Place) {
	for i, at := range m.times() {
		p := m.waiting[i]
		if p.Deadline <= m.now || !p.Pace.Open && at > p.Deadline {
			late = append(late, p)
		}
	}
	return late
}

func (m *modelKey) leave(p *Place) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o *Place) bool { return o == p })
}

// charge has a limit give what a call asks for.
func (m *modelKey) charge(p *Place) {
	if m.rate {
		m.tat = max(m.now, m.tat) + p.Pace.Charge
	} else {
		m.free -= p.Cost
	}
}

// advance is what the server does with a queue when its key has changed or its time has come.
func advance(r *rapid.T, q *Queue, m *modelKey) {
	for q.Len() > 0 {
		first := q.First()
		require.Same(r, m.waiting[0], first, "the first one is who came first")
		now, at, tat := m.first()
		if now {
			q.Remove(first, true)
			m.leave(first)
			m.charge(first)
			continue
		}
		if !q.NeedsPlan(m.now, at, tat) {
			return
		}
		whole := q.Plan(m.now, at, tat, func(p *Place) bool {
			require.Contains(r, m.late(), p, "nobody is told that it is late who is not")
			q.Remove(p, false)
			m.leave(p)
			return rapid.IntRange(0, 9).Draw(r, "goes on") > 0
		})
		if whole {
			require.Equal(r, m.times(), atOf(q))
			return
		}
	}
}

// atOf are the times of a queue's places.
func atOf(q *Queue) (times []int64) {
	for p := q.First(); p != nil; p = p.Next() {
		times = append(times, p.At())
	}
	return times
}

// TestQueueAgainstModel: whatever happens to a key, and whoever comes and goes, those in front pass first, nobody waits who cannot pass in
// time, nobody is sent away who can, and a look at the queue is only taken when something has happened or at the time that it has named.
func TestQueueAgainstModel(t *testing.T) {
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(*histories)))
	rapid.Check(t, func(r *rapid.T) {
		m := &modelKey{rate: rapid.Bool().Draw(r, "rate"), limit: rapid.Int64Range(1, 6).Draw(r, "limit")}
		open := !m.rate && rapid.Bool().Draw(r, "open")
		m.free, m.renews = m.limit, 5
		q := &Queue{}
		arrivals, due := uint64(1), int64(math.MaxInt64)
		moved := []*Place{} // those that stand in another queue for the moment
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			changed := false
			switch rapid.IntRange(0, 7).Draw(r, "step") {
			case 0, 1, 2: // somebody comes
				p := &Place{Arrival: arrivals, Cost: rapid.Int64Range(1, m.limit).Draw(r, "cost"), Deadline: m.now + rapid.Int64Range(1, 40).Draw(r, "patience")}
				arrivals++
				at, tat := m.now, int64(0)
				if m.rate {
					p.Pace.Charge = rapid.Int64Range(1, 6).Draw(r, "charge")
					p.Pace.Tolerance = p.Pace.Charge + rapid.Int64Range(0, 9).Draw(r, "tolerance")
					tat = m.tat
					for !passes(p.Pace, at, tat) {
						at++
					}
				} else if p.Pace.Open = open; p.Cost > m.free {
					at = m.renews
				}
				if q.Len() == 0 && at == m.now {
					m.charge(p)
					break
				}
				m.waiting = append(m.waiting, p)
				if behind, exact := q.Behind(p.Pace, at); exact && !open && behind > p.Deadline {
					require.Contains(r, m.late(), p, "nobody is turned away who could pass in time")
					m.leave(p)
					break
				}
				q.Insert(p, at, tat)
				due = min(due, q.Look())
			case 3: // somebody leaves
				if n := len(m.waiting); n > 0 {
					p := m.waiting[rapid.IntRange(0, n-1).Draw(r, "leaves")]
					q.Remove(p, false)
					m.leave(p)
					if rapid.Bool().Draw(r, "comes back") {
						moved = append(moved, p)
					}
					changed = true
				}
			case 4: // somebody comes back from another queue, to its old place
				if len(moved) > 0 {
					p := moved[0]
					moved = moved[1:]
					at, tat := m.now, int64(0)
					if m.rate {
						tat = m.tat
					}
					q.Insert(p, at, tat)
					m.waiting = append(m.waiting, p)
					slices.SortFunc(m.waiting, func(a, b *Place) int { return int(a.Arrival) - int(b.Arrival) })
					changed = true
				}
			case 5: // somebody else is charged
				if n := rapid.Int64Range(1, 8).Draw(r, "charge"); m.rate {
					m.tat = max(m.now, m.tat) + n
				} else {
					m.free = max(m.free-n, 0)
				}
				changed = true
			case 6: // something is given back
				if n := rapid.Int64Range(1, 8).Draw(r, "refund"); m.rate {
					m.tat = max(m.now, m.tat-n)
				} else {
					m.free = min(m.free+n, m.limit)
				}
				changed = true
			case 7:
				m.now += rapid.Int64Range(0, 6).Draw(r, "time")
				if !m.rate && m.now >= m.renews {
					m.free, m.renews, changed = m.limit, m.now+rapid.Int64Range(1, 12).Draw(r, "window"), true
				}
			}
			if changed || m.now >= due {
				advance(r, q, m)
				if due = q.Soonest(); q.Len() > 0 {
					_, at, _ := m.first()
					due = min(due, at)
				}
			}
			require.Equal(r, len(m.waiting), q.Len())
			cost := int64(0)
			for _, p := range m.waiting {
				cost += p.Cost
			}
			require.Equal(r, cost, q.Cost())
			if q.Len() > 0 {
				require.Empty(r, m.late(), "nobody waits who cannot pass in time")
				now, _, _ := m.first()
				require.False(r, now, "nobody waits who can pass")
			}
		}
	})
}

// TestQueueTimesBeyond64Bits: times that leave int64 stay at its end.
func TestQueueTimesBeyond64Bits(t *testing.T) {
	q := &Queue{}
	for i := range 3 {
		q.Insert(&Place{Arrival: uint64(i), Deadline: math.MaxInt64, Cost: math.MaxInt64, Pace: Pace{Charge: math.MaxInt64, Tolerance: math.MaxInt64}}, 1, math.MaxInt64-1)
	}
	require.Equal(t, int64(3*maxCost), q.Cost())
	behind, exact := q.Behind(Pace{Charge: 5, Tolerance: 1}, 7)
	require.True(t, exact)
	require.Equal(t, int64(math.MaxInt64), behind)
}
