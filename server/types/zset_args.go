package types

import (
	"headgate/internal/ascii"
	"headgate/internal/number"
	"headgate/server/command"
	"headgate/store"
)

// Errors for options of sorted sets that do not go together.
const (
	errZAddNXXX       = "ERR XX and NX options at the same time are not compatible"
	errZAddGTLT       = "ERR GT, LT, and/or NX options at the same time are not compatible"
	errZAddIncr       = "ERR INCR option supports a single increment-element pair"
	errZRangeLimit    = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	errZRangeLexScore = "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
)

// zaddOptions are the words before ZADD's scores.
type zaddOptions struct {
	nx, xx bool // only members that are not there; only members that are
	gt, lt bool // a member that is there only gets a higher score; only a lower one
	ch     bool // count the changed members too
	incr   bool // add to the score, and send the sum
}

// unconditional reports whether nothing of a member's present state matters.
func (o *zaddOptions) unconditional() bool { return !o.nx && !o.xx && !o.gt && !o.lt && !o.incr }

// zaddArgs parses the options from args[2] on into o, and checks that pairs of score and member follow. It returns where they begin,
// or sends the error and returns false.
func zaddArgs(c *command.Ctx, o *zaddOptions) (first int, ok bool) {
	first = 2
	for ; first < len(c.Args) && o.take(c.Args[first]); first++ {
	}
	pairs := len(c.Args) - first
	switch {
	case pairs == 0 || pairs%2 != 0:
		c.Err(command.ErrSyntax)
	case o.nx && o.xx:
		c.Err(errZAddNXXX)
	case (o.gt && o.nx) || (o.lt && o.nx) || (o.gt && o.lt):
		c.Err(errZAddGTLT)
	case o.incr && pairs > 2:
		c.Err(errZAddIncr)
	default:
		return first, true
	}
	return 0, false
}

// take notes a word, and reports false for one that is no option.
func (o *zaddOptions) take(word []byte) bool {
	switch {
	case ascii.EqualFold(word, "NX"):
		o.nx = true
	case ascii.EqualFold(word, "XX"):
		o.xx = true
	case ascii.EqualFold(word, "GT"):
		o.gt = true
	case ascii.EqualFold(word, "LT"):
		o.lt = true
	case ascii.EqualFold(word, "CH"):
		o.ch = true
	case ascii.EqualFold(word, "INCR"):
		o.incr = true
	default:
		return false
	}
	return true
}

// scores appends every second argument from args[i] on, parsed as scores, or sends the error and returns false.
func scores(c *command.Ctx, dst []float64, i int) ([]float64, bool) {
	for ; i < len(c.Args); i += 2 {
		score, ok := number.ParseScore(c.Args[i])
		if !ok {
			c.Err(command.ErrNotFloat)
			return nil, false
		}
		dst = append(dst, score)
	}
	return dst, true
}

// scoreRange parses args[low] and args[high] as the bounds of a range of scores, or sends the error and returns false.
func scoreRange(c *command.Ctx, low, high int) (r store.ScoreRange, ok bool) {
	var lowOK, highOK bool
	r.Min, r.MinEx, lowOK = number.ParseScoreBound(c.Args[low])
	r.Max, r.MaxEx, highOK = number.ParseScoreBound(c.Args[high])
	if !lowOK || !highOK {
		c.Err(command.ErrMinMaxFloat)
		return r, false
	}
	return r, true
}

// lexBound is one end of a range of members: [member, (member, - or +.
type lexBound struct {
	member    []byte
	exclusive bool
	infinite  byte // '-' or '+', 0 for a member
}

func parseLexBound(text []byte) (b lexBound, ok bool) {
	if len(text) == 0 {
		return b, false
	}
	switch text[0] {
	case '-', '+':
		b.infinite = text[0]
		// What follows a NUL byte is ignored, as it is by Redis, which takes the text for one of C's here.
		return b, len(text) == 1 || text[1] == 0
	case '(', '[':
		b.member, b.exclusive = text[1:], text[0] == '('
		return b, true
	}
	return b, false
}

// lexRange parses args[low] and args[high] as the bounds of a range of members, or sends the error and returns false.
func lexRange(c *command.Ctx, low, high int) (r store.LexRange, ok bool) {
	from, fromOK := parseLexBound(c.Args[low])
	to, toOK := parseLexBound(c.Args[high])
	if !fromOK || !toOK {
		c.Err(command.ErrMinMaxLex)
		return r, false
	}
	return store.LexRange{
		Min: from.member, MinEx: from.exclusive, MinInf: from.infinite == '-',
		Max: to.member, MaxEx: to.exclusive, MaxInf: to.infinite == '+',
		Empty: from.infinite == '+' || to.infinite == '-',
	}, true
}

