// Package glob matches texts against patterns as KEYS, SCAN, PSUBSCRIBE and
// ACL rules do: the dialect of Redis, bytes not characters.
//
//	?        any one byte
//	*        any bytes, or none
//	[abc]    one of the bytes; [a-c] a range, [^a] any other byte
//	\x       the byte x, also inside brackets
//
// Nothing is an error: brackets may stay open to the end of the pattern, and a
// backslash at the very end stands for itself. As in Redis, an empty text
// matches the empty pattern only, and a range compares bytes as C's signed
// char, so that those above 0x7f come before the others.
package glob

// Match reports whether the whole of text matches pattern; with nocase, the
// letters A to Z match in either case.
//
// It does not recurse and does not allocate. The time is bounded by the
// product of the two lengths, since a mismatch only ever takes back what the
// last asterisk covered: an earlier one could not make a later part of the
// pattern match that this one cannot.
func Match(pattern, text []byte, nocase bool) bool {
	if len(text) == 0 {
		return len(pattern) == 0
	}
	var set classCache
	p, t := 0, 0
	starP, starT := -1, 0 // behind the last asterisk, and the text it leaves
	for t < len(text) {
		if p < len(pattern) {
			if pattern[p] == '*' {
				for p < len(pattern) && pattern[p] == '*' {
					p++
				}
				if p == len(pattern) {
					return true
				}
				starP, starT = p, t
				continue
			}
			if next, ok := matchOne(pattern, p, text[t], nocase, &set); ok {
				p = next
				t++
				continue
			}
		}
		if starP < 0 {
			return false
		}
		starT++
		p, t = starP, starT
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one byte against the element at pattern[p], which is no
// asterisk, and returns where the next element starts.
func matchOne(pattern []byte, p int, c byte, nocase bool, set *classCache) (next int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		if !set.holds(p) {
			set.parse(pattern, p, nocase)
		}
		return set.next, set.has(c)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	if nocase {
		return p + 1, lower(pattern[p]) == lower(c)
	}
	return p + 1, pattern[p] == c
}

// lower is C's tolower in the C locale.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
