package server

import (
	"math"
	"math/rand/v2"

	"headgate/server/resp"
	"headgate/store"
)

const (
	// maxRepeats is how many elements may be drawn with repeats in one command, and maxRepeatsReply how many bytes they may make.
	// All else that a collection can be asked for is bounded by its size.
	maxRepeats      = 1 << 20
	maxRepeatsReply = 64 << 20
	// smallCollection is the size up to which looking at every element costs less than being clever; in a packed collection
	// finding one element is a walk anyway.
	smallCollection = 1024
)

// element is a field of a hash with its value, a member of a set, or one of a sorted set with its score.
type element struct {
	name  []byte
	value []byte
	score float64
}

// drawable is a collection that random elements are drawn from.
type drawable interface {
	Len() int
	element(i int) element // i counts in any fixed order
	each(fn func(element))
	sendExtra(w *resp.Writer, e element) // the value or the score
}

// hashFields draws from a hash.
type hashFields struct{ store.Hash }

func (h *hashFields) element(i int) element {
	field, value := h.At(i)
	return element{name: field, value: value}
}

func (h *hashFields) each(fn func(element)) {
	h.Each(func(field, value []byte) bool {
		fn(element{name: field, value: value})
		return true
	})
}

func (h *hashFields) sendExtra(w *resp.Writer, e element) { w.Bulk(e.value) }

// setMembers draws from a set.
type setMembers struct{ store.Set }

func (s *setMembers) element(i int) element { return element{name: keptMember(&s.Set, s.At(i))} }

func (s *setMembers) each(fn func(element)) {
	s.Each(func(member []byte) bool {
		fn(element{name: keptMember(&s.Set, member)})
		return true
	})
}

func (s *setMembers) sendExtra(*resp.Writer, element) {}

// zsetMembers draws from a sorted set.
type zsetMembers struct{ store.ZSet }

func (z *zsetMembers) element(i int) element {
	member, score := z.AtRank(i)
	return element{name: member, score: score}
}

// each goes from the highest score down, as Redis does where it answers with all members.
func (z *zsetMembers) each(fn func(element)) {
	z.Range(0, z.Len()-1, true, func(member []byte, score float64) bool {
		fn(element{name: member, score: score})
		return true
	})
}

func (z *zsetMembers) sendExtra(w *resp.Writer, e element) { w.Double(e.score) }

// randomArgs parses the count at args[2] and the word behind it that asks for values or scores too, or sends the error and returns
// false. A negative count allows repeats.
func (c *Ctx) randomArgs(extraWord string) (count int64, extra, ok bool) {
	count, ok = c.integer(2)
	switch {
	case !ok:
		return 0, false, false
	case count == math.MinInt64:
		c.errf("ERR value is out of range, value must between %d and %d", int64(-math.MaxInt64), int64(math.MaxInt64))
		return 0, false, false
	case len(c.args) > 4 || (len(c.args) == 4 && !c.is(3, extraWord)):
		c.err(errSyntax)
		return 0, false, false
	}
	extra = len(c.args) == 4
	if extra && (count < -math.MaxInt64/2 || count > math.MaxInt64/2) {
		c.err(errOutOfRange)
		return 0, false, false
	}
	return count, extra, true
}

// sendOneRandom sends the name of one element drawn at random, or null for a missing key.
func (c *Ctx) sendOneRandom(from drawable, found bool) {
	if !found {
		c.reply.Null()
		return
	}
	c.reply.Bulk(from.element(rand.IntN(from.Len())).name)
}

// sendRandom sends elements drawn at random: count different ones or as many as there are, or -count with repeats.
func (c *Ctx) sendRandom(from drawable, count int64, extra bool) {
	size := from.Len()
	switch {
	case count == 0 || size == 0:
		c.reply.EmptyArray()
	case count < -maxRepeats:
		c.err(errOutOfRange)
	case count < 0:
		c.sendRepeats(from, int(-count), extra)
	case count >= int64(size):
		c.sendPairsHeader(size, extra)
		from.each(func(e element) { c.sendElement(from, e, extra) })
	default:
		c.sendDistinct(from, size, int(count), extra)
	}
}

func (c *Ctx) sendRepeats(from drawable, count int, extra bool) {
	size, pick, before := from.Len(), from.element, c.reply.Len()
	if size <= smallCollection && count > 1 {
		all := make([]element, 0, size)
		from.each(func(e element) { all = append(all, e) })
		pick = func(i int) element { return all[i] }
	}
	c.sendPairsHeader(count, extra)
	for range count {
		c.sendElement(from, pick(rand.IntN(size)), extra)
		if c.reply.Len()-before > maxRepeatsReply {
			c.reply.Truncate(before)
			c.err(errOutOfRange)
			return
		}
	}
}

func (c *Ctx) sendDistinct(from drawable, size, count int, extra bool) {
	c.sendPairsHeader(count, extra)
	if count > 1 && (size <= smallCollection || count > size/3) {
		choice := chooser{left: size, want: count, rnd: rand.IntN}
		from.each(func(e element) {
			if choice.take() {
				c.sendElement(from, e, extra)
			}
		})
		return
	}
	for _, i := range distinct(size, count, rand.IntN) {
		c.sendElement(from, from.element(i), extra)
	}
}

// sendElement sends an element's name, and with extra its value or score. In RESP3 the two make an array.
func (c *Ctx) sendElement(from drawable, e element, extra bool) {
	if extra && c.reply.Proto() == resp.RESP3 {
		c.reply.Array(2)
	}
	c.reply.Bulk(e.name)
	if extra {
		from.sendExtra(c.reply, e)
	}
}

// sendPairsHeader begins an array of n elements, or of n pairs: RESP2 has them side by side.
func (c *Ctx) sendPairsHeader(n int, pairs bool) {
	if pairs && c.reply.Proto() != resp.RESP3 {
		n *= 2
	}
	c.reply.Array(n)
}

// chooser picks want of the next left elements of a walk, each set of them as likely as any other: selection sampling, Algorithm S
// in Knuth's The Art of Computer Programming 3.4.2.
type chooser struct {
	left, want int
	rnd        func(n int) int // a random number in [0, n)
}

// take reports whether the walk's next element is picked.
func (s *chooser) take() bool {
	picked := s.rnd(s.left) < s.want
	s.left--
	if picked {
		s.want--
	}
	return picked
}

// distinct returns count different numbers in [0, size), each set of them as likely as any other: Robert Floyd's algorithm, from
// Bentley's Programming Pearls, CACM September 1987. rnd returns a random number in [0, n).
func distinct(size, count int, rnd func(n int) int) []int {
	numbers := make([]int, 0, count)
	seen := make(map[int]struct{}, count)
	for last := size - count; last < size; last++ {
		n := rnd(last + 1)
		if _, again := seen[n]; again {
			n = last
		}
		seen[n] = struct{}{}
		numbers = append(numbers, n)
	}
	return numbers
}
