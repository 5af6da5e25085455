package harness

import (
	"fmt"
	"strconv"
	"strings"
)

// SplitWords splits a line of a test's script at spaces. "…" takes Go's escapes, '…' takes none, and quoted and plain parts that touch make one word.
func SplitWords(line string) ([]string, error) {
	var words []string
	for i := 0; i < len(line); {
		if line[i] == ' ' {
			i++
			continue
		}
		var word strings.Builder
		for i < len(line) && line[i] != ' ' {
			n, err := TakePart(line[i:], &word)
			if err != nil {
				return nil, err
			}
			i += n
		}
		words = append(words, word.String())
	}
	return words, nil
}

// TakePart moves one quoted string or one plain byte from text to word, and returns how much of text it was.
func TakePart(text string, word *strings.Builder) (int, error) {
	switch text[0] {
	case '\'':
		end := strings.IndexByte(text[1:], '\'')
		if end < 0 {
			return 0, fmt.Errorf("unbalanced '")
		}
		word.WriteString(text[1 : 1+end])
		return end + 2, nil
	case '"':
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return 0, fmt.Errorf("bad string: %w", err)
		}
		plain, err := strconv.Unquote(quoted)
		word.WriteString(plain)
		return len(quoted), err
	}
	word.WriteByte(text[0])
	return 1, nil
}
