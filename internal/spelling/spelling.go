// Package spelling finds the known word that a mistyped one most likely means.
package spelling

// maxLength is the length, in bytes, above which a word is not compared: no known one comes near it.
const maxLength = 64

// Nearest returns the one of known that word most likely means, or "" if none is close: if it takes more than two changes of a letter and
// more than a third of the word's letters, or all of them. The comparison tells upper from lower case. Of equally close ones the first is taken.
func Nearest(word string, known ...string) string {
	if len(word) > maxLength {
		return ""
	}
	best, closest := "", min(max(2, len(word)/3)+1, len(word))
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

// distance is Levenshtein's: the fewest insertions, deletions and replacements of bytes that turn a into b. It keeps one row of the
// Wagner-Fischer table.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
