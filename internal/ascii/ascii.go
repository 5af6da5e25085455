// Package ascii folds the case of words as Redis does: of the letters A to Z, and of no others. Package strings folds all of Unicode, in
// which the Kelvin sign is a k, and what is no UTF-8 at all becomes something else.
//
// All functions are pure and safe for concurrent use.
package ascii

// EqualFold reports whether b is word in any case. word is in upper case.
func EqualFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, x := range b {
		if upper(x) != word[i] {
			return false
		}
	}
	return true
}

// Upper is a name of any bytes in upper case.
func Upper(name string) string {
	b := []byte(name)
	for i, x := range b {
		b[i] = upper(x)
	}
	return string(b)
}

func upper(x byte) byte {
	if 'a' <= x && x <= 'z' {
		x -= 'a' - 'A'
	}
	return x
}
