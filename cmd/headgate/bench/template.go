package bench

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// field is what stands for a placeholder: so many digits.
type field struct {
	placeholder string
	help        string
	digits      int
	kind        fieldKind
}

type fieldKind uint8

const (
	keyField fieldKind = iota
	nowField
	agoField
	idField
)

// placeholders are what commands may hold. All are numbers of a fixed width, so that filling them in never moves a byte.
var placeholders = []field{
	{"__key__", "the number of a key, one of --keys", 12, keyField},
	{"__rand_int__", "the same; the name is redis-benchmark's", 12, keyField},
	{"__now__", "the time in milliseconds", 13, nowField},
	{"__ago__", "the time a second ago", 13, agoField},
	{"__id__", "a random number", 16, idField},
}

const idRange = 10_000_000_000_000_000 // of __id__

// template is an operation's bytes, with the places of its fields.
type template struct {
	bytes   []byte
	fields  []place
	replies int // that the operation gets
}

type place struct {
	at     int
	digits int
	kind   fieldKind
}

// newTemplate encodes commands.
func newTemplate(commands [][]string) *template {
	t := &template{replies: len(commands)}
	for _, command := range commands {
		t.bytes = append(strconv.AppendInt(append(t.bytes, '*'), int64(len(command)), 10), "\r\n"...)
		for _, arg := range command {
			t.arg(arg)
		}
	}
	return t
}

// arg appends one argument, with zeros for its placeholders.
func (t *template) arg(arg string) {
	var text []byte
	first := len(t.fields)
next:
	for arg != "" {
		for _, f := range placeholders {
			if rest, ok := strings.CutPrefix(arg, f.placeholder); ok {
				t.fields = append(t.fields, place{at: len(text), digits: f.digits, kind: f.kind})
				text = append(text, strings.Repeat("0", f.digits)...)
				arg = rest
				continue next
			}
		}
		text = append(text, arg[0])
		arg = arg[1:]
	}
	t.bytes = append(strconv.AppendInt(append(t.bytes, '$'), int64(len(text)), 10), "\r\n"...)
	for i := range t.fields[first:] {
		t.fields[first+i].at += len(t.bytes)
	}
	t.bytes = append(append(t.bytes, text...), "\r\n"...)
}

// filler fills templates in. Each loop has its own.
type filler struct {
	random rand.PCG
	keys   uint64
	now    uint64 // Unix ms
}

func newFiller(seed, stream uint64, keys int64) *filler {
	return &filler{random: *rand.NewPCG(seed, stream), keys: uint64(keys)}
}

// tick takes the time that __now__ is until the next tick.
func (f *filler) tick() { f.now = uint64(time.Now().UnixMilli()) }

// fill writes new numbers into one operation's bytes. All keys of an operation are the same one.
func (f *filler) fill(t *template, b []byte) {
	if len(t.fields) == 0 {
		return
	}
	key := f.random.Uint64() % f.keys
	for _, p := range t.fields {
		v := key
		switch p.kind {
		case nowField:
			v = f.now
		case agoField:
			v = f.now - 1000
		case idField:
			v = f.random.Uint64() % idRange
		}
		digits := b[p.at : p.at+p.digits]
		for i := len(digits) - 1; i >= 0; i-- {
			digits[i] = '0' + byte(v%10)
			v /= 10
		}
	}
}
