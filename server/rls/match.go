package rls

import (
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// match is the limit of a descriptor, and its key.
type match struct {
	*rule
	key string
}

// find returns the limit of a descriptor, or a match without a rule. A limit that the descriptor brings itself stands before those of the file.
func (r *Rules) find(domain string, d *common.RateLimitDescriptor) (match, error) {
	at := r.domains[domain]
	if at == nil {
		return match{}, nil
	}
	entries := d.GetEntries()
	if own := d.GetLimit(); own != nil {
		unit := rls.RateLimitResponse_RateLimit_Unit(own.GetUnit())
		if units[unit] == 0 {
			return match{}, badRequest("the limit of a descriptor has no unit")
		}
		made := &rule{limit: &rls.RateLimitResponse_RateLimit{RequestsPerUnit: own.GetRequestsPerUnit(), Unit: unit}}
		made.policy, made.kind = written(algorithms[0].word, own.GetRequestsPerUnit(), unit, false)
		made.asked = countedAs(made.policy, domain)
		return match{made, keyOf(domain, entries, nil, made.kind)}, nil
	}
	var shared map[int]string // the patterns whose values share a limit, by the entry's index
	for i, e := range entries {
		next, pattern := at.step(e.GetKey(), e.GetValue())
		if next == nil {
			return match{}, nil
		}
		if next.share && pattern != "" {
			if shared == nil {
				shared = map[int]string{}
			}
			shared[i] = strings.TrimPrefix(pattern, e.GetKey()+"_")
		}
		if i == len(entries)-1 {
			if next.rule == nil {
				return match{}, nil
			}
			return match{next.rule, keyOf(domain, entries, shared, next.rule.kind)}, nil
		}
		at = &next.level
	}
	return match{}, nil
}

// step goes down one level: by key and value, by a wildcard that the two begin with, which is returned, or by the key alone.
func (l *level) step(key, value string) (next *node, pattern string) {
	full := key + "_" + value
	if next = l.next[full]; next != nil {
		return next, ""
	}
	for _, wildcard := range l.wildcards {
		if strings.HasPrefix(full, strings.TrimSuffix(wildcard, "*")) {
			return l.next[wildcard], wildcard
		}
	}
	return l.next[key], ""
}

// maxKey is how long the key of a limit may be, in bytes.
const maxKey = 8 << 10

// keyOf is where the state of a limit is kept: rls:domain|key=value|…|kind.
func keyOf(domain string, entries []*common.RateLimitDescriptor_Entry, shared map[int]string, kind string) string {
	length := len("rls:") + len(domain) + len("|") + len(kind)
	for _, e := range entries {
		length += len("|") + len(e.GetKey()) + len("=") + len(e.GetValue())
	}
	var b strings.Builder
	b.Grow(length) // which is enough where nothing has to be kept apart
	b.WriteString("rls:")
	writeEscaped(&b, domain)
	for i, e := range entries {
		value := e.GetValue()
		if pattern, is := shared[i]; is {
			value = pattern
		}
		b.WriteByte('|')
		writeEscaped(&b, e.GetKey())
		b.WriteByte('=')
		writeEscaped(&b, value)
	}
	b.WriteByte('|')
	b.WriteString(kind)
	return b.String()
}

// writeEscaped writes a part of a key so that the parts stay apart, whatever they hold.
func writeEscaped(b *strings.Builder, part string) {
	for i := range len(part) {
		switch part[i] {
		case '\\', '|', '=':
			b.WriteByte('\\')
		}
		b.WriteByte(part[i])
	}
}

// matches are the limits of a request's descriptors: those that another one replaces are gone.
func (r *Rules) matches(request *rls.RateLimitRequest) ([]match, error) {
	list := make([]match, len(request.GetDescriptors()))
	var replaced map[string]bool
	for i, d := range request.GetDescriptors() {
		if len(d.GetEntries()) > maxDepth {
			return nil, badRequest("a descriptor has more than %d entries", maxDepth)
		}
		m, err := r.find(request.GetDomain(), d)
		if err != nil {
			return nil, err
		}
		if len(m.key) > maxKey {
			return nil, badRequest("a descriptor is longer than %d bytes", maxKey)
		}
		if m.rule != nil && len(m.replaces) > 0 {
			if replaced == nil {
				replaced = map[string]bool{}
			}
			for _, name := range m.replaces {
				replaced[name] = true
			}
		}
		list[i] = m
	}
	for i, m := range list {
		if m.rule != nil && !m.unlimited && m.name != "" && replaced[m.name] {
			list[i] = match{}
		}
	}
	return list, nil
}
