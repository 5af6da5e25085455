package types

import (
	"bytes"
	"math"
	"strconv"

	"headgate/internal/number"
	"headgate/server/command"
	"headgate/store"
)

// Errors for what streams are given.
const (
	errStreamID         = "ERR Invalid stream ID specified as stream command argument"
	errStreamBothTrims  = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
	errStreamMaxLen     = "ERR The MAXLEN argument must be >= 0."
	errStreamLimit      = "ERR The LIMIT argument must be >= 0."
	errStreamLimitAlone = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
	errStreamLimitExact = "ERR syntax error, LIMIT cannot be used without the special ~ option"
	errStreamNoTrim     = "ERR syntax error, XTRIM must be called with a trimming strategy"
	errStreamStart      = "ERR invalid start ID for the interval"
	errStreamEnd        = "ERR invalid end ID for the interval"
)

// maxStreamIDText is the longest text that can be a stream ID, in bytes.
const maxStreamIDText = 127

// Entries that an XADD or XTRIM with ~ may remove when it gives no LIMIT.
const (
	trimNodes        = 100 // as many full nodes
	trimEntries      = 10_000
	trimEntriesLimit = 1_000_000
)

// streamIDForm says what may stand for a stream ID.
type streamIDForm struct {
	strict     bool   // neither - nor + for the least and the greatest
	missingSeq uint64 // for an ID that is a time only
	anySeq     bool   // ms-* is an ID too
}

// parseStreamID reads an ID: a time, or a time and a number after a hyphen. seqGiven is false for ms-*. What follows a NUL byte
// is ignored, as it is by Redis, which takes the text for one of C's.
func parseStreamID(text []byte, form streamIDForm) (id store.StreamID, seqGiven, ok bool) {
	if len(text) > maxStreamIDText {
		return id, false, false
	}
	text = command.CutAtNUL(text)
	switch {
	case len(text) == 1 && text[0] == '-':
		return id, true, !form.strict
	case len(text) == 1 && text[0] == '+':
		return store.MaxStreamID, true, !form.strict
	}
	ms, seq, both := bytes.Cut(text, []byte("-"))
	if id.MS, ok = parseUnsigned(ms); !ok {
		return id, false, false
	}
	switch {
	case !both:
		id.Seq = form.missingSeq
	case form.anySeq && len(seq) == 1 && seq[0] == '*':
		return id, false, true
	default:
		id.Seq, ok = parseUnsigned(seq)
	}
	return id, true, ok
}

// parseUnsigned reads a whole number of 64 bits. Like Redis it takes what C's strtoull takes, spaces, a plus and zeros in front and
// even a minus, but for the plain form of a negative number.
func parseUnsigned(text []byte) (uint64, bool) {
	if n, ok := number.ParseInt(text); ok {
		return uint64(n), n >= 0
	}
	digits := bytes.TrimLeft(text, " \t\n\v\f\r")
	negative := false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}

// streamIDAt parses args[i] as an ID without special forms, or sends the error and returns false.
func streamIDAt(c *command.Ctx, i int) (store.StreamID, bool) {
	id, _, ok := parseStreamID(c.Args[i], streamIDForm{strict: true})
	if !ok {
		c.Err(errStreamID)
	}
	return id, ok
}

