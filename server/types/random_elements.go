package types

import (
	"math"
	"math/rand/v2"

	"headgate/server/command"
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
func randomArgs(c *command.Ctx, extraWord string) (count int64, extra, ok bool) {
	count, ok = c.Integer(2)
	switch {
	case !ok:
		return 0, false, false
	case count == math.MinInt64:
		c.Errf("ERR value is out of range, value must between %d and %d", int64(-math.MaxInt64), int64(math.MaxInt64))
		return 0, false, false
	case len(c.Args) > 4 || (len(c.Args) == 4 && !c.Is(3, extraWord)):
		c.Err(command.ErrSyntax)
		return 0, false, false
	}
	extra = len(c.Args) == 4
	if extra && (count < -math.MaxInt64/2 || count > math.MaxInt64/2) {
		c.Err(command.ErrOutOfRange)
		return 0, false, false
	}
	return count, extra, true
}

// sendOneRandom sends the name of one element drawn at random, or null for a missing key.
func sendOneRandom(c *command.Ctx, from drawable, found bool) {
	if !found {
		c.Reply.Null()
		return
	}
	c.Reply.Bulk(from.element(rand.IntN(from.Len())).name)
}

// sendRandom sends elements drawn at random: count different ones or as many as there are, or -count with repeats.
func sendRandom(c *command.Ctx, from drawable, count int64, extra bool) {
	size := from.Len()
	switch {
	case count == 0 || size == 0:
		c.Reply.EmptyArray()
	case count < -maxRepeats:
		c.Err(command.ErrOutOfRange)
	case count < 0:
		sendRepeats(c, from, int(-count), extra)
	case count >= int64(size):
		sendPairsHeader(c, size, extra)
		from.each(func(e element) { sendElement(c, from, e, extra) })
	default:
		sendDistinct(c, from, size, int(count), extra)
	}
}

func sendRepeats(c *command.Ctx, from drawable, count int, extra bool) {
	size, pick, before := from.Len(), from.element, c.Reply.Len()
	if size <= smallCollection && count > 1 {
		all := make([]element, 0, size)
		from.each(func(e element) { all = append(all, e) })
		pick = func(i int) element { return all[i] }
	}
	sendPairsHeader(c, count, extra)
	for range count {
		sendElement(c, from, pick(rand.IntN(size)), extra)
		if c.Reply.Len()-before > maxRepeatsReply {
			c.Reply.Truncate(before)
			c.Err(command.ErrOutOfRange)
			return
		}
	}
}

func sendDistinct(c *command.Ctx, from drawable, size, count int, extra bool) {
	sendPairsHeader(c, count, extra)
	if count > 1 && (size <= smallCollection || count > size/3) {
		choice := chooser{left: size, want: count, rnd: rand.IntN}
		from.each(func(e element) {
			if choice.take() {
				sendElement(c, from, e, extra)
			}
		})
		return
	}
	for _, i := range distinct(size, count, rand.IntN) {
		sendElement(c, from, from.element(i), extra)
	}
}

// sendElement sends an element's name, and with extra its value or score. In RESP3 the two make an array.
func sendElement(c *command.Ctx, from drawable, e element, extra bool) {
	if extra && c.Reply.Proto() == resp.RESP3 {
		c.Reply.Array(2)
	}
	c.Reply.Bulk(e.name)
	if extra {
		from.sendExtra(c.Reply, e)
	}
}

// sendPairsHeader begins an array of n elements, or of n pairs: RESP2 has them side by side.
func sendPairsHeader(c *command.Ctx, n int, pairs bool) {
	if pairs && c.Reply.Proto() != resp.RESP3 {
		n *= 2
	}
	c.Reply.Array(n)
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
