// Package quoting splits text into words, and quotes them, as Redis does in its configuration file, in rules of ACL users and in commands
// that a user types into a connection.
//
// A word may be quoted: 'single' knows only \', "double" knows \n \r \t \a \b, \xHH and \ before any other character.
package quoting

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrQuotes says that a text cannot be split.
var ErrQuotes = errors.New("unbalanced quotes, or text right behind a closing quote")

// ErrManyWords says that a text has more words than were to be expected.
var ErrManyWords = errors.New("too many words")

// Split splits a text into words at blanks, and takes quotes off.
func Split(s string) ([]string, error) { return SplitFew(s, math.MaxInt) }

// SplitFew is Split for a text that may be anybody's, and is to have so many words at most: with more it has an error as soon as that is seen.
func SplitFew(s string, most int) ([]string, error) {
	parts, ok := appendWords(nil, []byte(s), most)
	if !ok {
		return nil, ErrQuotes
	}
	if len(parts) > most {
		return nil, ErrManyWords
	}
	var words []string
	for _, part := range parts {
		words = append(words, string(part))
	}
	return words, nil
}

// AppendWords appends the words of a line to words. It reports false, and returns words as they were, where Split has an error.
//
// Words without quotes are slices of line. A quoted one is decoded to memory of its own, never in place, so that line can be split again.
func AppendWords(words [][]byte, line []byte) (out [][]byte, ok bool) {
	return appendWords(words, line, math.MaxInt)
}

// appendWords is AppendWords, but ends when out has more words than most.
func appendWords(words [][]byte, line []byte, most int) (out [][]byte, ok bool) {
	out = words
	for i := 0; len(out) <= most; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return out, true
		}
		end := i
		for end < len(line) && !endsWord(line[end]) && line[end] != '"' && line[end] != '\'' {
			end++
		}
		if end == len(line) || endsWord(line[end]) {
			out = append(out, line[i:end:end])
			i = end
			continue
		}
		word := append([]byte{}, line[i:end]...)
		if line[end] == '"' {
			word, i = appendDoubleQuoted(word, line, end+1)
		} else {
			word, i = appendSingleQuoted(word, line, end+1)
		}
		if i == 0 || i < len(line) && !isSpace(line[i]) {
			return words, false
		}
		out = append(out, word)
	}
	return out, true
}

// appendDoubleQuoted decodes what stands from line[i] to the closing double
// quote, with the escapes \n \r \t \b \a and \xHH; any other escaped byte
// stands for itself. It returns the position behind the quote, or 0 when there
// is none.
func appendDoubleQuoted(word, line []byte, i int) (out []byte, behind int) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return word, i + 1
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) && isHex(line[i+3]):
			word = append(word, hexValue(line[i+2])<<4|hexValue(line[i+3]))
			i += 3
		case c == '\\' && i+1 < len(line):
			i++
			word = append(word, unescape(line[i]))
		default:
			word = append(word, c)
		}
	}
	return nil, 0
}

// appendSingleQuoted decodes what stands from line[i] to the closing single
// quote; \' is the only escape. It returns the position behind the quote, or 0
// when there is none.
func appendSingleQuoted(word, line []byte, i int) (out []byte, behind int) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			return word, i + 1
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
			word = append(word, '\'')
		default:
			word = append(word, c)
		}
	}
	return nil, 0
}

const escapeLetters, escapedBytes = "nrtba", "\n\r\t\b\a"

// unescape is the byte that a backslash and c stand for.
func unescape(c byte) byte {
	if i := strings.IndexByte(escapeLetters, c); i >= 0 {
		return escapedBytes[i]
	}
	return c
}

// isSpace is C's isspace: what may stand between words.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// endsWord holds for the bytes that end a word without quotes. The vertical
// tab and the form feed do not, although isSpace holds for them.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// hexValue returns the value of a hexadecimal digit.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&0x0f + 9
}

// Quote writes a word so that Split reads it back as it was.
func Quote(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		c := s[i]
		switch e := strings.IndexByte(escapedBytes, c); {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case e >= 0:
			b = append(b, '\\', escapeLetters[e])
		case c < ' ' || c > '~':
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
