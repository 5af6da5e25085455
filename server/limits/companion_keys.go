package limits

import (
	"bytes"
	"strings"

	"headgate/server/limiter"
	"headgate/store"
)

// What a policy has for single keys is kept beside these keys, in strings of their own, which the names of the policy and of the key name. The hash tag of
// the key comes first, so that in a cluster they lie in the same slot:
//
//	rl:block:{tag}:policy:key   key has a hash tag
//	rl:block:{key}:policy       key has none, and so is its tag as a whole
//	rl:block::policy:key        key has none and cannot be one, since there is a brace } in it or nothing at all
//
// A colon in the policy's name becomes a semicolon, which no name has. So no two pairs of a policy and a key have the same name, whatever keys strangers
// make up.

const (
	// BlockPrefix begins the names of blocks.
	BlockPrefix = "rl:block:"
	// OverridePrefix begins the names of overrides.
	OverridePrefix = "rl:override:"
	// KeptPrefix begins the names of all that the server keeps for limiters.
	KeptPrefix = "rl:"
)

// appendBeside appends the name of what a policy has for a key.
func appendBeside(dst []byte, prefix, policy string, key []byte) []byte {
	dst = append(dst, prefix...)
	tag := hashTag(key)
	whole := len(tag) == len(key)
	switch {
	case whole && (len(key) == 0 || bytes.IndexByte(key, '}') >= 0):
		dst = appendPolicyName(append(dst, ':'), policy)
	default:
		dst = append(append(dst, '{'), tag...)
		dst = appendPolicyName(append(dst, "}:"...), policy)
		if whole {
			return dst
		}
	}
	return append(append(dst, ':'), key...)
}

// appendPolicyName appends a policy's name as it stands in names of keys.
func appendPolicyName(dst []byte, policy string) []byte {
	n := len(dst)
	dst = append(dst, policy...)
	swap(dst[n:], ':', ';')
	return dst
}

// swap replaces a byte by another one.
func swap(b []byte, old, by byte) {
	for i := range b {
		if b[i] == old {
			b[i] = by
		}
	}
}

// hashTag is the part of a key by which a cluster chooses its slot: what stands in its first braces, or all of it if nothing does.
func hashTag(key []byte) []byte {
	if begin := bytes.IndexByte(key, '{'); begin >= 0 {
		if n := bytes.IndexByte(key[begin+1:], '}'); n > 0 {
			return key[begin+1 : begin+1+n]
		}
	}
	return key
}

// splitBeside takes a name that begins with prefix apart, as appendBeside has made it. The policy is as it stands there.
func splitBeside(prefix string, name []byte) (policy, key []byte, ok bool) {
	rest := name[len(prefix):]
	if len(rest) == 0 {
		return nil, nil, false
	}
	tag := []byte(nil)
	if rest[0] == '{' {
		end := bytes.IndexByte(rest, '}')
		if end < 0 {
			return nil, nil, false
		}
		tag, rest = rest[1:end], rest[end+1:]
	}
	if len(rest) == 0 || rest[0] != ':' {
		return nil, nil, false
	}
	policy, key, both := bytes.Cut(rest[1:], []byte(":"))
	switch {
	case !both && tag == nil:
		return nil, nil, false
	case !both:
		key = tag
	}
	return policy, key, true
}

// besideOf returns which policy and key a name is for that appendBeside has made, or ok false for any other.
func besideOf(prefix string, name []byte) (policy string, key []byte, ok bool) {
	if !begins(name, prefix) {
		return "", nil, false
	}
	kept, key, ok := splitBeside(prefix, name)
	if !ok {
		return "", nil, false
	}
	policy = strings.ReplaceAll(string(kept), ";", ":")
	return policy, key, bytes.Equal(appendBeside(nil, prefix, policy, key), name)
}

// keptPrefixes are those of what policies have for single keys.
var keptPrefixes = [...]string{BlockPrefix, OverridePrefix}

// LabelledPrefixes returns how the names begin that [Label] knows.
func LabelledPrefixes() []string { return append(keptPrefixes[:], ReservationPrefix) }

// keptNext are the bytes that follow KeptPrefix in the names that the server keeps. Clients use that prefix, too.
var keptNext = func() (next [256]bool) {
	for _, name := range append(LabelledPrefixes(), PoliciesKey) {
		next[name[len(KeptPrefix)]] = true
	}
	return next
}()

// Label appends to dst what the server counts a key as that it keeps for limiters: the beginning of its name, and the policy if it has one. It leaves dst as
// it is for any other key. It is for [store.Keyspace.Reserve], and pure.
func Label(dst, name []byte) []byte {
	if isReservationKey(name) {
		return append(dst, ReservationPrefix...)
	}
	for _, prefix := range keptPrefixes {
		if !begins(name, prefix) {
			continue
		}
		policy, _, ok := splitBeside(prefix, name)
		if !ok {
			return dst
		}
		labelled := append(append(dst, prefix...), policy...)
		swap(labelled[len(dst)+len(prefix):], ';', ':')
		if limiter.CheckName(labelled[len(dst)+len(prefix):]) != nil {
			return dst
		}
		return labelled
	}
	return dst
}

// keptByServer reports whether a key's name is one under which the server keeps what is no limiter's state. That goes for all databases:
// SWAPDB may move the key.
func keptByServer(name []byte) bool {
	if len(name) <= len(KeptPrefix) || !keptNext[name[len(KeptPrefix)]] || !begins(name, KeptPrefix) {
		return false
	}
	for _, prefix := range keptPrefixes {
		if begins(name, prefix) {
			return true
		}
	}
	return string(name) == PoliciesKey || isReservationKey(name)
}

// begins reports whether a name begins with prefix.
func begins(name []byte, prefix string) bool {
	return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix
}

// beside returns the key of what a policy has for a key. It is valid until the next call.
func (l *Limits) beside(prefix, policy string, key []byte) store.Key {
	l.name = appendBeside(l.name[:0], prefix, policy, key)
	return l.Keys.Key(l.name)
}
