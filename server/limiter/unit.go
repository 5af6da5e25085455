package limiter

import "headgate/internal/number"

const (
	bareDigits    = 10                      // fewer are neither of the two below
	yearMs        = 365 * day / millisecond // above it, a bare number of milliseconds is probably none
	nanosInSecond = 1_000_000_000           // what client libraries send for a second that they count in nanoseconds
)

// LacksUnit reports whether a duration was probably not meant in milliseconds, as which a bare number is read: if it is above a year, or whole
// seconds in nanoseconds. The word is a duration, or a word that may stand in its place.
func LacksUnit(word []byte) bool {
	if len(word) < bareDigits { // nearly all of them, and they cost no more than this
		return false
	}
	ms, bare := number.ParseInt(word)
	return bare && (ms > yearMs || ms%nanosInSecond == 0)
}

// CallDuration returns the duration among the words behind a command's key, which have been accepted.
func (a *Algorithm) CallDuration(words [][]byte) []byte { return words[a.Words-1] }

// PolicyDurations lists the durations among a policy's words, which have been accepted; among them may be the unit of a calendar.
func (p *Policy) PolicyDurations(words [][]byte) (list [][]byte) {
	a := p.Algorithm
	if a.Words == 0 {
		return nil
	}
	list = append(list, words[a.Words])
	for i := 2 + a.Words; i < len(words); i++ {
		if is(words[i-1], blockArg.Token) || is(words[i-1], "DOUBLE") {
			list = append(list, words[i])
		}
	}
	return list
}
