package config

import (
	"errors"
	"fmt"
	"strings"
)

// The syntax of redis.conf: one directive a line, its name and values separated by blanks; empty lines and lines that start with #
// mean nothing. A value may be quoted: 'single' knows only \', "double" knows \n \r \t \a \b, \xHH and \ before any other character.
// A comment cannot follow a directive on its line.

var errQuotes = errors.New("unbalanced quotes, or text right behind a closing quote")

// statement is one directive as it was given: its name and values, and where it came from.
type statement struct {
	where string // "redis.conf:12", "--port" or "HEADGATE_PORT"; starts the operator's error line
	words []string
}

// parseText splits the text of a file into statements. name stands for the file in errors.
func parseText(name, text string) ([]statement, error) {
	var list []statement
	for i, line := range strings.Split(text, "\n") {
		words, err := splitLine(line)
		where := fmt.Sprintf("%s:%d", name, i+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		if len(words) > 0 {
			list = append(list, statement{where: where, words: words})
		}
	}
	return list, nil
}

// splitLine splits one line of a file. A line without a directive has no words.
func splitLine(line string) ([]string, error) {
	line = strings.Trim(line, " \t\r\n")
	if strings.HasPrefix(line, "#") {
		return nil, nil
	}
	return splitWords(line)
}

func isBlank(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// splitWords splits a text into words at blanks, and takes quotes off.
func splitWords(s string) ([]string, error) {
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
				return "", 0, errQuotes
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

// quoteWord writes a value so that splitWords reads it back as it was.
func quoteWord(s string) string {
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

// quoteIfNeeded quotes only what would not be read back as it is.
func quoteIfNeeded(s string) string {
	if words, err := splitLine(s); err == nil && len(words) == 1 && words[0] == s {
		return s
	}
	return quoteWord(s)
}
