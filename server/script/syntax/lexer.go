package syntax

import (
	"strconv"
	"strings"

	"headgate/server/script/lualib/luanum"
)

// kind is the kind of a token: the text of a keyword or an operator, or one of
// those below.
type kind string

const (
	tokenEOF    kind = "<eof>"
	tokenName   kind = "<name>"
	tokenNumber kind = "<number>"
	tokenString kind = "<string>"
)

var keywords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true,
	"for": true, "function": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true,
	"repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

// token is one word of the text.
type token struct {
	kind kind
	// value is the name, the string's contents or the number in digits.
	value string
	line  int
	// start and end are the place of the token in the text.
	start, end int
}

// lexer splits text into tokens, by the rules of Lua 5.1. As in C, it reads one byte ahead of what it has stepped over: at is the length of the text only
// where that ends.
type lexer struct {
	name string
	text string
	at   int
	line int
	// more returns the text with its next piece, or as it is once that is all; see Check. It is nil where text is all there is.
	more func() (string, error)
	// names are those of the text so far, which do not keep all of it in memory.
	names map[string]string
}

// own returns a name that may be kept. Those that come again are the same one.
func (lx *lexer) own(name string) string {
	own, known := lx.names[name]
	if !known {
		own = strings.Clone(name)
		lx.names[own] = own
	}
	return own
}

// nearMax bounds how much of the text a message quotes, in bytes.
const nearMax = 80

// fail gives up with Lua's message about what stands near a token. near is ""
// for a message that quotes nothing.
func (lx *lexer) fail(line int, message, near string) {
	text := lx.name + ":" + strconv.Itoa(line) + ": " + message
	if near != "" {
		if zero := strings.IndexByte(near, 0); zero >= 0 {
			near = near[:zero]
		}
		if len(near) > nearMax {
			near = near[:nearMax]
		}
		text += " near '" + near + "'"
	}
	panic(&Error{text})
}

// has reports whether there is a byte n places ahead, and reads up to it.
func (lx *lexer) has(n int) bool {
	for lx.at+n >= len(lx.text) && lx.more != nil {
		text, err := lx.more()
		if err != nil {
			panic(unread{err})
		}
		if len(text) == len(lx.text) {
			lx.more = nil
		}
		lx.text = text
	}
	return lx.at+n < len(lx.text)
}

// unread is what more has failed with.
type unread struct{ err error }

// peek returns the byte n places ahead, or 0 behind the end.
func (lx *lexer) peek(n int) byte {
	if lx.has(n) {
		return lx.text[lx.at+n]
	}
	return 0
}

// step steps over n bytes.
func (lx *lexer) step(n int) {
	lx.at += n
	lx.has(0)
}

// newline steps over one line break, which may be two bytes.
func (lx *lexer) newline() {
	first := lx.text[lx.at]
	lx.step(1)
	if next := lx.peek(0); (next == '\n' || next == '\r') && next != first {
		lx.step(1)
	}
	lx.line++
}

// skip steps over white space and comments.
func (lx *lexer) skip() {
	for lx.at < len(lx.text) {
		switch c := lx.text[lx.at]; {
		case c == '\n' || c == '\r':
			lx.newline()
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
			lx.step(1)
		case c == '-' && lx.peek(1) == '-':
			lx.step(2)
			if level := lx.longBracket(); level >= 0 {
				lx.longString(level, "unfinished long comment")
				continue
			}
			for lx.at < len(lx.text) && lx.text[lx.at] != '\n' && lx.text[lx.at] != '\r' {
				lx.step(1)
			}
		default:
			return
		}
	}
}

// longBracket returns the number of equals signs between two opening brackets
// that start here, or -1 when none do. It does not step over them.
func (lx *lexer) longBracket() int {
	if lx.peek(0) != '[' {
		return -1
	}
	level := 0
	for lx.peek(1+level) == '=' {
		level++
	}
	if lx.peek(1+level) != '[' {
		return -1
	}
	return level
}

// next returns the token that follows.
func (lx *lexer) next() token {
	lx.skip()
	t := token{line: lx.line, start: lx.at}
	if lx.at == len(lx.text) {
		t.kind = tokenEOF
		t.end = lx.at
		return t
	}
	switch c := lx.text[lx.at]; {
	case isLetter(c):
		for lx.at < len(lx.text) && (isLetter(lx.text[lx.at]) || isDigit(lx.text[lx.at])) {
			lx.step(1)
		}
		t.value = lx.text[t.start:lx.at]
		t.kind = tokenName
		if keywords[t.value] {
			t.kind = kind(t.value)
		}
		t.value = lx.own(t.value)
	case isDigit(c) || c == '.' && isDigit(lx.peek(1)):
		t.kind, t.value = tokenNumber, lx.number()
	case c == '"' || c == '\'':
		t.kind, t.value = tokenString, lx.quoted(c)
		t.line = lx.line
	case c == '[' && lx.longBracket() >= 0:
		t.kind, t.value = tokenString, lx.longString(lx.longBracket(), "unfinished long string")
		t.line = lx.line
	case c == '[' && lx.peek(1) == '=':
		lx.fail(lx.line, "invalid long string delimiter", "[=")
	default:
		t.kind = lx.operator()
	}
	t.end = lx.at
	return t
}

