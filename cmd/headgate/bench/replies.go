package bench

import (
	"bytes"
	"errors"
	"fmt"
)

// replies counts whole replies in a stream of RESP2 without keeping any, and picks out the integer that a verdict asks for.
type replies struct {
	verdict
	perOp int // replies of an operation

	state  replyState
	kind   byte
	number int64
	minus  bool
	digits int
	bulk   int64 // bytes still to come, CRLF included
	depth  int
	left   [maxDepth]int64 // elements still to come, by depth
	index  int64           // of the element of the outermost array that is being read
	nth    int             // of the operation's replies is being read
	text   []byte          // of an error
	count  tally
}

type replyState uint8

const (
	atType replyState = iota
	inNumber
	inLine
	inBulk
)

// tally is what replies have said.
type tally struct {
	ops, allowed, limited, errors uint64
	firstError                    string
}

func (t *tally) add(other *tally) {
	t.ops += other.ops
	t.allowed += other.allowed
	t.limited += other.limited
	t.errors += other.errors
	if t.firstError == "" {
		t.firstError = other.firstError
	}
}

// maxDigits are those of a 64-bit number.
const maxDigits = 19

// read goes over what has come and returns how many operations are now complete.
func (r *replies) read(b []byte) (ops int, err error) {
	for i := 0; i < len(b); {
		switch r.state {
		case atType:
			if err := r.begin(b[i]); err != nil {
				return ops, err
			}
			i++
		case inNumber:
			ch := b[i]
			i++
			switch {
			case ch == '\n':
				ops += r.numberRead()
				if r.depth > maxDepth {
					return ops, fmt.Errorf("a reply is nested deeper than %d", maxDepth)
				}
			case ch == '-':
				r.minus = true
			case ch >= '0' && ch <= '9':
				r.number = r.number*10 + int64(ch-'0')
				if r.digits++; r.digits > maxDigits {
					return ops, errors.New("a number in a reply is too long")
				}
			case ch != '\r':
				return ops, fmt.Errorf("%q where a number of a reply should be", ch)
			}
		case inLine:
			end := bytes.IndexByte(b[i:], '\n')
			line := b[i:]
			if end >= 0 {
				line = b[i : i+end]
			}
			if r.kind == '-' && r.count.firstError == "" && len(r.text) < maxErrorText {
				r.text = append(r.text, line[:min(len(line), maxErrorText-len(r.text))]...)
			}
			i += len(line)
			if end >= 0 {
				i++
				if r.kind == '-' && r.count.firstError == "" {
					r.count.firstError = string(bytes.TrimSpace(r.text))
				}
				ops += r.ended()
			}
		case inBulk:
			n := min(int64(len(b)-i), r.bulk)
			i += int(n)
			if r.bulk -= n; r.bulk == 0 {
				ops += r.ended()
			}
		}
	}
	return ops, nil
}

// begin takes a reply's first byte.
func (r *replies) begin(kind byte) error {
	r.kind, r.number, r.minus, r.digits = kind, 0, false, 0
	switch kind {
	case ':', '$', '*':
		r.state = inNumber
	case '+':
		r.state = inLine
	case '-':
		r.count.errors++
		r.state = inLine
	default:
		return fmt.Errorf("%q where a reply should begin: is this a server that speaks the Redis protocol?", kind)
	}
	return nil
}

// numberRead takes the line of an integer, or the length of what follows.
func (r *replies) numberRead() (ops int) {
	v := r.number
	if r.minus {
		v = -v
	}
	switch {
	case r.kind == ':':
		r.judge(v)
		return r.ended()
	case r.kind == '$' && v >= 0:
		r.bulk, r.state = v+2, inBulk
		return 0
	case r.kind == '*' && v > 0:
		if r.depth < maxDepth {
			r.left[r.depth] = v
		}
		if r.depth == 0 {
			r.index = 0
		}
		r.depth++
		r.state = atType
		return 0
	default:
		return r.ended()
	}
}

// judge looks at an integer, which may be the one that tells allowed from limited.
func (r *replies) judge(v int64) {
	if !r.known || r.reply != r.nth {
		return
	}
	if r.element < 0 && r.depth == 0 || r.depth == 1 && int64(r.element) == r.index {
		if v >= r.min && v <= r.max {
			r.count.limited++
		} else {
			r.count.allowed++
		}
	}
}

// ended closes a reply, and the arrays of which it was the last element.
func (r *replies) ended() (ops int) {
	r.state = atType
	for r.depth > 0 {
		if r.depth == 1 {
			r.index++
		}
		if r.left[r.depth-1]--; r.left[r.depth-1] > 0 {
			return 0
		}
		r.depth--
	}
	if r.nth++; r.nth == r.perOp {
		r.nth = 0
		r.count.ops++
		return 1
	}
	return 0
}
