package types

import (
	"math"
	"slices"
	"strings"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/store"
)

const (
	errWeightNotFloat = "ERR weight value is not a float"
	errLimitNegative  = "ERR LIMIT can't be negative"
)

// scored is a collection whose members have scores: what ZUNION and its like take in. A missing key is an empty one.
type scored interface {
	Len() int
	Score(member []byte) (score float64, ok bool)
	eachScored(fn func(member []byte, score float64))
}

// scoredZSet takes a sorted set in.
type scoredZSet struct{ store.ZSet }

func (z *scoredZSet) eachScored(fn func(member []byte, score float64)) {
	z.Range(0, z.Len()-1, false, func(member []byte, score float64) bool {
		fn(member, score)
		return true
	})
}

// scoredSet takes a set in, whose members all count 1.
type scoredSet struct{ store.Set }

// Score returns 1 for a member.
func (s *scoredSet) Score(member []byte) (score float64, ok bool) { return 1, s.Has(member) }

func (s *scoredSet) eachScored(fn func(member []byte, score float64)) {
	s.Each(func(member []byte) bool {
		fn(member, 1)
		return true
	})
}

// readScored opens the collection at args[i] for reading, or sends the error and returns false.
func readScored(c *command.Ctx, i int) (scored, bool) {
	if e, found := c.DB.Find(c.Key(i), c.Now); found && e.Kind() == store.KindSet {
		s, _, ok := c.ReadSet(i)
		return &scoredSet{s}, ok
	}
	z, _, ok := c.ReadZSet(i)
	return &scoredZSet{z}, ok
}

// scoredMember is a member of a result, which owns its memory.
type scoredMember struct {
	name  string
	score float64
}

