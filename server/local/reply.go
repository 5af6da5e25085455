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

// maxReplyDepth is how deep the arrays of a reply may lie in each other.
const maxReplyDepth = 4

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
