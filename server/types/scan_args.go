package types

import (
	"strconv"
	"strings"

	"headgate/internal/glob"
	"headgate/server/command"
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
func scanCursor(c *command.Ctx, i int) (cursor uint64, ok bool) {
	text := string(c.Args[i])
	if text == "" {
		return 0, true
	}
	digits := text
	if text[0] == '-' || text[0] == '+' {
		digits = text[1:]
	}
	cursor, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		c.Err(command.ErrInvalidCursor)
		return 0, false
	}
	if text[0] == '-' {
		cursor = -cursor
	}
	return cursor, true
}

// parseScanOptions parses MATCH, COUNT and, if the command is SCAN itself, TYPE from args[i] on, or sends the error and returns false.
func parseScanOptions(c *command.Ctx, i int, withType bool) (o scanOptions, ok bool) {
	o.count = scanCountDefault
	for ; i < len(c.Args); i += 2 {
		switch {
		case i+1 == len(c.Args):
			c.Err(command.ErrSyntax)
			return o, false
		case c.Is(i, "COUNT"):
			n, ok := c.Integer(i + 1)
			if !ok {
				return o, false
			}
			if n < 1 {
				c.Err(command.ErrSyntax)
				return o, false
			}
			o.count = int(n)
		case c.Is(i, "MATCH"):
			if o.pattern = c.Args[i+1]; string(o.pattern) == "*" {
				o.pattern = nil
			}
		case withType && c.Is(i, "TYPE"):
			o.kind = strings.ToLower(string(c.Args[i+1]))
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
	}
	return o, true
}

// elementOptions parses the options of HSCAN and its like, or returns false when the command is answered: with an error, or for a
// missing key with nothing, even if its options are wrong.
func elementOptions(c *command.Ctx, found bool) (o scanOptions, ok bool) {
	if !found {
		sendScan(c, 0, nil)
		return o, false
	}
	return parseScanOptions(c, 3, false)
}

// matches reports whether an element of this name is to be shown.
func (o *scanOptions) matches(name []byte) bool {
	return o.pattern == nil || glob.Match(o.pattern, name, false)
}

// sendScan sends what SCAN and its like answer: the next cursor, and the elements.
func sendScan(c *command.Ctx, next uint64, elements [][]byte) {
	c.Scratch = strconv.AppendUint(c.Scratch[:0], next, 10)
	c.Reply.Array(2)
	c.Reply.Bulk(c.Scratch)
	c.Reply.Array(len(elements))
	for _, e := range elements {
		c.Reply.Bulk(e)
	}
}
