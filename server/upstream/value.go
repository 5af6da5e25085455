package upstream

import (
	"bytes"
	"errors"
	"io"
	"math"

	"headgate/internal/number"
	"headgate/internal/respcmd"
)

// value is a reply to one of this package's own commands.
type value struct {
	kind byte    // the byte with which it begins
	text string  // of a string, number, status or error; "" for a null
	list []value // of an array or a map, names and values in turn
}

func (v value) isError() bool { return v.kind == '-' || v.kind == '!' }

// number returns an integer, 0 if it is none.
func (v value) number() int64 {
	n, _ := number.ParseInt([]byte(v.text))
	return n
}

// field returns what stands behind a name in a map, or in an array of names and values.
func (v value) field(name string) value {
	for i := 0; i+1 < len(v.list); i += 2 {
		if v.list[i].text == name {
			return v.list[i+1]
		}
	}
	return value{}
}

// parseValue reads a value from the front of p, which a scanner has found to be whole, and returns what is behind it. Attributes are left out.
func parseValue(p []byte) (v value, rest []byte) {
	end := bytes.IndexByte(p, '\n')
	line := p[1 : end-1]
	v.kind, rest = p[0], p[end+1:]
	count, _ := number.ParseInt(line)
	switch v.kind {
	case '$', '=', '!':
		if count >= 0 {
			v.text, rest = string(rest[:count]), rest[count+2:]
		}
		return v, rest
	case '%', '|':
		count *= 2
	case '*', '~', '>':
	default:
		v.text = string(line)
		return v, rest
	}
	for range count {
		var element value
		element, rest = parseValue(rest)
		v.list = append(v.list, element)
	}
	if v.kind == '|' {
		return parseValue(rest)
	}
	return v, rest
}

var errTooLong = errors.New("its reply is too long")

// readValues reads so many replies, of at most limit bytes together, behind which nothing may follow.
func readValues(r io.Reader, n int, limit int) (values []value, err error) {
	var s scanner
	var buffer []byte
	chunk := make([]byte, 4096)
	for scanned := 0; len(values) < n; {
		taken, whole, err := s.next(buffer[scanned:])
		if err != nil {
			return values, err
		}
		scanned += taken
		if whole {
			v, _ := parseValue(buffer[:scanned])
			values = append(values, v)
			buffer, scanned = buffer[scanned:], 0
			continue
		}
		if len(buffer) > limit {
			return values, errTooLong
		}
		got, err := r.Read(chunk)
		buffer = append(buffer, chunk[:got]...)
		if err != nil && got == 0 {
			return values, err
		}
	}
	if len(buffer) > 0 {
		return values, errMalformed
	}
	return values, nil
}

// command returns a command's RESP.
func command(args ...string) []byte { return respcmd.Append(nil, args...) }

// firstLine is the first line of a reply as text, without its kind and end, and cut where it is very long.
func firstLine(reply []byte) string {
	line, _, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(line) > 0 {
		line = line[1:]
	}
	return string(line[:min(len(line), detailMax)])
}

// detailMax is how much of a node's error is told on, in bytes.
const detailMax = 256

// never is a time that does not come.
const never = math.MaxInt64
