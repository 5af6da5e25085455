package local

import (
	"context"
	"errors"
	"strconv"

	"headgate/internal/respcmd"
)

// MaxPairs is how many limits one Take may ask. RL.TAKE itself has a higher bound.
const MaxPairs = 32

// Pair is one limit that is asked.
type Pair struct {
	Policy, Key string // Policy is a name, or a policy written out
	Cost        int64
}

// Verdict is what one limit has answered. Times are in milliseconds; -1 is never, or no limit.
type Verdict struct {
	Limited                                  bool
	Limit, Remaining, RetryAfter, ResetAfter int64

	Lease string // the id of the lease that was taken; "" if none was
}

// Error is an error reply, as Redis's protocol has it: a word in upper case, and a text.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// Refusal returns the [Error] that err is, if it is one: then the session that it is of may be used again.
func Refusal(err error) (refusal Error, is bool) {
	if err == nil {
		return "", false
	}
	var found Error
	is = errors.As(err, &found)
	return found, is
}

// Take asks several limits at once: all of them pass, or none is charged. With peek none is charged in any case. Then it asks what policies of
// these names say, which is "" for those that there are not. The session may be used again unless the error is another than an [Error].
func (s *Session) Take(ctx context.Context, pairs []Pair, peek bool, names []string) (limited bool, list []Verdict, texts []string, err error) {
	s.request = appendTake(s.request[:0], pairs, peek)
	for _, name := range names {
		s.request = respcmd.Append(s.request, "RL.POLICY", "GET", name)
	}
	request := s.request
	if cap(request) > maxKept {
		s.request = nil
	}
	s.awaited = awaited{n: 1 + len(names), list: make([]Verdict, len(pairs))}
	if err = s.run(ctx, request); err != nil {
		return false, nil, nil, err
	}
	a := &s.awaited
	if a.plain {
		return a.limited, a.list, nil, nil
	}
	if limited, list, err = verdicts(a.replies[0], len(pairs)); err != nil {
		return false, nil, nil, err
	}
	for _, r := range a.replies[1:] {
		if r.kind != '$' {
			r.text = nil
		}
		texts = append(texts, string(r.text))
	}
	return limited, list, texts, nil
}

// maxKept is how long a request may be whose memory a session keeps for the next one, in bytes.
const maxKept = 4 << 10

// awaited is what a session's request is answered with.
type awaited struct {
	n       int       // replies
	list    []Verdict // of a single one, RL.TAKE's, if plain
	limited bool      // the same
	plain   bool      // it is the usual one
	replies []reply   // if not
	err     error     // something else than replies has come
}

// read reads the replies, and reports whether none is missing.
func (a *awaited) read(b []byte) (whole bool) {
	if a.n == 1 && len(a.list) > 0 {
		if a.limited, a.plain = readVerdicts(b, a.list); a.plain {
			return true
		}
	}
	a.replies, whole, a.err = readReplies(b, a.n)
	return whole
}

// readVerdicts reads the whole reply of RL.TAKE for so many pairs into list, if it is the usual one: not an error, and without leases. It is what
// readReplies and verdicts would make of it, without making anything on the way.
func readVerdicts(b []byte, list []Verdict) (limited, plain bool) {
	head, b, ok := readNumber(b, '*')
	if !ok || head != 3 {
		return false, false
	}
	first, b, ok := readNumber(b, ':')
	if !ok {
		return false, false
	}
	if _, b, ok = readNumber(b, ':'); !ok {
		return false, false
	}
	if head, b, ok = readNumber(b, '*'); !ok || head != int64(len(list)) {
		return false, false
	}
	for i := range list {
		if head, b, ok = readNumber(b, '*'); !ok || head != 5 {
			return false, false
		}
		var five [5]int64
		for j := range five {
			if five[j], b, ok = readNumber(b, ':'); !ok {
				return false, false
			}
		}
		list[i] = Verdict{Limited: five[0] == 1, Limit: five[1], Remaining: five[2], RetryAfter: five[3], ResetAfter: five[4]}
	}
	return first == 1, len(b) == 0
}

// appendTake appends RL.TAKE.
func appendTake(b []byte, pairs []Pair, peek bool) []byte {
	n := 3 + 3*len(pairs)
	if peek {
		n++
	}
	b = respcmd.AppendBulk(respcmd.AppendHeader(b, '*', int64(n)), "RL.TAKE")
	b = respcmd.AppendBulk(b, strconv.Itoa(len(pairs)))
	for i := range pairs {
		b = respcmd.AppendBulk(respcmd.AppendBulk(b, pairs[i].Policy), pairs[i].Key)
	}
	b = respcmd.AppendBulk(b, "COSTS")
	for i := range pairs {
		b = respcmd.AppendBulk(b, strconv.FormatInt(pairs[i].Cost, 10))
	}
	if peek {
		b = respcmd.AppendBulk(b, "PEEK")
	}
	return b
}

// verdicts are what RL.TAKE has answered for n pairs, or an error.
func verdicts(r reply, n int) (limited bool, list []Verdict, err error) {
	if r.kind == '-' {
		return false, nil, Error(r.text)
	}
	if r.kind != '*' || len(r.list) < 3 || len(r.list[2].list) != n {
		return false, nil, errReply
	}
	for _, five := range r.list[2].list {
		if len(five.list) < 5 {
			return false, nil, errReply
		}
		v := five.list
		list = append(list, Verdict{Limited: v[0].n == 1, Limit: v[1].n, Remaining: v[2].n, RetryAfter: v[3].n, ResetAfter: v[4].n})
	}
	if len(r.list) > 3 && len(r.list[3].list) == n {
		for i, id := range r.list[3].list {
			list[i].Lease = string(id.text)
		}
	}
	return r.list[0].n == 1, list, nil
}
