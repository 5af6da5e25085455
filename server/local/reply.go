package local

import (
	"bytes"
	"errors"
	"strconv"
)

// reply is a reply in Redis's protocol. Only what RL.TAKE, RL.POLICY and AUTH answer with is read.
type reply struct {
	kind byte // + - : $ *
	n    int64
	text []byte // of + - $; nil for null
	list []reply
}

// errReply says that something else than a reply has come, which cannot be.
var errReply = errors.New("a reply cannot be read")

// roomFor is for how many elements of an array there is room at once, which is enough for what is read here.
const roomFor = 8

// maxReplyDepth is how deep the arrays of a reply may lie in each other.
const maxReplyDepth = 4

// readNumber reads a line of a kind that holds a number of at most 18 digits, which is at the start of b.
func readNumber(b []byte, kind byte) (n int64, rest []byte, ok bool) {
	i, negative := 1, false
	if len(b) < 4 || b[0] != kind {
		return 0, b, false
	}
	if b[1] == '-' {
		i, negative = 2, true
	}
	begin := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	if i == begin || i-begin > 18 || i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
		return 0, b, false
	}
	if negative {
		n = -n
	}
	return n, b[i+2:], true
}

// readReply reads the reply at the start of b. whole is false if some of it is still to come.
func readReply(b []byte, depth int) (r reply, rest []byte, whole bool, err error) {
	line, rest, whole := bytes.Cut(b, []byte("\r\n"))
	if !whole {
		return r, b, false, nil
	}
	if len(line) == 0 || depth > maxReplyDepth {
		return r, b, true, errReply
	}
	r.kind = line[0]
	switch r.kind {
	case '+', '-':
		r.text = line[1:]
		return r, rest, true, nil
	case '_':
		return r, rest, true, nil
	}
	if r.n, err = strconv.ParseInt(string(line[1:]), 10, 64); err != nil {
		return r, b, true, errReply
	}
	switch {
	case r.kind == ':', r.n < 0:
		return r, rest, true, nil
	case r.kind == '$':
		if int64(len(rest)) < r.n+2 {
			return r, b, false, nil
		}
		r.text = rest[:r.n]
		return r, rest[r.n+2:], true, nil
	case r.kind != '*':
		return r, b, true, errReply
	}
	r.list = make([]reply, 0, min(r.n, roomFor))
	for range r.n {
		var element reply
		if element, rest, whole, err = readReply(rest, depth+1); !whole || err != nil {
			return r, b, whole, err
		}
		r.list = append(r.list, element)
	}
	return r, rest, true, nil
}

// readReplies reads n replies. whole is false if some are still to come.
func readReplies(b []byte, n int) (list []reply, whole bool, err error) {
	for range n {
		var r reply
		if r, b, whole, err = readReply(b, 0); !whole || err != nil {
			return nil, whole, err
		}
		list = append(list, r)
	}
	return list, true, nil
}
