package cjson

import (
	"strings"
	"unicode/utf8"

	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
)

// kind says what a token is, or why there is none.
type kind int

const (
	objectBegin kind = iota + 1
	objectEnd
	arrayBegin
	arrayEnd
	textToken
	numberToken
	boolToken
	nullToken
	colon
	comma
	end

	// What is no token:
	invalidToken
	invalidNumber
	invalidEscape
	invalidUnicode
	unfinishedText
)

// String returns what messages call the kind.
func (k kind) String() string {
	return [...]string{
		objectBegin: "T_OBJ_BEGIN", objectEnd: "T_OBJ_END", arrayBegin: "T_ARR_BEGIN", arrayEnd: "T_ARR_END",
		textToken: "T_STRING", numberToken: "T_NUMBER", boolToken: "T_BOOLEAN", nullToken: "T_NULL",
		colon: "T_COLON", comma: "T_COMMA", end: "T_END",
		invalidToken: "invalid token", invalidNumber: "invalid number", invalidEscape: "invalid escape code",
		invalidUnicode: "invalid unicode escape code", unfinishedText: "unexpected end of string",
	}[k]
}

// token is a token of the input, or the reason why there is none.
type token struct {
	kind   kind
	at     int // where it begins, or where it goes wrong
	text   string
	number float64
	truth  bool
}

// peek returns the byte at i, and NUL at the end of the input, which NUL
// means anyway.
func (d *decoder) peek(i int) byte {
	if i < len(d.input) {
		return d.input[i]
	}
	return 0
}

// next reads a token. The position stays where it is at the end and at errors.
func (d *decoder) next() (t token) {
	start := d.at
	for c := d.peek(d.at); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = d.peek(d.at) {
		d.at++
	}
	d.budget.Spend(1 + int64(d.at-start)/8)
	t.at = d.at
	c := d.peek(d.at)
	if t.kind = punctuation(c); t.kind != 0 {
		if t.kind != end {
			d.at++
		}
		return t
	}
	switch {
	case c == '"':
		d.string(&t)
	case c == '-' || isDecimal(c):
		if !d.decodeInvalid && d.isInvalidNumber() {
			t.kind = invalidNumber
			return t
		}
		d.number(&t)
	case d.skip("true"):
		t.kind, t.truth = boolToken, true
	case d.skip("false"):
		t.kind = boolToken
	case d.skip("null"):
		t.kind = nullToken
	case strings.IndexByte("+iInN", c) >= 0 && d.decodeInvalid && d.isInvalidNumber():
		d.number(&t)
	default:
		t.kind = invalidToken
	}
	return t
}

// punctuation returns the kind of a token of one character, and 0 for others.
func punctuation(c byte) kind {
	switch c {
	case '{':
		return objectBegin
	case '}':
		return objectEnd
	case '[':
		return arrayBegin
	case ']':
		return arrayEnd
	case ':':
		return colon
	case ',':
		return comma
	case 0:
		return end
	}
	return 0
}

// skip takes a word if it comes next.
func (d *decoder) skip(word string) bool {
	if !strings.HasPrefix(d.input[d.at:], word) {
		return false
	}
	d.at += len(word)
	return true
}

// isInvalidNumber reports whether what comes next is a number that JSON does
// not have. What is no number at all may pass.
func (d *decoder) isInvalidNumber() bool {
	i := d.at
	switch d.peek(i) {
	case '+':
		return true
	case '-':
		i++
	}
	c, following := d.peek(i), d.peek(i+1)
	if c == '0' {
		return following|0x20 == 'x' || isDecimal(following)
	}
	if c <= '9' {
		return false
	}
	rest := d.input[min(i, len(d.input)):]
	return hasPrefixFold(rest, "inf") || hasPrefixFold(rest, "nan")
}

func (d *decoder) number(t *token) {
	value, size, steps := luanum.ParsePrefix(d.input[d.at:])
	if size == 0 {
		t.kind = invalidNumber
		return
	}
	d.budget.Spend(int64(size)/8 + int64(steps) - 1) // A token counts one already.
	d.at += size
	t.kind, t.number = numberToken, value
}

// string reads a string: most have no escapes and are part of the input.
func (d *decoder) string(t *token) {
	d.at++
	start := d.at
	for {
		switch d.peek(d.at) {
		case '"':
			t.kind, t.text = textToken, d.keep(d.input[start:d.at])
			d.at++
			return
		case '\\':
			d.unescape(t, d.input[start:d.at])
			return
		case 0:
			t.fail(d, unfinishedText)
			return
		}
		d.at++
	}
}

// keep returns s, a part of the input, for a value.
func (d *decoder) keep(s string) string {
	d.budget.CheckString(d.L, len(s))
	return luacall.Part(d.input, s)
}

// fail makes t the reason why there is no string.
func (t *token) fail(d *decoder, reason kind) {
	d.budget.Spend(int64(d.at-t.at) / 4)
	t.kind, t.at = reason, d.at
}

// unescape reads the rest of a string from its first escape on.
func (d *decoder) unescape(t *token, before string) {
	d.text = append(d.budget.Grow(d.L, d.text[:0], len(before)), before...)
	for {
		d.text = d.budget.Grow(d.L, d.text, utf8.UTFMax)
		switch c := d.peek(d.at); c {
		case '"':
			d.budget.CheckString(d.L, len(d.text))
			t.kind, t.text = textToken, string(d.text)
			d.budget.Spend(int64(len(d.text)) / 8)
			d.at++
			return
		case 0:
			t.fail(d, unfinishedText)
			return
		case '\\':
			if reason := d.escape(); reason != 0 {
				t.fail(d, reason)
				return
			}
		default:
			d.text = append(d.text, c)
			d.at++
		}
	}
}

// escape reads an escape. The reason is 0 unless something is wrong with it.
func (d *decoder) escape() (reason kind) {
	c := d.peek(d.at + 1)
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 't':
		c = '\t'
	case 'n':
		c = '\n'
	case 'f':
		c = '\f'
	case 'r':
		c = '\r'
	case 'u':
		return d.unicode()
	default:
		return invalidEscape
	}
	d.text = append(d.text, c)
	d.at += 2
	return 0
}

// unicode reads \u and four digits, or two of these that make a surrogate pair.
func (d *decoder) unicode() (reason kind) {
	const size = 6
	code, ok := d.codeUnit(d.at)
	if !ok {
		return invalidUnicode
	}
	used := size
	if code&0xf800 == 0xd800 {
		low, ok := d.codeUnit(d.at + size)
		if code&0x400 != 0 || !ok || low&0xfc00 != 0xdc00 {
			return invalidUnicode
		}
		code = 0x10000 + (code&0x3ff<<10 | low&0x3ff)
		used += size
	}
	d.text = utf8.AppendRune(d.text, rune(code))
	d.at += used
	return 0
}

// codeUnit reads \u and four digits at i.
func (d *decoder) codeUnit(i int) (code uint32, ok bool) {
	if d.peek(i) != '\\' || d.peek(i+1) != 'u' {
		return 0, false
	}
	for j := i + 2; j < i+6; j++ {
		c := d.peek(j)
		switch {
		case isDecimal(c):
			code = code<<4 | uint32(c-'0')
		case isHexadecimal(c):
			code = code<<4 | uint32(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return code, true
}
