package server

import (
	"strconv"
	"strings"

	"headgate/internal/glob"
)

// scanCountDefault is how many elements a SCAN without COUNT is to show, about.
const scanCountDefault = 10

// scanOptions say what SCAN, or a command of its kind, is to show.
type scanOptions struct {
	count   int    // about how many elements, at least 1
	pattern []byte // only what matches; nil: everything
	kind    string // only keys of this type, in lower case; empty: any
}

// scanCursor parses args[i] as a cursor, or sends the error and returns false. Like C's strtoul it takes one sign, and nothing
// at all for 0.
func (c *Ctx) scanCursor(i int) (cursor uint64, ok bool) {
	text := string(c.args[i])
	if text == "" {
		return 0, true
	}
	digits := text
	if text[0] == '-' || text[0] == '+' {
		digits = text[1:]
	}
	cursor, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		c.err(errInvalidCursor)
		return 0, false
	}
	if text[0] == '-' {
		cursor = -cursor
	}
	return cursor, true
}

// parseScanOptions parses MATCH, COUNT and, if the command is SCAN itself, TYPE from args[i] on, or sends the error and returns false.
func (c *Ctx) parseScanOptions(i int, withType bool) (o scanOptions, ok bool) {
	o.count = scanCountDefault
	for ; i < len(c.args); i += 2 {
		switch {
		case i+1 == len(c.args):
			c.err(errSyntax)
			return o, false
		case c.is(i, "COUNT"):
			n, ok := c.integer(i + 1)
			if !ok {
				return o, false
			}
			if n < 1 {
				c.err(errSyntax)
				return o, false
			}
			o.count = int(n)
		case c.is(i, "MATCH"):
			if o.pattern = c.args[i+1]; string(o.pattern) == "*" {
				o.pattern = nil
			}
		case withType && c.is(i, "TYPE"):
			o.kind = strings.ToLower(string(c.args[i+1]))
		default:
			c.err(errSyntax)
			return o, false
		}
	}
	return o, true
}

// elementOptions parses the options of HSCAN and its like, or returns false when the command is answered: with an error, or for a
// missing key with nothing, even if its options are wrong.
func (c *Ctx) elementOptions(found bool) (o scanOptions, ok bool) {
	if !found {
		c.sendScan(0, nil)
		return o, false
	}
	return c.parseScanOptions(3, false)
}

// matches reports whether an element of this name is to be shown.
func (o *scanOptions) matches(name []byte) bool {
	return o.pattern == nil || glob.Match(o.pattern, name, false)
}

// sendScan sends what SCAN and its like answer: the next cursor, and the elements.
func (c *Ctx) sendScan(next uint64, elements [][]byte) {
	c.scratch = strconv.AppendUint(c.scratch[:0], next, 10)
	c.reply.Array(2)
	c.reply.Bulk(c.scratch)
	c.reply.Array(len(elements))
	for _, e := range elements {
		c.reply.Bulk(e)
	}
}