// acceptOne steps over a byte of set. As in C, where a text ends in a zero byte,
// such a byte belongs to every set.
func (lx *lexer) acceptOne(set string) bool {
	if lx.at == len(lx.text) || lx.text[lx.at] != 0 && strings.IndexByte(set, lx.text[lx.at]) < 0 {
		return false
	}
	lx.step(1)
	return true
}

// operator steps over an operator, or any other single byte.
func (lx *lexer) operator() kind {
	first := lx.text[lx.at]
	if first == '.' {
		lx.step(1)
		switch {
		case !lx.acceptOne("."):
			return "."
		case !lx.acceptOne("."):
			return ".."
		}
		return "..."
	}
	for _, op := range [...]string{"==", "~=", "<=", ">="} {
		if first == op[0] && lx.peek(1) == op[1] {
			lx.step(len(op))
			return kind(op)
		}
	}
	lx.step(1)
	return kind(lx.text[lx.at-1 : lx.at])
}

// number steps over a numeral and returns it in decimal.
func (lx *lexer) number() string {
	start := lx.at
	for isDigit(lx.peek(0)) || lx.peek(0) == '.' {
		lx.step(1)
	}
	if lx.acceptOne("Ee") {
		lx.acceptOne("+-")
	}
	for isLetter(lx.peek(0)) || isDigit(lx.peek(0)) {
		lx.step(1)
	}
	text := lx.text[start:lx.at]
	n, ok := luanum.ParseNumber(text)
	if !ok {
		lx.fail(lx.line, "malformed number", text)
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// quoted steps over a string in quotes and returns what it stands for.
func (lx *lexer) quoted(quote byte) string {
	start := lx.at
	lx.step(1)
	var out []byte
	for {
		if lx.at == len(lx.text) {
			lx.fail(lx.line, "unfinished string", string(tokenEOF))
		}
		switch c := lx.text[lx.at]; c {
		case quote:
			lx.step(1)
			return string(out)
		case '\n', '\r':
			lx.fail(lx.line, "unfinished string", lx.text[start:lx.at])
		case '\\':
			lx.step(1)
			out = lx.escape(out, start)
		default:
			out = append(out, c)
			lx.step(1)
		}
	}
}

// escape decodes what follows a backslash.
func (lx *lexer) escape(out []byte, start int) []byte {
	if lx.at == len(lx.text) {
		return out
	}
	c := lx.text[lx.at]
	if i := strings.IndexByte("abfnrtv", c); i >= 0 {
		lx.step(1)
		return append(out, "\a\b\f\n\r\t\v"[i])
	}
	if c == '\n' || c == '\r' {
		lx.newline()
		return append(out, '\n')
	}
	if !isDigit(c) {
		lx.step(1)
		return append(out, c)
	}
	n := 0
	for i := 0; i < 3 && isDigit(lx.peek(0)); i++ {
		n = n*10 + int(lx.text[lx.at]-'0')
		lx.step(1)
	}
	if n > 255 {
		lx.fail(lx.line, "escape sequence too large", lx.text[start:start+1])
	}
	return append(out, byte(n))
}

// longString steps over a string in long brackets of a level and returns its
// contents.
func (lx *lexer) longString(level int, unfinished string) string {
	lx.step(level + 2)
	if c := lx.peek(0); lx.at < len(lx.text) && (c == '\n' || c == '\r') {
		lx.newline()
	}
	closing := "]" + strings.Repeat("=", level) + "]"
	var out []byte
	for {
		if lx.at == len(lx.text) {
			lx.fail(lx.line, unfinished, string(tokenEOF))
		}
		switch c := lx.text[lx.at]; {
		case c == ']' && lx.follows(closing):
			lx.step(len(closing))
			return string(out)
		case c == '\n' || c == '\r':
			lx.newline()
			out = append(out, '\n')
		default:
			out = append(out, c)
			lx.step(1)
		}
	}
}

// follows reports whether the next bytes are those of s.
func (lx *lexer) follows(s string) bool {
	for i := range len(s) {
		if lx.peek(i) != s[i] {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isControl(c byte) bool { return c < ' ' || c == 0x7f }

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
