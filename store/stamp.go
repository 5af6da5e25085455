package store

import (
	"bytes"
	"cmp"
	"math"
	"strconv"

	"headgate/internal/number"
)

// stamp is an entry of a sliding log: a member that tells its own score, "<score>" or "<score>-<n>". The text is
// canonical, so that each stamp stands for one member and no two for the same. The set's score is the float64 of the stamp's.
type stamp struct {
	score  int64
	suffix uint32 // n plus one, so that 0 is no suffix
}

// What a stamp may be. Up to stampMaxScore, scores are exact as float64, with a suffix also beside its first digits in the cursor of a scan. From
// stampMinNanos on, which is nanoseconds since 1970, several have the same float64. Those are in order as text, as their set has them, because all have
// 19 digits.
const (
	stampMaxScore    = 1<<53 - 1                 // in microseconds, the year 2255
	stampMaxSuffixed = 1<<42 - 1                 // the highest score with a suffix; in milliseconds, the year 2109
	stampMaxSuffix   = 9_999_999                 // the highest n
	stampMinNanos    = 1_000_000_000_000_000_000 // the year 2001
	stampMaxNanos    = 1<<62 - 1                 // the year 2116
)

// maxStampText is the longest text of a stamp, in bytes.
const maxStampText = 24

// parseStamp reads a member that could be a stamp.
func parseStamp(member []byte) (stamp, bool) {
	if len(member) == 0 || len(member) > maxStampText || member[0] < '0' || member[0] > '9' {
		return stamp{}, false
	}
	score, suffix, cut := member, []byte(nil), false
	if i := bytes.IndexByte(member, '-'); i > 0 {
		score, suffix, cut = member[:i], member[i+1:], true
	}
	s, ok := number.ParseInt(score)
	if !ok || s > stampMaxScore && (s < stampMinNanos || s > stampMaxNanos) {
		return stamp{}, false
	}
	if !cut {
		return stamp{score: s}, true
	}
	n, ok := number.ParseInt(suffix)
	if !ok || n < 0 || n > stampMaxSuffix || s > stampMaxSuffixed {
		return stamp{}, false
	}
	return stamp{score: s, suffix: uint32(n) + 1}, true
}

// tells says whether a member of this stamp tells this score. "0" does not tell -0.
func (s stamp) tells(score float64) bool {
	return float64(s.score) == score && !math.Signbit(score)
}

// isStamp says whether a member tells its score.
func isStamp(score float64, member []byte) bool {
	s, ok := parseStamp(member)
	return ok && s.tells(score)
}

// appendText appends the member.
func (s stamp) appendText(dst []byte) []byte {
	dst = number.AppendInt(dst, s.score)
	if s.suffix == 0 {
		return dst
	}
	dst = append(dst, '-')
	return strconv.AppendUint(dst, uint64(s.suffix-1), 10)
}

// compare orders stamps as their sorted set does: by score, then as text, in which 10 comes before 2.
func (s stamp) compare(o stamp) int {
	if s.score != o.score {
		return cmp.Compare(s.score, o.score)
	}
	if s.suffix == o.suffix || s.suffix == 0 || o.suffix == 0 {
		return cmp.Compare(s.suffix, o.suffix)
	}
	return compareDigits(s.suffix-1, o.suffix-1)
}

// compareDigits compares two numbers of at most 7 digits as text.
func compareDigits(a, b uint32) int {
	switch x, y := decimalLen(a), decimalLen(b); {
	case x < y:
		if c := cmp.Compare(a*powersOfTen[y-x], b); c != 0 {
			return c
		}
		return -1
	case x > y:
		return -compareDigits(b, a)
	}
	return cmp.Compare(a, b)
}

var powersOfTen = [...]uint32{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000}

// decimalLen is the number of digits of n, which has at most 7.
func decimalLen(n uint32) int {
	digits := 1
	for n >= powersOfTen[digits] {
		digits++
	}
	return digits
}

// isBefore says whether the bound comes after the stamp.
func (s stamp) isBefore(b *zsetBound) bool {
	if b.kind != boundMember {
		return b.after(float64(s.score), nil)
	}
	var text [maxStampText]byte
	return b.after(float64(s.score), s.appendText(text[:0]))
}

// A scan's cursor within the stamps names the first one that it has not shown. A cursor is a number below 2^55 that is exact as a
// float64, which some clients make of it, so it cannot hold all of a stamp: stamps of one cursor are shown together. Those
// are at most 1,111 of one score, whose suffixes have the first three digits in common, or two of adjacent scores, or 1,024 of adjacent nanoseconds.
const (
	cursorPrefix  = 3 // digits of a suffix
	cursorBits    = 11
	cursorWide    = 1 << 53 // marks scores above stampMaxSuffixed
	cursorNanos   = 1 << 54 // marks scores from stampMinNanos on
	cursorsStamps = 1 << 55 // all cursors of stamps are below it
)

// cursor never falls from one stamp to the next.
func (s stamp) cursor() uint64 {
	switch {
	case s.score >= stampMinNanos:
		return cursorNanos | uint64(s.score)>>8&^3
	case s.score > stampMaxSuffixed:
		return cursorWide | uint64(s.score)&^1
	}
	prefix := uint64(0)
	if s.suffix != 0 {
		// A digit is 1 to 10, and 0 that there is none, so that 1 comes before 10.
		n := s.suffix - 1
		digits := decimalLen(n)
		for i := range cursorPrefix {
			prefix *= 11
			if i < digits {
				prefix += uint64(n/powersOfTen[digits-1-i]%10) + 1
			}
		}
	}
	return uint64(s.score)<<cursorBits | prefix
}
