package simulate

import "bytes"

// haproxy is what HAProxy writes with `option httplog`, with or without what syslog puts before it.
type haproxy struct{ at []int }

// The fields of haproxy. Those that others have too have nginx's names.
const (
	haproxyAddr = iota
	haproxyFrontend
	haproxyBackend
	haproxyServer
	haproxyStatus
	haproxyBytes
	haproxyState
	haproxyRequest
	haproxyMethod
	haproxyRequestURI
	haproxyURI
	haproxyProtocol
	haproxyHeaders
	haproxyCount
)

var haproxyNames = []string{
	haproxyAddr: "remote_addr", haproxyFrontend: "frontend", haproxyBackend: "backend", haproxyServer: "server", haproxyStatus: "status",
	haproxyBytes: "bytes_sent", haproxyState: "termination_state", haproxyRequest: "request", haproxyMethod: "request_method",
	haproxyRequestURI: "request_uri", haproxyURI: "uri", haproxyProtocol: "server_protocol", haproxyHeaders: "captured_request_headers",
}

func newHAProxy(wanted []string) (format, error) {
	at, err := places(haproxyFormat, haproxyNames, wanted)
	return &haproxy{at: at}, err
}

// acceptDate is where the date begins: the first bracket that is followed by the day and a slash.
func acceptDate(line []byte) int {
	for from := 0; ; {
		i := bytes.Index(line[from:], []byte(" ["))
		if i < 0 {
			return -1
		}
		if i += from; len(line) > i+4 && line[i+4] == '/' {
			return i
		}
		from = i + 2
	}
}

func (h *haproxy) parse(line []byte, r *record) (ok bool) {
	var f [haproxyCount][]byte
	open := acceptDate(line)
	if open < 1 {
		return false
	}
	client := line[bytes.LastIndexByte(line[:open], ' ')+1 : open]
	port := bytes.LastIndexByte(client, ':')
	if port < 1 {
		return false
	}
	f[haproxyAddr] = client[:port]
	date, rest, ok := bytes.Cut(line[open+2:], []byte("] "))
	if !ok {
		return false
	}
	if r.ns, ok = parseTime(date); !ok {
		return false
	}
	f[haproxyFrontend], rest = word(rest)
	f[haproxyFrontend] = bytes.TrimSuffix(f[haproxyFrontend], []byte("~")) // which says that it speaks TLS
	var target, timers []byte
	target, rest = word(rest)
	f[haproxyBackend], f[haproxyServer], _ = bytes.Cut(target, []byte("/"))
	timers, rest = word(rest)
	if bytes.Count(timers, []byte("/")) != 4 {
		return false
	}
	f[haproxyStatus], rest = word(rest)
	f[haproxyBytes], rest = word(rest)
	_, rest = word(rest) // the captured cookies
	_, rest = word(rest)
	f[haproxyState], rest = word(rest)
	before, _, _ := bytes.Cut(rest, []byte(` "`))
	if _, headers, ok := bytes.Cut(before, []byte("{")); ok {
		f[haproxyHeaders], _, _ = bytes.Cut(headers, []byte("}"))
	}
	// The request is last. It may have quotes of its own, or have been cut.
	if len(rest) < len(before)+2 {
		return false
	}
	f[haproxyRequest] = bytes.TrimSuffix(rest[len(before)+2:], []byte(`"`))
	f[haproxyMethod], f[haproxyRequestURI], f[haproxyURI], f[haproxyProtocol] = requestLine(f[haproxyRequest])
	r.pick(f[:], h.at)
	return true
}
