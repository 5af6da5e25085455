package harness

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

// maxDepth and maxItems bound what the client accepts in one reply.
const (
	maxDepth = 16
	maxItems = 4 << 20
	maxBulk  = 512 << 20
)

// Value is one reply, parsed. Kind is its RESP type byte; aggregates hold Items (a map holds key, value, key, value …),
// all others hold Text, which for a bulk string is its content.
type Value struct {
	Kind  byte
	Text  string
	Null  bool
	Items []Value
}

// Command encodes one command as an array of bulk strings.
func Command(args ...string) []byte {
	out := strconv.AppendInt([]byte{'*'}, int64(len(args)), 10)
	out = append(out, "\r\n"...)
	for _, arg := range args {
		out = strconv.AppendInt(append(out, '$'), int64(len(arg)), 10)
		out = append(append(append(out, "\r\n"...), arg...), "\r\n"...)
	}
	return out
}

// Parse reads one reply from r, in RESP2 or RESP3.
func Parse(r *bufio.Reader) (Value, error) { return parse(r, 0) }

func parse(r *bufio.Reader, depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, fmt.Errorf("a reply nested deeper than %d", maxDepth)
	}
	line, err := readLine(r)
	if err != nil {
		return Value{}, err
	}
	if line == "" {
		return Value{}, fmt.Errorf("an empty line where a reply should begin")
	}
	v := Value{Kind: line[0], Text: line[1:]}
	switch v.Kind {
	case '+', '-', ':', ',', '#', '(':
		return v, nil
	case '_':
		v.Null = true
		return v, nil
	case '$', '=', '!':
		return v, v.readBulk(r)
	case '*', '~', '>', '%', '|':
		return v, v.readItems(r, depth)
	}
	return v, fmt.Errorf("%q is no reply", line)
}

func (v *Value) readBulk(r *bufio.Reader) error {
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < -1 || n > maxBulk {
		return fmt.Errorf("bad bulk length %q", v.Text)
	}
	if n == -1 {
		v.Null, v.Text = true, ""
		return nil
	}
	buf := make([]byte, n+2)
	if _, err := io.ReadFull(r, buf); err != nil {
		return err
	}
	if string(buf[n:]) != "\r\n" {
		return fmt.Errorf("a bulk string without its CRLF")
	}
	v.Text = string(buf[:n])
	return nil
}

func (v *Value) readItems(r *bufio.Reader, depth int) error {
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < -1 || n > maxItems {
		return fmt.Errorf("bad aggregate length %q", v.Text)
	}
	v.Text = ""
	if n == -1 {
		v.Null = true
		return nil
	}
	if v.Kind == '%' || v.Kind == '|' {
		n *= 2
	}
	for range n {
		item, err := parse(r, depth+1)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
	return nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return line, err
	}
	body, ok := strings.CutSuffix(line, "\r\n")
	if !ok {
		return line, fmt.Errorf("%q ends without CRLF", line)
	}
	return body, nil
}

// Append writes v as it came over the wire.
func (v Value) Append(dst []byte) []byte {
	dst = append(dst, v.Kind)
	switch v.Kind {
	case '$', '=', '!':
		if v.Null {
			return append(dst, "-1\r\n"...)
		}
		dst = strconv.AppendInt(dst, int64(len(v.Text)), 10)
		return append(append(append(dst, "\r\n"...), v.Text...), "\r\n"...)
	case '*', '~', '>', '%', '|':
		if v.Null {
			return append(dst, "-1\r\n"...)
		}
		n := len(v.Items)
		if v.Kind == '%' || v.Kind == '|' {
			n /= 2
		}
		dst = append(strconv.AppendInt(dst, int64(n), 10), "\r\n"...)
		for _, item := range v.Items {
			dst = item.Append(dst)
		}
		return dst
	}
	return append(append(dst, v.Text...), "\r\n"...)
}

// Wire is Append into a string.
func (v Value) Wire() string { return string(v.Append(nil)) }

// Strings are the texts of an aggregate's items.
func (v Value) Strings() []string {
	texts := make([]string, len(v.Items))
	for i, item := range v.Items {
		texts[i] = item.Text
	}
	return texts
}

// Flat are the texts of all items, at every depth.
func (v Value) Flat() (texts []string) {
	for _, item := range v.Items {
		if item.Items != nil {
			texts = append(texts, item.Flat()...)
		} else {
			texts = append(texts, item.Text)
		}
	}
	return texts
}

// Sorted returns v with the items of every aggregate in an order of their own; the pairs of a map stay together. With
// pairs, so do those of the outermost array: HGETALL in RESP2.
func (v Value) Sorted(pairs bool) Value {
	items := make([]Value, len(v.Items))
	for i, item := range v.Items {
		items[i] = item.Sorted(false)
	}
	step := 1
	if v.Kind == '%' || v.Kind == '|' || pairs && len(items)%2 == 0 {
		step = 2
	}
	groups := make([]string, 0, len(items)/step)
	byKey := make(map[string][]Value, len(items)/step)
	for i := 0; i+step <= len(items); i += step {
		var key string
		for _, item := range items[i : i+step] {
			key += item.Wire()
		}
		groups = append(groups, key)
		byKey[key] = items[i : i+step]
	}
	sort.Strings(groups)
	v.Items = nil
	for _, key := range groups {
		v.Items = append(v.Items, byKey[key]...)
	}
	return v
}

// Shape is v without its contents: the types and the sizes of aggregates only.
func (v Value) Shape() Value {
	items := make([]Value, len(v.Items))
	for i, item := range v.Items {
		items[i] = item.Shape()
	}
	return Value{Kind: v.Kind, Null: v.Null, Items: items}
}

// CloseInTime is equality but for integers, which may be tolerance apart.
func CloseInTime(a, b Value, tolerance int64) bool {
	if a.Kind != b.Kind || a.Null != b.Null || len(a.Items) != len(b.Items) {
		return false
	}
	for i := range a.Items {
		if !CloseInTime(a.Items[i], b.Items[i], tolerance) {
			return false
		}
	}
	if a.Kind != ':' {
		return a.Text == b.Text
	}
	x, errX := strconv.ParseInt(a.Text, 10, 64)
	y, errY := strconv.ParseInt(b.Text, 10, 64)
	return errX == nil && errY == nil && x-y <= tolerance && y-x <= tolerance
}
