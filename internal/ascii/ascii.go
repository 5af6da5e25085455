// Package ascii folds the case of words as Redis does: only that of the letters A to Z. Package strings folds all of Unicode, where the Kelvin
// sign is a k, and replaces bytes that are not UTF-8.
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
