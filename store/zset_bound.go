package store

import "bytes"

// ScoreRange selects the entries with Min <= score <= Max; MinEx and MaxEx leave out
// the bound itself. Infinite bounds are the float64 infinities. Neither may be NaN.
type ScoreRange struct {
	Min, Max     float64
	MinEx, MaxEx bool
}

// LexRange selects the entries with Min <= member <= Max in byte order; MinEx and
// MaxEx leave out the bound itself. MinInf ("-") and MaxInf ("+") take a bound away;
// Empty ("+" as the lower bound, or "-" as the upper) selects nothing. It means
// something only where all scores are the same.
type LexRange struct {
	Min, Max       []byte
	MinEx, MaxEx   bool
	MinInf, MaxInf bool
	Empty          bool
}

// zsetBound is a point between two neighbours in a sorted set's order. Ranges are a
// pair of them, so that every encoding needs one search only.
type zsetBound struct {
	kind   boundKind
	past   bool // entries that equal the bound lie before it
	score  float64
	member []byte
}

type boundKind uint8

const (
	boundStart boundKind = iota
	boundEnd
	boundScore
	boundMember
)

// after says whether the bound comes after the entry.
func (b *zsetBound) after(score float64, member []byte) bool {
	switch b.kind {
	case boundScore:
		return score < b.score || b.past && score == b.score
	case boundMember:
		c := bytes.Compare(member, b.member)
		return c < 0 || b.past && c == 0
	}
	return b.kind == boundEnd
}

func (r ScoreRange) bounds() (from, to zsetBound) {
	if r.Min > r.Max || r.Min == r.Max && (r.MinEx || r.MaxEx) {
		return zsetBound{kind: boundStart}, zsetBound{kind: boundStart}
	}
	return zsetBound{kind: boundScore, score: r.Min, past: r.MinEx},
		zsetBound{kind: boundScore, score: r.Max, past: !r.MaxEx}
}

func (r LexRange) bounds() (from, to zsetBound) {
	from, to = zsetBound{kind: boundStart}, zsetBound{kind: boundStart}
	c := -1
	if !r.MinInf && !r.MaxInf {
		c = bytes.Compare(r.Min, r.Max)
	}
	if r.Empty || c > 0 || c == 0 && (r.MinEx || r.MaxEx) {
		return from, to
	}
	if !r.MinInf {
		from = zsetBound{kind: boundMember, member: r.Min, past: r.MinEx}
	}
	to.kind = boundEnd
	if !r.MaxInf {
		to = zsetBound{kind: boundMember, member: r.Max, past: !r.MaxEx}
	}
	return from, to
}
