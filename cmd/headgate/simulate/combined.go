package simulate

import "bytes"

// combined is the format of nginx and Apache that both call combined, and Apache's common, which lacks its end. What comes behind is not
// read.
type combined struct{ at []int }

// The fields of combined, by nginx's names.
const (
	combinedAddr = iota
	combinedUser
	combinedTime
	combinedRequest
	combinedMethod
	combinedRequestURI
	combinedURI
	combinedProtocol
	combinedStatus
	combinedBytes
	combinedReferer
	combinedAgent
	combinedCount
)

var combinedNames = []string{
	combinedAddr: "remote_addr", combinedUser: "remote_user", combinedTime: "time_local", combinedRequest: "request",
	combinedMethod: "request_method", combinedRequestURI: "request_uri", combinedURI: "uri", combinedProtocol: "server_protocol",
	combinedStatus: "status", combinedBytes: "body_bytes_sent", combinedReferer: "http_referer", combinedAgent: "http_user_agent",
}

func newCombined(wanted []string) (format, error) {
	at, err := places(combinedFormat, combinedNames, wanted)
	return &combined{at: at}, err
}

func (c *combined) parse(line []byte, r *record) (ok bool) {
	var f [combinedCount][]byte
	var rest []byte
	f[combinedAddr], rest, ok = bytes.Cut(line, []byte(" "))
	open := bytes.Index(rest, []byte(" ["))
	if !ok || open < 0 || len(f[combinedAddr]) == 0 {
		return false
	}
	_, f[combinedUser], _ = bytes.Cut(rest[:open], []byte(" "))
	rest = rest[open+2:]
	end := bytes.IndexByte(rest, ']')
	if end < 0 || len(rest) < end+2 || rest[end+1] != ' ' {
		return false
	}
	f[combinedTime], rest = rest[:end], rest[end+2:]
	if r.ns, ok = parseTime(f[combinedTime]); !ok {
		return false
	}
	if f[combinedRequest], rest, ok = quotedField(rest); !ok {
		return false
	}
	f[combinedMethod], f[combinedRequestURI], f[combinedURI], f[combinedProtocol] = requestLine(f[combinedRequest])
	f[combinedStatus], rest = word(rest)
	if _, ok = digits(f[combinedStatus]); !ok {
		return false
	}
	f[combinedBytes], rest = word(rest)
	if f[combinedReferer], rest, ok = quotedField(rest); ok {
		f[combinedAgent], _, _ = quotedField(rest)
	}
	r.pick(f[:], c.at)
	return true
}

// word cuts the next word off.
func word(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " ")
	word, rest, _ = bytes.Cut(b, []byte(" "))
	return word, rest
}

// quotedField cuts off what stands between quotes, in which a backslash takes the meaning from the byte behind it. What is within stays as
// it is written.
func quotedField(b []byte) (field, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " ")
	if len(b) == 0 || b[0] != '"' {
		return nil, b, false
	}
	b = b[1:]
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '"')
		if i < 0 {
			return nil, nil, false
		}
		i += from
		backslashes := 0
		for backslashes < i && b[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return b[:i], b[i+1:], true
		}
		from = i + 1
	}
}

// requestLine takes the first line of a request apart; path is what comes before the query.
func requestLine(b []byte) (method, target, path, protocol []byte) {
	method, rest, ok := bytes.Cut(b, []byte(" "))
	if !ok {
		return nil, nil, nil, nil
	}
	target = rest
	if i := bytes.LastIndexByte(rest, ' '); i >= 0 {
		target, protocol = rest[:i], rest[i+1:]
	}
	path, _, _ = bytes.Cut(target, []byte("?"))
	return method, target, path, protocol
}
