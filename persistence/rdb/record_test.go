package rdb

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// record is a Sink that writes down what it is told, one line for each key, and checks what readers promise.
type record struct {
	lines []string
	db    int
	name  string
	parts []string
	seen  map[string]bool // members of the present collection
	kind  string
}

func (r *record) Aux(name, value []byte) error {
	r.lines = append(r.lines, fmt.Sprintf("aux %s", name))
	return nil
}

func (r *record) Function(code []byte) error {
	r.lines = append(r.lines, fmt.Sprintf("function %q", code))
	return nil
}

func (r *record) Database(n int) error             { r.db = n; return nil }
func (r *record) Sizes(keys, expires uint64) error { return nil }

func (r *record) Key(name []byte, expireAt int64) error {
	r.name = fmt.Sprintf("%d %q %d", r.db, name, expireAt)
	return nil
}

func (r *record) begin(kind string) error {
	r.kind, r.parts, r.seen = kind, nil, map[string]bool{}
	return nil
}

func (r *record) once(member []byte) error {
	if r.seen[string(member)] {
		return ErrDuplicate
	}
	r.seen[string(member)] = true
	return nil
}

func (r *record) add(format string, a ...any) error {
	r.parts = append(r.parts, fmt.Sprintf(format, a...))
	return nil
}

func (r *record) Int(n int64) error {
	return r.Text(strconv.AppendInt(nil, n, 10))
}

func (r *record) Text(v []byte) error {
	r.lines = append(r.lines, fmt.Sprintf("%s = %q", r.name, v))
	return nil
}

func (r *record) Hash(int) error { return r.begin("hash") }
func (r *record) Set(int) error  { return r.begin("set") }
func (r *record) ZSet(int) error { return r.begin("zset") }
func (r *record) List(int) error { return r.begin("list") }

func (r *record) Pair(field, value []byte) error {
	if err := r.once(field); err != nil {
		return err
	}
	return r.add("%q=%q", field, value)
}

func (r *record) Member(m []byte) error {
	if err := r.once(m); err != nil {
		return err
	}
	return r.add("%q", m)
}

func (r *record) Scored(m []byte, score float64) error {
	if math.IsNaN(score) {
		panic("NaN told as a score")
	}
	if err := r.once(m); err != nil {
		return err
	}
	return r.add("%q=%x", m, score)
}

func (r *record) Element(v []byte) error { return r.add("%q", v) }

func (r *record) Stream(int) error { return r.begin("stream") }

func (r *record) StreamNode(id StreamID, listpack []byte, live int) error {
	return r.add("node %v %q %d", id, listpack, live)
}

func (r *record) StreamInfo(length int, last, first, maxDeleted StreamID, added uint64) error {
	return r.add("info %d %v %v %v %d", length, last, first, maxDeleted, added)
}

func (r *record) StreamGroup(name []byte, last StreamID, read int64) error {
	return r.add("group %q %v %d", name, last, read)
}

func (r *record) StreamPending(id StreamID, deliveredMs int64, deliveries uint64) error {
	return r.add("pending %v %d %d", id, deliveredMs, deliveries)
}

func (r *record) StreamConsumer(name []byte, seenMs int64) error {
	return r.add("consumer %q %d", name, seenMs)
}

func (r *record) StreamOwned(id StreamID) error { return r.add("owned %v", id) }

func (r *record) End() error {
	r.lines = append(r.lines, fmt.Sprintf("%s %s %s", r.name, r.kind, strings.Join(r.parts, " ")))
	return nil
}
