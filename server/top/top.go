// Package top finds the keys that are called most, among any number of them and in a fixed amount of memory.
//
// A [Sketch] is a Space-Saving summary (Metwally, Agrawal, El Abbadi, 2005) of so many watched keys. A call of a watched key adds 1
// to its count. A key that is not watched takes the place of the watched one with the least count, and continues from that count: it
// might have had as many calls before. The number of calls that it may not have had is kept as its error.
//
// As long as there is room every key is watched from its first call on, and all counts are exact. After that a key has to be drawn: each
// call of an unwatched key has a chance of one in [Draw], and counts for Draw calls. So nearly all calls cost a look into a small
// table and no more, whether keys repeat or not, and a key that is called often is soon watched and then counted call by call. What is
// certain, and what is likely:
//
//   - Count - Error is never more than the true number of calls. Error is never more than [Sketch.Bound]: the total of all counts,
//     which is the number of calls except for the draws' luck, by the number of watched keys; and Draw.
//   - Count is less than the true number only by calls made while the key was not watched and not drawn. Being called n times without
//     being drawn has a chance of (1 - 1/Draw)^n: with [Unseen] calls it is one in a million.
//
// It knows no clock: the caller advances a [Window], which forgets old calls.
package top

import (
	"cmp"
	"slices"
)

const (
	// Draw is one in how many calls of unwatched keys has the key watched, once there is no room.
	Draw = 1 << drawBits
	// Unseen is how many calls in a row an unwatched key has with a chance of one in a million: (63/64)^878.
	Unseen = 878
	// MaxKeys is the most keys that a Sketch watches.
	MaxKeys = 1<<indexBits - 1
	// MaxName is how much of a key's name is kept, in bytes.
	MaxName = 128
)

// Key is a key and its calls.
type Key struct {
	Name  []byte // at most MaxName bytes of it
	Long  bool   // the name goes on
	DB    int
	Label uint16 // what the caller tells keys apart by beside their names
	Hash  uint64 // of the key, its database and its label
	Count uint64
	Error uint64
}

// watched is a key that is watched.
type watched struct {
	hash  uint64
	count uint64
	error uint64
	db    int32
	label uint16
	size  uint8
	long  bool
}

// Sketch is what is known of one kind of calls. It is not safe for concurrent use.
//
// heap orders the watched keys by what their counts were when it last looked at them, which is never more than what they are. So a call
// adds 1 to a count and leaves the heap alone; the heap catches up when the least is asked for.
type Sketch struct {
	keys  []watched
	names []byte // MaxName bytes for each of keys
	heap  []entry
	table []slot // open addressing with linear probing; see sparse
	mask  uint64
	state uint64 // of the generator that draws
}

// entry is a place of the heap.
type entry struct {
	low   uint64 // the key's count when it was last looked at
	index int32  // of the key
}

// slot is a place of the table: 16 bits of a watched key's hash, and its index plus 1. 0 is a free one.
type slot uint32

const indexBits = 16

func slotOf(hash uint64, index int) slot {
	return slot(hash>>(64-indexBits)<<indexBits) | slot(index+1)
}

func (t slot) index() int { return int(t&(1<<indexBits-1)) - 1 }

// is reports whether the slot may be that of a hash.
func (t slot) is(hash uint64) bool { return uint64(t)>>indexBits == hash>>(64-indexBits) }

// sparse is one in how many slots is in use at most, so that nearly all probes for unwatched keys end at once.
const sparse = 8

// New returns a sketch that watches up to so many keys, 1 <= keys <= MaxKeys. It allocates nothing later.
func New(keys int, seed uint64) *Sketch {
	size := sparse
	for size < sparse*keys {
		size *= 2
	}
	return &Sketch{
		keys: make([]watched, 0, keys), names: make([]byte, keys*MaxName), heap: make([]entry, 0, keys),
		table: make([]slot, size), mask: uint64(size - 1), state: seed,
	}
}

// Sum is the total of all counts.
func (s *Sketch) Sum() (sum uint64) {
	for i := range s.keys {
		sum += s.keys[i].count
	}
	return sum
}

// Bound is what no error exceeds; 0 as long as there is room.
func (s *Sketch) Bound() uint64 {
	if len(s.keys) < cap(s.keys) {
		return 0
	}
	return s.Sum()/uint64(cap(s.keys)) + Draw
}

// Reset forgets all calls.
func (s *Sketch) Reset() {
	s.keys, s.heap = s.keys[:0], s.heap[:0]
	clear(s.table)
}

// Add enters a call. hash tells the key, its database and its label from all others; its low bits must be well mixed.
func (s *Sketch) Add(hash uint64, db int, label uint16, name []byte) {
	if k := s.find(hash); k != nil {
		k.count++
		return
	}
	// Knuth's multiplier; the upper bits of such a generator are good ones.
	s.state = s.state*6364136223846793005 + 1442695040888963407
	if s.state>>(64-drawBits) == 0 || len(s.keys) < cap(s.keys) {
		s.watch(hash, db, label, name)
	}
}

const drawBits = 6

// watch has a key watched.
func (s *Sketch) watch(hash uint64, db int, label uint16, name []byte) {
	if i := int32(len(s.keys)); len(s.keys) < cap(s.keys) {
		s.keys = append(s.keys, watched{count: 1})
		s.heap = append(s.heap, entry{1, i}) // none is less, so it stands right
		s.set(i, hash, db, label, name)
		return
	}
	i := s.least()
	k := &s.keys[i]
	s.remove(i)
	k.error = k.count + Draw - 1
	k.count += Draw
	s.set(i, hash, db, label, name)
	s.heap[0].low = k.count
	s.sink()
}

