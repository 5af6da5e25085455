// Package reply reads the replies of a server, in RESP2 or RESP3, and prints them as redis-cli does.
package reply

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of one reply.
const (
	maxDepth = 64
	maxBulk  = 512 << 20 // bytes of one string
	maxItems = 1 << 26   // elements of one aggregate
	maxLine  = 64 << 10  // bytes of a line: a number, a length, a status or an error
	grown    = 64 << 10  // bytes, or elements, for which there is room before any of them have come
)

// Value is one reply. Kind is its RESP type byte. Aggregates hold Items (a map key, value, key, value …), all others Text, which for strings is
// their content; a verbatim string's is without its format.
type Value struct {
	Kind  byte
	Text  string
	Null  bool // $-1, *-1 or _
	Items []Value
}

// Read reads one reply. The error is that of r, or says what is wrong with what it has read.
func Read(r *bufio.Reader) (Value, error) { return read(r, 0) }

func read(r *bufio.Reader, depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, fmt.Errorf("the reply is nested deeper than %d", maxDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return Value{}, err
	}
	if line == "" {
		return Value{}, errors.New("the reply begins with an empty line")
	}
	v := Value{Kind: line[0], Text: line[1:]}
	switch v.Kind {
	case '+', '-', ':', ',', '#', '(':
		return v, nil
	case '_':
		v.Null = true
		return v, nil
	case '$', '=', '!':
		return v, v.readString(r)
	case '*', '~', '>', '%', '|':
		if err := v.readItems(r, depth); err != nil {
			return v, err
		}
		if v.Kind == '|' { // attributes stand before a reply and are not part of it
			return read(r, depth+1)
		}
		return v, nil
	}
	return v, fmt.Errorf("%.60q is no reply", line)
}

// readString reads what follows a length.
func (v *Value) readString(r *bufio.Reader) error {
	n, err := v.length(maxBulk)
	if err != nil || v.Null {
		return err
	}
	var text strings.Builder
	text.Grow(min(n, grown))
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		return unexpected(err)
	}
	if end, err := readLine(r); err != nil || end != "" {
		return errors.Join(errors.New("a string of the reply is longer than its length"), err)
	}
	v.Text = text.String()
	if v.Kind == '=' && len(v.Text) >= 4 {
		v.Text = v.Text[4:]
	}
	return nil
}

func (v *Value) readItems(r *bufio.Reader, depth int) error {
	n, err := v.length(maxItems)
	if err != nil || v.Null {
		return err
	}
	v.Text = ""
	if v.Kind == '%' || v.Kind == '|' {
		n *= 2
	}
	v.Items = make([]Value, 0, min(n, grown))
	for range n {
		item, err := read(r, depth+1)
		if err != nil {
			return unexpected(err)
		}
		v.Items = append(v.Items, item)
	}
	return nil
}

// length reads the number in Text, which is not above limit; -1 makes the value Null.
func (v *Value) length(limit int) (int, error) {
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < -1 || n > limit {
		return 0, fmt.Errorf("%.60q is no length of a reply", v.Text)
	}
	if n == -1 {
		v.Null, v.Text = true, ""
	}
	return n, nil
}

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > 0 {
				err = unexpected(err)
			}
			return "", err
		}
		if len(line) > maxLine {
			return "", fmt.Errorf("a line of the reply is longer than %d bytes", maxLine)
		}
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok {
		return "", fmt.Errorf("%.60q does not end with CRLF", line)
	}
	return text, nil
}

// unexpected is an end of file in the middle of a reply as an error of its own.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