// sortMembers puts a result in a sorted set's order.
func sortMembers(members []scoredMember) {
	slices.SortFunc(members, func(a, b scoredMember) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
}

// storeMembers makes the key at args[i] the sorted set of these members, whatever it was before; without members it is gone. The
// set is told to expect as many members as given, the longest of that length; see store.ZSet.Expect.
func storeMembers(c *command.Ctx, i int, members []scoredMember, expected, longest int) {
	if e, found := c.DB.Find(c.Key(i), c.Now); found {
		e.Delete()
		c.NotifyDeleted(len(members) == 0, c.Args[i])
		defer c.Replacing()()
	}
	to, ok := c.ChangeZSet(i)
	if !ok {
		return
	}
	if len(members) > 0 {
		to.Expect(expected, longest)
	}
	for _, m := range members {
		c.Scratch = append(c.Scratch[:0], m.name...)
		to.Add(m.score, c.Scratch)
	}
	if len(members) > 0 {
		c.Notify(config.EventZSet, c.Cmd.Name, c.Args[i])
	}
	c.Reply.Int(int64(len(members)))
}

// combination is the way in which a command makes one collection out of several.
type combination uint8

const (
	union combination = iota
	intersection
	difference
)

// aggregate says how the scores of a member that several inputs have become one.
type aggregate uint8

const (
	aggregateSum aggregate = iota
	aggregateMin
	aggregateMax
)

// of returns the score that a and b make. What adds up to no number, the two infinities, is 0; one that is no number already is
// passed over by MIN and MAX.
func (g aggregate) of(a, b float64) float64 {
	switch {
	case g == aggregateSum:
		return numberOrZero(a + b)
	case g == aggregateMin && b < a, g == aggregateMax && b > a:
		return b
	}
	return a
}

// numberOrZero turns NaN, which no score may be, into 0.
func numberOrZero(score float64) float64 {
	if math.IsNaN(score) {
		return 0
	}
	return score
}

// weighted is one of the inputs of a combination.
type weighted struct {
	scored
	weight float64
}

// zsetCombiner is what ZUNION, ZINTER and ZDIFF, and those that store or count, are told.
type zsetCombiner struct {
	kind       combination
	inputs     []weighted
	aggregate  aggregate
	withScores bool
	limit      int64 // of a count; 0 for none
}

// combinerForm is what a command's name has settled of a combination.
type combinerForm struct {
	kind   combination
	first  int // argument index of the number of keys
	stores bool
	counts bool
}

// combinerArgs parses the inputs and the options behind them, or sends the error and returns false.
func combinerArgs(c *command.Ctx, f combinerForm) (z zsetCombiner, ok bool) {
	z.kind = f.kind
	n, ok := c.Integer(f.first)
	switch {
	case !ok:
		return z, false
	case n < 1:
		c.Errf("ERR at least 1 input key is needed for '%s' command", c.Cmd.FullName)
		return z, false
	case n > int64(len(c.Args)-f.first-1):
		c.Err(command.ErrSyntax)
		return z, false
	}
	behind := f.first + 1 + int(n)
	for i := f.first + 1; i < behind; i++ {
		input, ok := readScored(c, i)
		if !ok {
			return z, false
		}
		z.inputs = append(z.inputs, weighted{input, 1})
	}
	return z, combinerOptions(c, &z, f, behind)
}

// combinerOptions parses the words from args[i] on, or sends the error and returns false.
func combinerOptions(c *command.Ctx, z *zsetCombiner, f combinerForm, i int) bool {
	for ; i < len(c.Args); i++ {
		more := len(c.Args) - i - 1
		switch {
		case f.kind != difference && !f.counts && more >= len(z.inputs) && c.Is(i, "WEIGHTS"):
			for n := range z.inputs {
				i++
				var ok bool
				if z.inputs[n].weight, ok = number.ParseFloat(c.Args[i]); !ok {
					c.Err(errWeightNotFloat)
					return false
				}
			}
		case f.kind != difference && !f.counts && more >= 1 && c.Is(i, "AGGREGATE"):
			i++
			switch {
			case c.Is(i, "SUM"):
				z.aggregate = aggregateSum
			case c.Is(i, "MIN"):
				z.aggregate = aggregateMin
			case c.Is(i, "MAX"):
				z.aggregate = aggregateMax
			default:
				c.Err(command.ErrSyntax)
				return false
			}
		case !f.stores && !f.counts && c.Is(i, "WITHSCORES"):
			z.withScores = true
		case f.counts && more >= 1 && c.Is(i, "LIMIT"):
			i++
			n, ok := number.ParseInt(c.Args[i])
			if !ok || n < 0 {
				c.Err(errLimitNegative)
				return false
			}
			z.limit = n
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	return true
}

// bySize puts the smallest input first, so that the fewest members are looked at. The order decides how scores are added up.
func (z *zsetCombiner) bySize() {
	slices.SortStableFunc(z.inputs, func(a, b weighted) int { return a.Len() - b.Len() })
}

// result carries the combination out, in the order of a sorted set.
func (z *zsetCombiner) result() []scoredMember {
	var members []scoredMember
	keep := func(member []byte, score float64) bool {
		members = append(members, scoredMember{string(member), score})
		return true
	}
	switch z.kind {
	case union:
		members = z.union()
	case intersection:
		z.intersect(keep)
	default:
		z.subtract(keep)
	}
	sortMembers(members)
	return members
}

func (z *zsetCombiner) union() []scoredMember {
	z.bySize()
	var members []scoredMember
	place := make(map[string]int)
	for _, input := range z.inputs {
		input.eachScored(func(member []byte, score float64) {
			score = numberOrZero(input.weight * score)
			if i, held := place[string(member)]; held {
				members[i].score = z.aggregate.of(members[i].score, score)
				return
			}
			name := string(member)
			place[name] = len(members)
			members = append(members, scoredMember{name, score})
		})
	}
	return members
}

// intersect hands the members that all inputs have to fn until fn says false.
func (z *zsetCombiner) intersect(fn func(member []byte, score float64) bool) {
	z.bySize()
	first, others := z.inputs[0], z.inputs[1:]
	more := true
	first.eachScored(func(member []byte, score float64) {
		if !more {
			return
		}
		score = numberOrZero(first.weight * score)
		for _, other := range others {
			held, ok := other.Score(member)
			if !ok {
				return
			}
			score = z.aggregate.of(score, other.weight*held)
		}
		more = fn(member, score)
	})
}

// subtract hands the members of the first input that no other has to fn.
func (z *zsetCombiner) subtract(fn func(member []byte, score float64) bool) {
	first, others := z.inputs[0], z.inputs[1:]
	first.eachScored(func(member []byte, score float64) {
		for _, other := range others {
			if _, held := other.Score(member); held {
				return
			}
		}
		fn(member, score)
	})
}

// combine returns the handler of a command that answers with a combination.
func combine(kind combination) command.Handler {
	return func(c *command.Ctx) {
		z, ok := combinerArgs(c, combinerForm{kind: kind, first: 1})
		if !ok {
			return
		}
		members := z.result()
		sendPairsHeader(c, len(members), z.withScores)
		for _, m := range members {
			c.Scratch = append(c.Scratch[:0], m.name...)
			sendMember(c, c.Scratch, m.score, z.withScores)
		}
	}
}

// combineStore returns the handler of a command that keeps a combination at the key at args[1].
func combineStore(kind combination) command.Handler {
	return func(c *command.Ctx) {
		z, ok := combinerArgs(c, combinerForm{kind: kind, first: 2, stores: true})
		if !ok {
			return
		}
		members, longest := z.result(), 0
		for _, m := range members {
			longest = max(longest, len(m.name))
		}
		storeMembers(c, 1, members, len(members), longest)
	}
}

func zinterCard(c *command.Ctx) {
	z, ok := combinerArgs(c, combinerForm{kind: intersection, first: 1, counts: true})
	if !ok {
		return
	}
	n := int64(0)
	z.intersect(func([]byte, float64) bool {
		n++
		return n != z.limit
	})
	c.Reply.Int(n)
}