// set gives a place to another key.
func (s *Sketch) set(i int32, hash uint64, db int, label uint16, name []byte) {
	k := &s.keys[i]
	k.hash, k.db, k.label, k.long = hash, int32(db), label, len(name) > MaxName
	k.size = uint8(copy(s.names[int(i)*MaxName:(int(i)+1)*MaxName], name))
	at := hash & s.mask
	for s.table[at] != 0 {
		at = (at + 1) & s.mask
	}
	s.table[at] = slotOf(hash, int(i))
}

// remove takes keys[i] out of the table, and closes the gap.
func (s *Sketch) remove(i int32) {
	at := s.keys[i].hash & s.mask
	for s.table[at].index() != int(i) {
		at = (at + 1) & s.mask
	}
	for next := (at + 1) & s.mask; s.table[next] != 0; next = (next + 1) & s.mask {
		if home := s.keys[s.table[next].index()].hash & s.mask; (next-home)&s.mask >= (next-at)&s.mask {
			s.table[at] = s.table[next]
			at = next
		}
	}
	s.table[at] = 0
}

// least returns the index of the watched key with the least count, which is the first of the heap.
func (s *Sketch) least() int32 {
	for {
		first := &s.heap[0]
		count := s.keys[first.index].count
		if first.low == count {
			return first.index
		}
		first.low = count
		s.sink()
	}
}

// arity is how many entries of the heap stand below each: the more, the fewer steps.
const arity = 4

// sink brings the heap's first entry to its place.
func (s *Sketch) sink() {
	at, moved := 0, s.heap[0]
	for {
		child := arity*at + 1
		if child >= len(s.heap) {
			break
		}
		best := child
		for other := child + 1; other < min(child+arity, len(s.heap)); other++ {
			if s.heap[other].low < s.heap[best].low {
				best = other
			}
		}
		if moved.low <= s.heap[best].low {
			break
		}
		s.heap[at] = s.heap[best]
		at = best
	}
	s.heap[at] = moved
}

// find returns a watched key, or nil.
func (s *Sketch) find(hash uint64) *watched {
	for at := hash & s.mask; s.table[at] != 0; at = (at + 1) & s.mask {
		if s.table[at].is(hash) {
			if k := &s.keys[s.table[at].index()]; k.hash == hash {
				return k
			}
		}
	}
	return nil
}

// floor is the count that a key may have at most without being watched, but for luck.
func (s *Sketch) floor() uint64 {
	if len(s.keys) < cap(s.keys) {
		return 0
	}
	return s.keys[s.least()].count
}

// nameOf is the name of keys[i], in the sketch's own memory.
func (s *Sketch) nameOf(i int) []byte { return s.names[i*MaxName : i*MaxName+int(s.keys[i].size)] }

// Window is a sketch of the calls of the last while: those since it last went on, and of one such time before that.
type Window struct {
	now, before *Sketch
}

// NewWindow returns a window whose sketches watch so many keys each.
func NewWindow(keys int, seed uint64) *Window {
	return &Window{now: New(keys, seed), before: New(keys, seed+1)}
}

// Add enters a call; see [Sketch.Add].
func (w *Window) Add(hash uint64, db int, label uint16, name []byte) {
	w.now.Add(hash, db, label, name)
}

// GoOn forgets the calls before it last went on.
func (w *Window) GoOn() {
	w.now, w.before = w.before, w.now
	w.now.Reset()
}

// Reset forgets all calls.
func (w *Window) Reset() {
	w.now.Reset()
	w.before.Reset()
}

// Sum is the number of calls, but for luck.
func (w *Window) Sum() uint64 { return w.now.Sum() + w.before.Sum() }

// Bound is what no error exceeds.
func (w *Window) Bound() uint64 { return w.now.Bound() + w.before.Bound() }

// Memory is how many bytes the window takes.
func (w *Window) Memory() int {
	const perKey, perSlot = 32 + MaxName + 16, 4
	return 2 * (cap(w.now.keys)*perKey + len(w.now.table)*perSlot)
}

// each hands the keys of both sketches to fn, without their names: sketch and i say where these are.
func (w *Window) each(fn func(k Key, sketch *Sketch, i int)) {
	halves := [2]*Sketch{w.now, w.before}
	for half, s := range halves {
		other := halves[1-half]
		floor := other.floor()
		for i := range s.keys {
			k := &s.keys[i]
			key := Key{DB: int(k.db), Label: k.label, Long: k.long, Hash: k.hash, Count: k.count, Error: k.error}
			switch old := other.find(k.hash); {
			case old == nil:
				key.Count, key.Error = key.Count+floor, key.Error+floor
			case half == 1:
				continue // it has been there
			default:
				key.Count, key.Error = key.Count+old.count, key.Error+old.error
			}
			fn(key, s, i)
		}
	}
}

// Counts returns the counts of all keys that are watched, the highest first.
func (w *Window) Counts() []uint64 {
	counts := make([]uint64, 0, len(w.now.keys)+len(w.before.keys))
	w.each(func(k Key, _ *Sketch, _ int) { counts = append(counts, k.Count) })
	slices.Sort(counts)
	slices.Reverse(counts)
	return counts
}

// Top returns the keys with the most calls, at most n, the most called first.
func (w *Window) Top(n int) []Key {
	counts := w.Counts()
	n = min(n, len(counts))
	if n == 0 {
		return nil
	}
	least := counts[n-1]
	var top []Key
	w.each(func(k Key, s *Sketch, i int) {
		if k.Count >= least {
			k.Name = slices.Clone(s.nameOf(i))
			top = append(top, k)
		}
	})
	slices.SortFunc(top, func(a, b Key) int {
		// Of equal counts the more certain one goes first; and the order is the same each time.
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error), slices.Compare(a.Name, b.Name), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Label, b.Label))
	})
	return top[:n]
}
