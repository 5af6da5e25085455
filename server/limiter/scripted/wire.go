package scripted

import (
	"errors"
	"strings"

	"headgate/internal/number"
	"headgate/internal/respcmd"
	"headgate/server/limiter"
)

// ErrMalformed means that a reply is none that the script gives.
var ErrMalformed = errors.New("scripted: the reply is none of this script's")

// appendNumber appends an argument that is a whole number.
func appendNumber(dst []byte, n int64) []byte {
	var digits [20]byte
	return respcmd.AppendBulk(dst, number.AppendInt(digits[:0], n))
}

// appendCall appends the beginning of a call of a script: with so many keys, of which the caller appends each, and so many arguments, which
// follow these. inline has it name the script by its text.
func appendCall(dst []byte, s *Script, inline bool, keys, args int) []byte {
	dst = respcmd.AppendHeader(dst, '*', int64(3+keys+args))
	if inline {
		dst = respcmd.AppendBulk(respcmd.AppendBulk(dst, "EVAL"), s.Text())
	} else {
		dst = append(dst, s.made().bySHA...)
	}
	return appendNumber(dst, int64(keys))
}

// reply reads a reply in its order. Whoever reads a thing that is not there finds bad set, and nothing.
type reply struct {
	rest []byte
	bad  bool
}

// line returns what stands between a type and the end of its line.
func (r *reply) line() (kind byte, text []byte) {
	for i := 1; i+1 < len(r.rest); i++ {
		if r.rest[i] == '\r' {
			kind, text = r.rest[0], r.rest[1:i]
			r.rest = r.rest[i+2:]
			return kind, text
		}
	}
	r.fail()
	return 0, nil
}

func (r *reply) fail() { r.rest, r.bad = nil, true }

// array returns how many elements follow; none where there is a null.
func (r *reply) array() int {
	if b := r.rest; len(b) >= 4 && b[0] == '*' && b[2] == '\r' && b[1]-'0' <= 9 {
		r.rest = b[4:]
		return int(b[1] - '0')
	}
	kind, text := r.line()
	n, ok := number.ParseInt(text)
	switch {
	case kind == '*' && ok && n <= int64(len(r.rest)):
		return int(max(n, 0))
	case kind == '_' && len(text) == 0:
		return 0
	}
	r.fail()
	return 0
}

// text returns a string or the digits of a number, and nil for a null. It aliases the reply.
func (r *reply) text() []byte {
	if text, rest, ok := shortString(r.rest); ok {
		r.rest = rest
		return text
	}
	kind, text := r.line()
	switch kind {
	case ':':
		return text
	case '_':
		return nil
	case '$':
		n, ok := number.ParseInt(text)
		if ok && n == -1 {
			return nil
		}
		if ok && n >= 0 && n <= int64(len(r.rest))-2 {
			text, r.rest = r.rest[:n:n], r.rest[n+2:]
			return text
		}
	}
	r.fail()
	return nil
}

// shortString is text for a string of up to 99 bytes, as nearly all are.
func shortString(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 5 || b[0] != '$' {
		return nil, nil, false
	}
	n, from := int(b[1]-'0'), 4 // a byte: what is no digit is above 9
	if n > 9 {
		return nil, nil, false
	}
	if digit := int(b[2] - '0'); digit <= 9 {
		if n == 0 {
			return nil, nil, false
		}
		n, from = 10*n+digit, 5
	}
	if b[from-2] != '\r' || len(b) < from+n+2 {
		return nil, nil, false
	}
	return b[from : from+n : from+n], b[from+n+2:], true
}

// digit is number for one that nearly always is a single digit.
func (r *reply) digit() int64 {
	if b := r.rest; len(b) >= 4 && b[0] == ':' && b[2] == '\r' && b[1]-'0' <= 9 {
		r.rest = b[4:]
		return int64(b[1] - '0')
	}
	return r.number()
}

// number returns a whole number, or a string of its digits.
func (r *reply) number() int64 {
	n, ok := number.ParseInt(r.text())
	if !ok {
		r.fail()
	}
	return n
}

// OfUpstream stands behind the code of an error about rights: they are those of the caller's user at the server that was asked, and not those of
// whoever has asked for the call.
const OfUpstream = "upstream: "

// WireError returns the error that a reply is, as a client is to see it, or nil. A server puts around the error of a command that a script
// has called where in the script that was: other servers differ in that, and clients know nothing of scripts here.
func WireError(text []byte) error {
	if len(text) == 0 || text[0] != '-' {
		return nil
	}
	line, _, _ := strings.Cut(string(text[1:]), "\r\n")
	line = bareError(line)
	code, rest, _ := strings.Cut(line, " ")
	if code == "NOPERM" || code == "ERR" && strings.HasPrefix(rest, "The user executing the script ") {
		line = "NOPERM " + OfUpstream + rest
	}
	return limiter.Error(line)
}

// scriptErrors are the beginnings of errors that commands of a script may have.
var scriptErrors = []string{
	"WRONGTYPE ", "OOM ", "READONLY ", "MISCONF ", "NOREPLICAS ", "NOPERM ", "MOVED ", "CLUSTERDOWN ", "ASK ", "TRYAGAIN ", "BUSY ", "LOADING ", "MASTERDOWN ",
}

// bareError is the error of the command that failed.
func bareError(line string) string {
	line, _, _ = strings.Cut(line, " script: ")
	for _, beginning := range scriptErrors {
		if strings.HasPrefix(line, beginning) {
			return line
		}
	}
	_, inside, found := strings.Cut(line, "@user_script")
	if !found {
		return line
	}
	for _, beginning := range scriptErrors {
		if at := strings.Index(inside, beginning); at >= 0 {
			return inside[at:]
		}
	}
	return line
}
