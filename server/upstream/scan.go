package upstream

import (
	"bytes"
	"errors"
	"math"

	"headgate/internal/number"
)

var (
	errMalformed = errors.New("it sends bytes that are not RESP")
	errTooDeep   = errors.New("it sends arrays within arrays without end")
)

// scanner finds where replies end in bytes that come piece by piece, of RESP2 and RESP3, without looking at any byte of a long string or
// at anything twice but the beginning of a line. The zero value is ready.
type scanner struct {
	open      []int64 // of each array that has been entered, the outermost first: how many elements are still to come
	bulk      int64   // bytes that are still to come of a string with a length, its line end included
	line      int     // bytes of an unfinished line in which there is no end
	long      bool    // the line is a text, of which more has come than is kept of others
	outOfBand bool    // what is being read, or was read last, is a push, which is no reply
}

// next takes bytes from the front of p, and returns how many, and whether a whole reply or push ends with them. The rest of p, with what
// comes after it, is for the next call.
func (s *scanner) next(p []byte) (n int, whole bool, err error) {
	if s.idle() {
		if n := flat(p); n > 0 {
			s.outOfBand = false
			return n, true, nil
		}
	}
	for {
		if s.bulk > 0 {
			taken := min(s.bulk, int64(len(p)-n))
			n += int(taken)
			if s.bulk -= taken; s.bulk > 0 {
				return n, false, nil
			}
			if s.ended() {
				return n, true, nil
			}
		}
		rest := p[n:]
		if s.long {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return len(p), false, nil
			}
			n += end + 1
			s.long = false
			if s.ended() {
				return n, true, nil
			}
			continue
		}
		end := lineEnd(rest[s.line:])
		if end < 0 {
			switch s.line = len(rest); {
			case s.line <= lineMax:
				return n, false, nil
			case rest[0] != '+' && rest[0] != '-':
				return n, false, errMalformed
			}
			if len(s.open) == 0 {
				s.outOfBand = false
			}
			s.line, s.long = 0, true
			return len(p), false, nil
		}
		line := rest[:s.line+end+1]
		s.line = 0
		n += len(line)
		whole, err := s.header(line)
		if whole || err != nil {
			return n, whole, err
		}
	}
}

// idle reports whether nothing has been read of a reply yet.
func (s *scanner) idle() bool { return s.line == 0 && !s.long && s.bulk == 0 && len(s.open) == 0 }

// flat returns how long the array is with which p begins, if it is whole and what nearly all limiters' scripts answer: a few short strings, digits and
// nulls. Else it returns 0.
func flat(p []byte) int {
	if len(p) < 4 || p[0] != '*' || p[1] < '1' || p[1] > '9' || p[2] != '\r' || p[3] != '\n' {
		return 0
	}
	at := 4
	for range p[1] - '0' {
		if len(p) < at+5 {
			return 0
		}
		switch b := p[at : at+5]; {
		case b[0] == ':' && isDigit(b[1]) && b[2] == '\r' && b[3] == '\n':
			at += 4
		case b[0] != '$':
			return 0
		case isDigit(b[1]) && b[2] == '\r' && b[3] == '\n':
			at += 4 + int(b[1]-'0') + 2
		case isDigit(b[1]) && b[1] > '0' && isDigit(b[2]) && b[3] == '\r' && b[4] == '\n':
			at += 5 + 10*int(b[1]-'0') + int(b[2]-'0') + 2
		case b[1] == '-' && b[2] == '1' && b[3] == '\r' && b[4] == '\n':
			at += 5
		default:
			return 0
		}
	}
	if at > len(p) {
		return 0
	}
	return at
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// lineEnd returns where a line ends, -1 if it does not. Nearly all are short, and not worth a search.
func lineEnd(p []byte) int {
	for i, b := range p[:min(len(p), shortLine)] {
		if b == '\n' {
			return i
		}
	}
	if len(p) <= shortLine {
		return -1
	}
	end := bytes.IndexByte(p[shortLine:], '\n')
	if end < 0 {
		return -1
	}
	return shortLine + end
}

// shortLine is how many bytes of a line are looked at one by one.
const shortLine = 16

// header reads the line with which a value begins, and reports whether a whole reply ends with it.
func (s *scanner) header(line []byte) (whole bool, err error) {
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return false, errMalformed
	}
	if len(s.open) == 0 {
		s.outOfBand = line[0] == '>'
	}
	switch line[0] {
	case '+', '-', ':', ',', '#', '_', '(':
		return s.ended(), nil
	}
	count, ok := int64(line[1])-'0', len(line) == 4
	if !ok || count < 0 || count > 9 { // not a single digit
		count, ok = number.ParseInt(line[1 : len(line)-2])
	}
	if !ok || count < -1 || count > math.MaxInt32 {
		return false, errMalformed
	}
	switch line[0] {
	case '$', '=', '!':
		if count < 0 {
			return s.ended(), nil
		}
		s.bulk = count + 2
		return false, nil
	case '*', '~', '>':
	case '%':
		count *= 2
	case '|': // attributes, and then the value that they describe
		count = 2*max(count, 0) + 1
	default:
		return false, errMalformed
	}
	if count <= 0 {
		return s.ended(), nil
	}
	if len(s.open) == depthMax {
		return false, errTooDeep
	}
	s.open = append(s.open, count)
	return false, nil
}

// ended counts a value that has ended, and those that end with it, and reports whether the whole reply does.
func (s *scanner) ended() bool {
	for len(s.open) > 0 {
		innermost := len(s.open) - 1
		if s.open[innermost]--; s.open[innermost] > 0 {
			return false
		}
		s.open = s.open[:innermost]
	}
	return true
}
