package httpcheck

import (
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"headgate/server/limiter"
)

// A key may have places that are filled in from the request, for gateways that cannot do so themselves:
//
//	{client}               the address of the gateway's client: the last of X-Forwarded-For, or the peer's where there is no such header
//	{client/64}            the same, an IPv6 address cut to the 64 bits that one customer has
//	{header:NAME}          a header
//	{method} {host} {path} of the request that the gateway asks about, by X-Forwarded-Method, -Host and -Uri, or X-Original-Method and -URI
//	{header:NAME|client}   the first of several that there is
//	{{                     a brace, as hash tags need

// expand fills in the places of a key. A place for which there is nothing is an error: an empty key would have strangers share a limit.
func expand(key string, r *http.Request) (string, error) {
	before, rest, found := strings.Cut(key, "{")
	if !found {
		return key, nil
	}
	var b strings.Builder
	for found {
		b.WriteString(before)
		if behind, literal := strings.CutPrefix(rest, "{"); literal {
			b.WriteByte('{')
			before, rest, found = strings.Cut(behind, "{")
			continue
		}
		place, behind, closed := strings.Cut(rest, "}")
		if !closed {
			return "", badRequest("key %q lacks a closing brace", limiter.Shown(key))
		}
		value, err := fill(place, r)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		before, rest, found = strings.Cut(behind, "{")
	}
	b.WriteString(before)
	return b.String(), nil
}

// fill returns the value of a place: of the first of its alternatives that the request has.
func fill(place string, r *http.Request) (string, error) {
	for name := range strings.SplitSeq(place, "|") {
		value, known := valueOf(name, r)
		switch {
		case strings.EqualFold(name, "header:host"):
			return "", badRequest("key has {%s}, which names whom the gateway asks, use {host} for the host that its client asks for", limiter.Shown(name))
		case !known:
			return "", badRequest("key has {%s}, use {client}, {client/64}, {header:NAME}, {method}, {host} or {path}, and {{ for a brace", limiter.Shown(name))
		case value != "":
			return value, nil
		}
	}
	return "", badRequest("the request has no value for {%s}", limiter.Shown(place))
}

// places are those that have a name of their own.
var places = map[string]func(r *http.Request) string{
	"client":    addressOf,
	"client/64": networkOf,
	"method":    func(r *http.Request) string { return firstOf(r, "X-Forwarded-Method", "X-Original-Method") },
	"host":      func(r *http.Request) string { return firstOf(r, "X-Forwarded-Host") },
	"path":      func(r *http.Request) string { return pathOf(firstOf(r, "X-Forwarded-Uri", "X-Original-URI")) },
}

// valueOf returns what the request has for a name, and whether there is such a name.
func valueOf(name string, r *http.Request) (value string, known bool) {
	if place := places[name]; place != nil {
		return place(r), true
	}
	header, found := strings.CutPrefix(name, "header:")
	return r.Header.Get(header), found && header != ""
}

// addressOf is the client's address, or "" if it is not known.
func addressOf(r *http.Request) string {
	if addr := clientOf(r); addr.IsValid() {
		return addr.String()
	}
	return ""
}

// networkOf is the same, but of an IPv6 address the network of 64 bits that one customer has.
func networkOf(r *http.Request) string {
	addr := clientOf(r)
	if !addr.Is6() {
		return addressOf(r)
	}
	prefix, _ := addr.Prefix(64) // an IPv6 address has 64 bits
	return prefix.String()
}

// firstOf returns the first of some headers that is there, or "".
func firstOf(r *http.Request, headers ...string) string {
	for _, name := range headers {
		if value := r.Header.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// pathOf is the path of a request's target in one form, so that no other spelling of it, and nothing that stands behind it, makes a key of its own.
func pathOf(target string) string {
	target, _, _ = strings.Cut(target, "#")
	name, _, _ := strings.Cut(target, "?")
	if u, err := url.ParseRequestURI(target); err == nil {
		name = u.Path
	}
	if name == "" {
		return ""
	}
	clean := path.Clean(name)
	switch last := name[strings.LastIndexByte(name, '/')+1:]; {
	case clean == "/", last != "" && last != "." && last != "..":
		return clean
	}
	return clean + "/"
}

// clientOf is the address of the client that a gateway asks about: the last one in X-Forwarded-For, which is the gateway's own word, whatever
// stands before it. If that is no address, there is none: all clients of the gateway would share the gateway's. Without the header it is the peer, which
// has none on a Unix socket.
func clientOf(r *http.Request) netip.Addr {
	forwarded := r.Header.Values("X-Forwarded-For")
	if len(forwarded) > 0 {
		last := forwarded[len(forwarded)-1]
		last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		if addr, err := netip.ParseAddr(last); err == nil {
			return addr.Unmap().WithZone("")
		}
		if port, err := netip.ParseAddrPort(last); err == nil {
			return port.Addr().Unmap().WithZone("")
		}
		return netip.Addr{}
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap().WithZone("")
}
