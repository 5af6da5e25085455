package scripted

import (
	"bytes"

	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/server/limiter"
)

// resets is what RL.RESET asks for.
type resets struct {
	keys    [][]byte // different from each other, copied
	numbers []byte   // texts that were found to be numbers, as arguments
	count   int
}

// AskReset is Ask for keys whose states are to be forgotten: of all of them, or of none if one holds what no limiter writes. All are in one slot. How many there
// were is in Forgotten.
func (q *Question) AskReset(dst []byte, keys [][]byte) []byte {
	q.start()
	w := &q.resets
	w.keys, w.numbers, w.count = nil, w.numbers[:0], 0
	for _, key := range keys {
		if string(key) == PoliciesKey {
			w.keys, q.err = nil, limiter.ErrWrongType
			return dst
		}
	}
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if !seen[string(key)] {
			seen[string(key)] = true
			w.keys = append(w.keys, bytes.Clone(key))
		}
	}
	return q.appendReset(dst)
}

// appendReset appends the command.
func (q *Question) appendReset(dst []byte) []byte {
	w := &q.resets
	q.script, q.stage = resetScript, deciding
	dst = appendCall(dst, resetScript, q.Inline, len(w.keys), w.count)
	for _, key := range w.keys {
		dst = respcmd.AppendBulk(dst, key)
	}
	return append(dst, w.numbers...)
}

// Next appends the next command, after an answer that has led to Again.
func (q *Question) Next(dst []byte) []byte {
	if len(q.resets.keys) > 0 {
		return q.appendReset(dst)
	}
	return q.exchange.Next(dst)
}

// resetAnswer takes the reply of reset.lua. A text that is not plainly a number is judged here, and the script then asked again.
func (q *Question) resetAnswer(text []byte) (Outcome, error) {
	w, r := &q.resets, reply{rest: text}
	r.array()
	switch code := r.number(); {
	case r.bad:
		return Done, ErrMalformed
	case code == 0:
		if q.Forgotten = r.number(); r.bad {
			return Done, ErrMalformed
		}
		return Done, nil
	case code == 1:
		return Done, limiter.ErrWrongType
	}
	for range r.array() {
		held := r.text()
		n, ok := number.ParseLongDouble(held)
		if !ok || n.IsInf() {
			return Done, limiter.ErrWrongType
		}
		w.numbers = respcmd.AppendBulk(w.numbers, held)
		w.count++
	}
	if q.tries++; q.tries == maxTries {
		return Done, ErrContended
	}
	return Again, nil
}