// rankRange is a range of ranks as a client gives it: both ends are in it, and negative ones count from the end.
type rankRange struct{ start, stop int64 }

// parseRankRange parses args[first] and args[last] as the ends of a range of ranks, or sends the error and returns false.
func parseRankRange(c *command.Ctx, first, last int) (r rankRange, ok bool) {
	if r.start, ok = c.Integer(first); !ok {
		return r, false
	}
	r.stop, ok = c.Integer(last)
	return r, ok
}

// within returns the range's ends as ranks of a set of size members, or false when it has none of them.
func (r rankRange) within(size int) (start, stop int, ok bool) {
	n := int64(size)
	if r.start < 0 {
		r.start = max(r.start+n, 0)
	}
	if r.stop < 0 {
		r.stop += n
	}
	if r.start > r.stop || r.start >= n {
		return 0, 0, false
	}
	return int(r.start), int(min(r.stop, n-1)), true
}

// rangeBy is what a range of a sorted set is over.
type rangeBy uint8

const (
	byRank rangeBy = iota
	byScore
	byLex
)

// zrangeForm is what a command's name has settled already of the range that it returns.
type zrangeForm struct {
	first   int // argument index of the key
	by      rangeBy
	byFixed bool // neither BYSCORE nor BYLEX may be given
	reverse bool
	oneWay  bool // REV may not be given
	stores  bool // WITHSCORES may not be given
}

// zrange is a range of a sorted set as ZRANGE and its like are told it.
type zrange struct {
	by         rangeBy
	reverse    bool
	withScores bool
	offset     int64 // leave out so many
	limit      int64 // then take at most so many; negative: all
	ranks      rankRange
	scores     store.ScoreRange
	lex        store.LexRange
}

// zrangeArgs parses a range: its two ends, which follow the key, and the options behind them. It sends the error and returns false
// if they make none.
func zrangeArgs(c *command.Ctx, f zrangeForm) (r zrange, ok bool) {
	r = zrange{by: f.by, reverse: f.reverse, limit: -1}
	if !zrangeOptions(c, &r, f) {
		return r, false
	}
	switch {
	case r.limit != -1 && r.by == byRank:
		c.Err(errZRangeLimit)
		return r, false
	case r.withScores && r.by == byLex:
		c.Err(errZRangeLexScore)
		return r, false
	}
	low, high := f.first+1, f.first+2
	if r.reverse && r.by != byRank {
		low, high = high, low
	}
	switch r.by {
	case byScore:
		r.scores, ok = scoreRange(c, low, high)
	case byLex:
		r.lex, ok = lexRange(c, low, high)
	default:
		r.ranks, ok = parseRankRange(c, low, high)
	}
	return r, ok
}

// zrangeOptions parses the words behind a range's ends, or sends the error and returns false.
func zrangeOptions(c *command.Ctx, r *zrange, f zrangeForm) bool {
	for i := f.first + 3; i < len(c.Args); i++ {
		switch {
		case !f.stores && c.Is(i, "WITHSCORES"):
			r.withScores = true
		case c.Is(i, "LIMIT") && i+2 < len(c.Args):
			var ok bool
			if r.offset, ok = c.Integer(i + 1); !ok {
				return false
			}
			if r.limit, ok = c.Integer(i + 2); !ok {
				return false
			}
			i += 2
		case !f.oneWay && c.Is(i, "REV"):
			f.oneWay, r.reverse = true, true
		case !f.byFixed && c.Is(i, "BYLEX"):
			f.byFixed, r.by = true, byLex
		case !f.byFixed && c.Is(i, "BYSCORE"):
			f.byFixed, r.by = true, byScore
		default:
			c.Err(command.ErrSyntax)
			return false
		}
	}
	return true
}

// each hands the entries of the range to fn, in its order.
func (r *zrange) each(z *store.ZSet, fn func(member []byte, score float64) bool) {
	switch r.by {
	case byScore:
		z.EachScore(r.scores, r.reverse, int(r.offset), int(r.limit), fn)
	case byLex:
		z.EachLex(r.lex, r.reverse, int(r.offset), int(r.limit), fn)
	default:
		if start, stop, ok := r.ranks.within(z.Len()); ok {
			z.Range(start, stop, r.reverse, fn)
		}
	}
}
