// Package quoting splits text into words, and quotes them, as Redis does in its configuration file and in rules of ACL users.
//
// A word may be quoted: 'single' knows only \', "double" knows \n \r \t \a \b, \xHH and \ before any other character.
package quoting

import (
	"errors"
	"fmt"
	"strings"
)

// ErrQuotes says that a text cannot be split.
var ErrQuotes = errors.New("unbalanced quotes, or text right behind a closing quote")

func isBlank(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// Split splits a text into words at blanks, and takes quotes off.
func Split(s string) ([]string, error) {
	var words []string
	for i := 0; ; {
		for i < len(s) && isBlank(s[i]) {
			i++
		}
		if i == len(s) {
			return words, nil
		}
		word, n, err := nextWord(s[i:])
		if err != nil {
			return nil, err
		}
		words = append(words, word)
		i += n
	}
}

// nextWord reads the word that s starts with, up to a blank or the end. Quotes may start within a word, but end it.
func nextWord(s string) (word string, length int, err error) {
	var b []byte
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isBlank(c):
			return string(b), i, nil
		case c == '"' || c == '\'':
			unquoted, n, ok := readQuoted(s[i:])
			i += n
			if !ok || i < len(s) && !isBlank(s[i]) {
				return "", 0, ErrQuotes
			}
			return string(append(b, unquoted...)), i, nil
		default:
			b = append(b, c)
			i++
		}
	}
	return string(b), len(s), nil
}

// readQuoted reads the quoted text that s starts with.
func readQuoted(s string) (text []byte, length int, ok bool) {
	quote := s[0]
	for i := 1; i < len(s); {
		switch {
		case s[i] == quote:
			return text, i + 1, true
		case s[i] != '\\' || i+1 == len(s) || quote == '\'' && s[i+1] != '\'':
			text = append(text, s[i])
			i++
		case quote == '"' && s[i+1] == 'x' && i+3 < len(s) && isHex(s[i+2]) && isHex(s[i+3]):
			text = append(text, unhex(s[i+2])<<4|unhex(s[i+3]))
			i += 4
		default:
			text = append(text, unescape(s[i+1]))
			i += 2
		}
	}
	return nil, len(s), false
}

const escapeLetters, escapedBytes = "nrtba", "\n\r\t\b\a"

func unescape(c byte) byte {
	if i := strings.IndexByte(escapeLetters, c); i >= 0 {
		return escapedBytes[i]
	}
	return c
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
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
