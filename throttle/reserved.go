package throttle

import (
	"slices"
	"sort"
)

// Reserved tells how much of what open reservations have charged to one key may be given back. Like QuotaLease, and unlike the rest of this package, it
// keeps something: a few words for each reservation. The zero value has none; it is not safe for concurrent use.
//
// A reservation charges what a call may cost at most, before that is known, and gives the rest back when it is. What is given back must not be
// what time, or somebody else's refund, has given back already: then more would pass than if the actual cost had been charged at once.
//
// The rule. Let the backlog be what is charged and not paid off yet: for GCRA and Rate the time by which the TAT lies ahead of now, for a
// Fixed window its count. Each open reservation keeps m, the least backlog on its key since its charge. It is lowered to the backlog that is
// found before every write, whoever writes, and at the return itself; between two writes the backlog only falls, so that this is the least
// of all instants. Of a charge of which so much was unused
//
//	back = min(unused, m)
//
// is given back. That changes the past of the others: on the key of a return from m, with other for another reservation's own m,
//
//	charged later       other - back
//	charged earlier     min(other, m - back)
//
// What it guarantees: the backlog after a return is what it would be had the actual cost been charged at the time of the reservation, and the
// same calls passed. So never does more pass than then, and nothing that could come back is lost.
//
// Why. Take a charge of k less at the time t of the reservation, and follow the backlog from there: it runs lower by k until it would fall below
// 0, where it stays at 0 while the true one falls on, and from then on it runs lower by what the true one had left. So at any later time s it is lower by
// min(k, least backlog in [t, s]), which is back for k = unused. The same holds for a charge of just back less, which never gets to 0: a
// return is as if back less had been charged from the start, and what others find in the past has become lower by back from t on, and has
// stayed before it, which are the two lines above. And m does not fall from one reservation to a later one, since it is the least
// of fewer instants: so those of one m stand together, and lowering takes a step for each level that it ends.
//
// What was charged before a restart has a past that nobody has followed. If since then there were only charges and returns, the backlog was at
// least what is left of the reservation's own charge, and more exactly what the charges alone have left of all that are open and are not later than
// it: as much as Restore may be told. That of an earlier one is one more such bound.
type Reserved struct {
	levels []level // in the order of the reservations, and of what is left
}

// level are the reservations of one m.
type level struct {
	first, last int64 // tickets of the oldest and the newest one that have stood here
	open        int   // of them
	least       int64 // m
}

// Open is how many reservations are open.
func (r *Reserved) Open() (n int) {
	for i := range r.levels {
		n += r.levels[i].open
	}
	return n
}

// Charge enters a reservation after its charge, with the backlog that there is now. Its ticket is above those of all before it.
func (r *Reserved) Charge(ticket, backlog int64) {
	r.Found(backlog)
	r.Restore(ticket, backlog)
}

// Restore enters a reservation of before, with a bound below the least backlog since its charge. Its ticket is one that no open reservation
// has, and says where it stands among them.
func (r *Reserved) Restore(ticket, least int64) {
	least = max(least, 0)
	i := r.after(ticket)
	if i < len(r.levels) {
		least = min(least, r.levels[i].least)
	}
	if i > 0 {
		if l := &r.levels[i-1]; least <= l.least || ticket < l.last { // its m is no lower than that of an earlier one, and no higher than that of a later one
			l.open++
			l.last = max(l.last, ticket)
			return
		}
	}
	r.levels = slices.Insert(r.levels, i, level{first: ticket, last: ticket, open: 1, least: least})
}

// Found lowers every m to a backlog that has been found, just before a write or at any other time.
func (r *Reserved) Found(backlog int64) { r.lower(len(r.levels), max(backlog, 0)) }

// Return closes the reservation of a ticket, of whose charge so much was not used, and returns how much of it is to be taken from the
// backlog, which Found has been told before. Nothing comes back of an unused of 0 or less. The reservation is one that is open.
func (r *Reserved) Return(ticket, unused int64) (back int64) {
	i := r.after(ticket) - 1
	l := &r.levels[i]
	back = min(max(unused, 0), l.least)
	l.open--
	for j := i + 1; j < len(r.levels); j++ {
		r.levels[j].least -= back
	}
	r.lower(i+1, l.least-back)
	return back
}

// after returns the index of the first level whose reservations all have later tickets.
func (r *Reserved) after(ticket int64) int {
	return sort.Search(len(r.levels), func(i int) bool { return r.levels[i].first > ticket })
}

// lower has no m among the first n levels be above least. What is then of one m becomes one level, unless all of it is closed.
func (r *Reserved) lower(n int, least int64) {
	from, open := n, 0
	for from > 0 && r.levels[from-1].least >= least {
		from--
		open += r.levels[from].open
	}
	switch {
	case from == n:
	case open == 0:
		r.levels = slices.Delete(r.levels, from, n)
	default:
		r.levels[from].last, r.levels[from].open, r.levels[from].least = r.levels[n-1].last, open, least
		r.levels = slices.Delete(r.levels, from+1, n)
	}
}
