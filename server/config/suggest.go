package config

// nearest returns the known directive that a mistyped one most likely means, or "" if none is close.
func nearest(name string) string {
	if len(name) > maxSuggestLength {
		return ""
	}
	best, bestDistance := "", max(2, len(name)/3)+1
	consider := func(known string) {
		if d := editDistance(name, known); d < bestDistance {
			best, bestDistance = known, d
		}
	}
	for _, d := range directives {
		for _, known := range d.names() {
			consider(known)
		}
	}
	for _, entry := range ignored {
		consider(entry.Name)
	}
	for _, known := range []string{"include", "loadmodule"} {
		consider(known)
	}
	return best
}

// maxSuggestLength is the length above which a name is not compared: no directive's comes near it.
const maxSuggestLength = 64

// editDistance is Levenshtein's: the fewest insertions, deletions and replacements of bytes that turn a into b. It keeps one row of
// the Wagner-Fischer table.
func editDistance(a, b string) int {
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
