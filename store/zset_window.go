package store

import (
	"math"
	"strconv"

	"headgate/internal/number"
)

// A sliding log keeps the time of every admitted request, in Unix milliseconds, as an entry of a sorted set: the score is
// the time, and the member is AppendStamp's text, or a name that a client chose. What follows are the operations that a
// limiter needs of such a set. They hold for every sorted set, whoever wrote it.

// maxStampName is the longest text that AppendStamp writes, in bytes.
const maxStampName = 2*number.IntMax + 1

// AppendStamp appends to dst the member of the n-th entry within the millisecond ms, n counting from 0: "<ms>-<n>".
func AppendStamp(dst []byte, ms int64, n int) []byte {
	dst = strconv.AppendInt(dst, ms, 10)
	dst = append(dst, '-')
	return strconv.AppendInt(dst, int64(n), 10)
}

// AppendStamps adds n entries of score ms, in [0, 2^53], and creates the key when it is not there and n is above 0. Each
// gets the next member "<ms>-<i>" that the set does not hold, i counting up from the number of entries of this score.
// added, unless nil, is shown every new member, in any order; the member holds until it returns, and it must not change the
// set. An entry costs O(log n), and less where ms is above all other times of the set.
func (z *ZSet) AppendStamps(ms int64, n int, added func(member []byte)) {
	if n <= 0 {
		return
	}
	z.makeLog(ms, n)
	if z.appendRun(ms, n, added) {
		return
	}
	score := float64(ms)
	for i := z.CountScore(ScoreRange{Min: score, Max: score}); n > 0; i++ {
		member := AppendStamp(z.db.ks.stampName[:0], ms, i)
		if _, held := z.Score(member); held {
			continue
		}
		z.Add(score, member)
		if added != nil {
			added(member)
		}
		n--
	}
}

// CountAfter counts the entries with a score above t, without looking at each: O(log n).
func (z *ZSet) CountAfter(t int64) int {
	return z.CountScore(ScoreRange{Min: float64(t), MinEx: true, Max: math.Inf(1)})
}