// streamIDs parses args[i] and all behind it as IDs, or sends the error and returns false.
func streamIDs(c *command.Ctx, i int) ([]store.StreamID, bool) {
	ids := make([]store.StreamID, 0, len(c.Args)-i)
	for ; i < len(c.Args); i++ {
		id, ok := streamIDAt(c, i)
		if !ok {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// streamStart parses args[i] as the lower end of a range of IDs, with ( in front if it is not in the range itself, or sends the
// error and returns false.
func streamStart(c *command.Ctx, i int) (store.StreamID, bool) {
	id, exclusive, ok := streamBound(c, i, 0)
	if ok && exclusive {
		if id, ok = id.Next(); !ok {
			c.Err(errStreamStart)
		}
	}
	return id, ok
}

// streamEnd is streamStart for the upper end.
func streamEnd(c *command.Ctx, i int) (store.StreamID, bool) {
	id, exclusive, ok := streamBound(c, i, math.MaxUint64)
	if ok && exclusive {
		if id, ok = id.Previous(); !ok {
			c.Err(errStreamEnd)
		}
	}
	return id, ok
}

func streamBound(c *command.Ctx, i int, missingSeq uint64) (id store.StreamID, exclusive, ok bool) {
	text := c.Args[i]
	if exclusive = len(text) > 1 && text[0] == '('; exclusive {
		text = text[1:]
	}
	id, _, ok = parseStreamID(text, streamIDForm{strict: exclusive, missingSeq: missingSeq})
	if !ok {
		c.Err(errStreamID)
	}
	return id, exclusive, ok
}

// streamAdd is what XADD, and as far as trimming goes XTRIM, is told.
type streamAdd struct {
	noCreate bool
	id       store.StreamID
	idGiven  bool
	seqGiven bool
	trims    bool
	trim     store.StreamTrim
	first    int // argument index of the first field
}

// streamAddArgs parses the options from args[2] on and for XADD the ID behind them, or sends the error and returns false.
func streamAddArgs(c *command.Ctx, adds bool) (o streamAdd, ok bool) {
	limited := false
	i := 2
options:
	for ; i < len(c.Args); i++ {
		more := len(c.Args) - i - 1
		switch {
		case adds && string(c.Args[i]) == "*":
			break options
		case more > 0 && (c.Is(i, "MAXLEN") || c.Is(i, "MINID")):
			if o.trims {
				c.Err(errStreamBothTrims)
				return o, false
			}
			o.trims, o.trim.ByID = true, c.Is(i, "MINID")
			i++
			if more > 1 && (string(c.Args[i]) == "~" || string(c.Args[i]) == "=") {
				o.trim.Approx = c.Args[i][0] == '~'
				i++
			}
			if !streamTrimTo(c, &o.trim, i) {
				return o, false
			}
		case more > 0 && c.Is(i, "LIMIT"):
			i++
			if o.trim.Limit, ok = c.Integer(i); !ok {
				return o, false
			}
			if o.trim.Limit < 0 {
				c.Err(errStreamLimit)
				return o, false
			}
			limited = true
		case adds && c.Is(i, "NOMKSTREAM"):
			o.noCreate = true
		case adds:
			if o.id, o.seqGiven, ok = parseStreamID(c.Args[i], streamIDForm{strict: true, anySeq: true}); !ok {
				c.Err(errStreamID)
				return o, false
			}
			o.idGiven = true
			break options
		default:
			c.Err(command.ErrSyntax)
			return o, false
		}
	}
	o.first = i + 1
	return o, streamLimit(c, &o, adds, limited)
}

// streamTrimTo parses args[i] as what is to be trimmed to, or sends the error and returns false.
func streamTrimTo(c *command.Ctx, t *store.StreamTrim, i int) (ok bool) {
	if t.ByID {
		t.Min, ok = streamIDAt(c, i)
		return ok
	}
	if t.Max, ok = c.Integer(i); ok && t.Max < 0 {
		c.Err(errStreamMaxLen)
		return false
	}
	return ok
}

// streamLimit checks the options against each other and bounds what an approximate trim may remove, or sends the error and returns
// false.
func streamLimit(c *command.Ctx, o *streamAdd, adds, limited bool) bool {
	switch {
	case o.trim.Limit != 0 && !o.trims:
		c.Err(errStreamLimitAlone)
	case !adds && !o.trims:
		c.Err(errStreamNoTrim)
	case c.Repeats(): // in a log Redis has made an approximate trim exact, and left its limit, which means nothing then
		o.trim.Limit = 0
		return true
	case limited && !o.trim.Approx:
		c.Err(errStreamLimitExact)
	default:
		if !limited && o.trim.Approx {
			o.trim.Limit = int64(c.Cfg.StreamNodeMaxEntries) * trimNodes
			if o.trim.Limit <= 0 {
				o.trim.Limit = trimEntries
			}
			o.trim.Limit = min(o.trim.Limit, trimEntriesLimit)
		}
		return true
	}
	return false
}
