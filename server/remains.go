package server

import "time"

// A client that goes, or lets go of all that it holds, may have hundreds of thousands of entries in the server's tables: names that
// it subscribes to, watches, waits for or tracks. To take them out at once would have everybody else wait. So they lose their effect
// at once, few of them also their place in the tables, and many are taken out by background work, in slices.

// leftover is what a client has let go of and tables still have. None of it has any effect.
type leftover interface {
	sized // by the entries that are still there

	// TakeOut takes up to n entries out of the tables and returns how many. Fewer than n are the last.
	TakeOut(n int) int
}

// remains are the leftovers of all clients, those that came first before the others. The executor's lock guards them.
type remains struct {
	queue  []leftover
	bytes  int // their sizes, when they came and after each slice
	spared int // entries that may still be taken out at once before the next slice
}

const (
	remainsPerClient = 16   // entries that are always taken out at once: a command that lets go of them has cost as much before
	remainsAtOnce    = 1024 // entries that are taken out at once between two slices, by all clients together
	remainsPerLook   = 64   // entries taken out between two looks at the clock
	remainsPerNew    = 2    // entries taken out for each new one, so that there are never more than were held at once
)

// letGo has a leftover taken out of the tables: at once if it is small, else by background work.
func (r *remains) letGo(l leftover) {
	if len(r.queue) == 0 {
		n := max(r.spared, remainsPerClient)
		taken := l.TakeOut(n)
		r.spared = max(r.spared-taken, 0)
		if taken < n {
			return
		}
	}
	r.queue = append(r.queue, l)
	r.bytes += l.Bytes()
}

// takeOut takes up to n entries of leftovers out of the tables.
func (r *remains) takeOut(n int) {
	for n > 0 && len(r.queue) > 0 {
		first := r.queue[0]
		before := first.Bytes()
		taken := first.TakeOut(n)
		if taken < n {
			r.queue[0] = nil
			r.queue = r.queue[1:]
			r.bytes -= before
		} else {
			r.bytes -= before - first.Bytes()
		}
		n -= max(taken, 1) // an empty leftover has cost something too
	}
	if len(r.queue) == 0 {
		*r = remains{spared: r.spared}
	}
}

// help is called for each entry that a client adds to a table.
func (r *remains) help() {
	if len(r.queue) > 0 {
		r.takeOut(remainsPerNew)
	}
}

// slice takes leftovers out for as long as a slice may last, and reports whether there are more.
func (r *remains) slice() (more bool) {
	r.spared = remainsAtOnce
	for start := time.Now(); len(r.queue) > 0 && time.Since(start) < sliceTime*3/4; {
		r.takeOut(remainsPerLook)
	}
	return len(r.queue) > 0
}
