// Package spelling finds the known word that a mistyped one most likely means.
package spelling

// maxLength is the length, in bytes, above which a word is not compared: no known one comes near it.
const maxLength = 64

// Nearest returns the one of known that word most likely means, or "" if none is close: if it takes more than one change of a letter and
// more than a third of the word's letters, or all of them. Two letters in the wrong order are one change. The comparison tells upper from lower case. Of equally close ones the first is taken.
func Nearest(word string, known ...string) string {
	if len(word) > maxLength {
		return ""
	}
	best, closest := "", min(max(1, len(word)/3)+1, len(word))
	for _, k := range known {
		if len(k)-len(word) >= closest || len(word)-len(k) >= closest {
			continue
		}
		if d := distance(word, k); d < closest {
			best, closest = k, d
		}
	}
	return best
}

// distance is the fewest insertions, deletions and replacements of bytes, and exchanges of two neighbours, that turn a into b. It keeps three rows of
// the Wagner-Fischer table.
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			replace := above[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
