package command

import (
	"time"
)

// A client that goes, or lets go of all that it holds, may have hundreds of thousands of entries in the server's tables: names that
// it subscribes to, watches, waits for or tracks. To take them out at once would have everybody else wait. So they lose their effect
// at once, few of them also their place in the tables, and many are taken out by background work, in slices.

// Leftover is what a client has let go of and tables still have. None of it has any effect.
type Leftover interface {
	Sized // by the entries that are still there

	// TakeOut takes up to n entries out of the tables and returns how many. Fewer than n are the last.
	TakeOut(n int) int
}

// Remains are the leftovers of all clients, those that came first before the others. The executor's lock guards them.
type Remains struct {
	Queue  []Leftover
	Bytes  int // their sizes, when they came and after each slice
	Spared int // entries that may still be taken out at once before the next slice
}

// How much of leftovers is taken out at a time.
const (
	RemainsPerClient = 16   // entries that are always taken out at once: a command that lets go of them has cost as much before
	RemainsAtOnce    = 1024 // entries that are taken out at once between two slices, by all clients together
	remainsPerLook   = 64   // entries taken out between two looks at the clock
	RemainsPerNew    = 2    // entries taken out for each new one, so that there are never more than were held at once
)

// LetGo has a leftover taken out of the tables: at once if it is small, else by background work.
func (r *Remains) LetGo(l Leftover) {
	if len(r.Queue) == 0 {
		n := max(r.Spared, RemainsPerClient)
		taken := l.TakeOut(n)
		r.Spared = max(r.Spared-taken, 0)
		if taken < n {
			return
		}
	}
	r.Queue = append(r.Queue, l)
	r.Bytes += l.Bytes()
}

// TakeOut takes up to n entries of leftovers out of the tables.
func (r *Remains) TakeOut(n int) {
	for n > 0 && len(r.Queue) > 0 {
		first := r.Queue[0]
		before := first.Bytes()
		taken := first.TakeOut(n)
		if taken < n {
			r.Queue[0] = nil
			r.Queue = r.Queue[1:]
			r.Bytes -= before
		} else {
			r.Bytes -= before - first.Bytes()
		}
		n -= max(taken, 1) // an empty leftover has cost something too
	}
	if len(r.Queue) == 0 {
		*r = Remains{Spared: r.Spared}
	}
}

// Help is called for each entry that a client adds to a table.
func (r *Remains) Help() {
	if len(r.Queue) > 0 {
		r.TakeOut(RemainsPerNew)
	}
}

// Slice takes leftovers out for as long as a slice may last, and reports whether there are more.
func (r *Remains) Slice() (more bool) {
	r.Spared = RemainsAtOnce
	for start := time.Now(); len(r.Queue) > 0 && time.Since(start) < SliceTime*3/4; {
		r.TakeOut(remainsPerLook)
	}
	return len(r.Queue) > 0
}
