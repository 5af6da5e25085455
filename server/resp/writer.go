package resp

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/redcon"

	"headgate/internal/number"
)

// Protocol versions, as HELLO names them.
const (
	RESP2 = 2
	RESP3 = 3
)

// Writer appends the replies of one connection to a byte slice. The zero value
// is empty and writes RESP2. Types that RESP2 lacks are written as Redis
// writes them for RESP2 clients; each method says how. It is not safe for
// concurrent use. Writing allocates only when the slice has to grow.
//
// A Writer with a limit asks for no more room than that, and may use the rest of
// the buffer that it was given. What would need more room cuts the Writer: it
// frees all that it holds and takes nothing more, so that a
// reply without end costs no memory while its command runs to its own end. Over
// tells so, and the connection cannot go on.
type Writer struct {
	buf     []byte
	proto   int  // RESP3, or anything else for RESP2
	over    bool // it was cut
	refused bool // by Buffers
	limit   int  // bytes; 0 = none
	buffers *Buffers
}

// SetBuffers has the Writer's memory come from b, instead of the Go heap.
func (w *Writer) SetBuffers(b *Buffers) { w.buffers = b }

// SetLimit sets how many bytes the Writer may hold; 0 is no limit. It does not
// cut what is held already.
func (w *Writer) SetLimit(bytes int) { w.limit = bytes }

// Over reports whether the Writer was cut.
func (w *Writer) Over() bool { return w.over }

// Refused reports whether the Writer was cut because all buffers together take up too much, and not at its own limit.
func (w *Writer) Refused() bool { return w.refused }

// Allows reports whether the Writer may hold n bytes more.
func (w *Writer) Allows(n int) bool { return !w.over && (w.limit == 0 || len(w.buf)+n <= w.limit) }

// Cut lets go of what was written, and of all that will be.
func (w *Writer) Cut() {
	w.over = true
	w.buffers.Put(w.buf)
	w.buf = nil
}

// room makes sure that n more bytes fit, and reports false if they may not.
func (w *Writer) room(n int) bool { return n <= cap(w.buf)-len(w.buf) || w.grow(n) }

// grow makes the buffer larger, or cuts the Writer at its limit.
func (w *Writer) grow(n int) bool {
	need := len(w.buf) + n
	if w.over || w.limit > 0 && need > w.limit {
		w.Cut()
		return false
	}
	if w.buffers == nil {
		w.buf = slices.Grow(w.buf, n)
		return true
	}
	if w.buffers.refuses(need) {
		w.refused = true
		w.Cut()
		return false
	}
	held := len(w.buf)
	if cap(w.buf) == 0 {
		w.buf = w.buffers.Get(need)[:0]
		return true
	}
	w.buf = w.buffers.Grow(w.buf, need)[:held]
	return true
}

// text appends what is a reply already.
func (w *Writer) text(reply string) {
	if w.room(len(reply)) {
		w.buf = append(w.buf, reply...)
	}
}

// Proto returns the protocol version that replies are written in.
func (w *Writer) Proto() int {
	if w.proto == RESP3 {
		return RESP3
	}
	return RESP2
}

// SetProto chooses the protocol version, RESP2 or RESP3, for what is written
// from now on.
func (w *Writer) SetProto(proto int) { w.proto = proto }

// Bytes returns what was written. It is valid until the next write.
func (w *Writer) Bytes() []byte { return w.buf }

// Len returns the number of bytes written.
func (w *Writer) Len() int { return len(w.buf) }

// Cap returns how many bytes the buffer can hold before it grows; 0 means that there is none.
func (w *Writer) Cap() int { return cap(w.buf) }

// Reset forgets what was written, and that it was cut, and keeps the memory.
func (w *Writer) Reset() { w.buf, w.over, w.refused = w.buf[:0], false, false }

// Truncate takes back all but the first length bytes, which Len returned
// before: a reply that is not to be sent after all.
func (w *Writer) Truncate(length int) { w.buf = w.buf[:min(length, len(w.buf))] }

// SetBuffer goes on writing behind the contents of buf, which the Writer now
// owns. nil gives up the memory.
func (w *Writer) SetBuffer(buf []byte) { w.buf = buf }

// Raw appends bytes that are replies already.
func (w *Writer) Raw(reply []byte) {
	if w.room(len(reply)) {
		w.buf = append(w.buf, reply...)
	}
}

// OK appends the simple string OK.
func (w *Writer) OK() { w.text("+OK\r\n") }

// Pong appends the simple string PONG.
func (w *Writer) Pong() { w.text("+PONG\r\n") }

// Queued appends the simple string QUEUED.
func (w *Writer) Queued() { w.text("+QUEUED\r\n") }

// Zero appends the integer 0.
func (w *Writer) Zero() { w.text(":0\r\n") }

// One appends the integer 1.
func (w *Writer) One() { w.text(":1\r\n") }

// EmptyBulk appends a bulk string of no bytes.
func (w *Writer) EmptyBulk() { w.text("$0\r\n\r\n") }

// EmptyArray appends an array of no elements.
func (w *Writer) EmptyArray() { w.text("*0\r\n") }

// Null appends the absence of a value: a null bulk string in RESP2.
func (w *Writer) Null() {
	if w.proto == RESP3 {
		w.text("_\r\n")
	} else {
		w.text("$-1\r\n")
	}
}

// NullArray appends the absence of an array: a null array in RESP2, the one
// null there is in RESP3.
func (w *Writer) NullArray() {
	if w.proto == RESP3 {
		w.text("_\r\n")
	} else {
		w.text("*-1\r\n")
	}
}

// headerMax is the length of the longest line with a number in it.
const headerMax = len(":-9223372036854775808\r\n")

// Int appends an integer.
func (w *Writer) Int(n int64) {
	if !w.short(':', n) && w.room(headerMax) {
		w.buf = redcon.AppendInt(w.buf, n)
	}
}

// Ints appends several integers, for less than one by one.
func (w *Writer) Ints(list ...int64) {
	if !w.room(len(list) * headerMax) {
		return
	}
	rest := w.buf[len(w.buf):cap(w.buf)]
	size := len(w.buf)
	for _, n := range list {
		k := putShort(rest, ':', n)
		if k == 0 {
			k = len(redcon.AppendInt(rest[:0], n))
		}
		rest = rest[k:]
		size += k
	}
	w.buf = w.buf[:size]
}

// short appends the line of a small number.
func (w *Writer) short(prefix byte, n int64) bool {
	size := putShort(w.buf[len(w.buf):cap(w.buf)], prefix, n)
	w.buf = w.buf[:len(w.buf)+size]
	return size > 0
}

// putShort writes the line of a small number to the front of room, in one store of eight bytes: a limiter's answer is mostly made of
// these. It returns the line's length, or 0 if the number is not small or there is no room.
func putShort(room []byte, prefix byte, n int64) (length int) {
	const crlf = '\r' | '\n'<<8
	if len(room) < 8 {
		return 0
	}
	var line uint64
	switch u := uint64(n); {
	case u < uint64(len(lines)):
		line = lines[u]
	case u < 10*uint64(len(lines)): // the first three digits are a number of the table
		line = lines[u/10]&(1<<32-1) | (u%10+'0')<<32 | crlf<<40 | uint64(len(":1000\r\n"))<<56
	case n == -1:
		line = '-'<<8 | '1'<<16 | crlf<<24 | uint64(len(":-1\r\n"))<<56
	default:
		return 0
	}
	binary.LittleEndian.PutUint64(room, line|uint64(prefix))
	return int(line >> 56)
}

// lines holds the lines of the numbers below 1000, each as a word whose lowest byte is written first: room for the prefix, the
// digits, the line's end, and in the highest byte, which no such line reaches, its length.
var lines = func() (table [1000]uint64) {
	for n := range table {
		var word [8]byte
		line := append(strconv.AppendInt(word[:1], int64(n), 10), "\r\n"...)
		table[n] = binary.LittleEndian.Uint64(word[:]) | uint64(len(line))<<56
	}
	return table
}()

// bulkOverhead is the most that a bulk string takes beside its bytes.
const bulkOverhead = headerMax + len("\r\n")

// Bulk appends a bulk string.
func (w *Writer) Bulk(value []byte) {
	if !w.room(bulkOverhead + len(value)) {
		return
	}
	if !w.short('$', int64(len(value))) {
		w.buf = redcon.AppendBulk(w.buf, value)
		return
	}
	w.buf = append(w.buf, value...)
	w.buf = append(w.buf, '\r', '\n')
}

// BulkString appends a bulk string.
func (w *Writer) BulkString(value string) {
	if w.room(bulkOverhead + len(value)) {
		w.buf = redcon.AppendBulkString(w.buf, value)
	}
}

// BulkInt appends a bulk string of n in decimal digits.
func (w *Writer) BulkInt(n int64) {
	// redcon.AppendBulkInt allocates the digits.
	var digits [20]byte
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// Simple appends a simple string, with line breaks in it turned into spaces.
func (w *Writer) Simple(text string) {
	if w.room(bulkOverhead + len(text)) {
		w.buf = redcon.AppendString(w.buf, text)
	}
}

// Error appends an error. The text starts with the error's code, as in
// "ERR syntax error"; line breaks in it are turned into spaces.
func (w *Writer) Error(text string) {
	if w.room(bulkOverhead + len(text)) {
		w.buf = redcon.AppendError(w.buf, text)
	}
}

// Array appends the header of an array whose n elements follow.
func (w *Writer) Array(n int) {
	if !w.short('*', int64(n)) && w.room(headerMax) {
		w.buf = redcon.AppendArray(w.buf, n)
	}
}

// Map appends the header of a map whose n keys, each before its value, follow:
// an array of twice n elements in RESP2.
func (w *Writer) Map(n int) {
	if w.proto == RESP3 {
		w.aggregate('%', n)
	} else {
		w.Array(2 * n)
	}
}

// Set appends the header of a set whose n elements follow: an array in RESP2.
func (w *Writer) Set(n int) {
	if w.proto == RESP3 {
		w.aggregate('~', n)
	} else {
		w.Array(n)
	}
}

// Push appends the header of a message out of turn whose n elements follow: an
// array in RESP2.
func (w *Writer) Push(n int) {
	if w.proto == RESP3 {
		w.aggregate('>', n)
	} else {
		w.Array(n)
	}
}

// aggregate appends the header of one of the types that redcon has no function
// for: an array's, with another first byte.
func (w *Writer) aggregate(kind byte, n int) {
	if !w.room(headerMax) {
		return
	}
	start := len(w.buf)
	w.buf = redcon.AppendArray(w.buf, n)
	w.buf[start] = kind
}

// Double appends a floating-point number with up to 17 significant digits:
// a bulk string in RESP2. The infinities are inf and -inf.
func (w *Writer) Double(f float64) {
	var digits [number.DoubleMax]byte
	text := number.AppendDouble(digits[:0], f)
	if w.proto == RESP3 {
		w.line(',', text)
		return
	}
	w.Bulk(text)
}

// LongDouble appends a number with more digits than a double has, given as its text: a bulk string in RESP2.
func (w *Writer) LongDouble(text []byte) {
	if w.Proto() < 3 {
		w.Bulk(text)
		return
	}
	w.line(',', text)
}

// line appends a line of a type that is told by its first byte.
func (w *Writer) line(kind byte, text []byte) {
	if w.room(bulkOverhead + len(text)) {
		w.buf = append(w.buf, kind)
		w.buf = append(w.buf, text...)
		w.buf = append(w.buf, '\r', '\n')
	}
}

// Bool appends a truth value: the integer 1 or 0 in RESP2.
func (w *Writer) Bool(value bool) {
	switch {
	case w.proto != RESP3 && value:
		w.One()
	case w.proto != RESP3:
		w.Zero()
	case value:
		w.text("#t\r\n")
	default:
		w.text("#f\r\n")
	}
}

// verbatimFormat is how many bytes name the format of a verbatim string.
const verbatimFormat = 3

// Verbatim appends text in a format for people: "txt" or "mkd". Shorter names
// are filled up with spaces and longer ones cut. It is a bulk string without
// the format in RESP2.
func (w *Writer) Verbatim(format, text string) {
	if w.proto != RESP3 {
		w.BulkString(text)
		return
	}
	if !w.room(2*bulkOverhead + len(text)) {
		return
	}
	w.aggregate('=', len(text)+verbatimFormat+1)
	for i := range verbatimFormat {
		c := byte(' ')
		if i < len(format) {
			c = format[i]
		}
		w.buf = append(w.buf, c)
	}
	w.buf = append(w.buf, ':')
	w.buf = append(w.buf, text...)
	w.text("\r\n")
}

// BigNumber appends an integer of any size, given in decimal digits: a bulk
// string in RESP2.
func (w *Writer) BigNumber(digits string) {
	if w.proto != RESP3 {
		w.BulkString(digits)
		return
	}
	if w.room(bulkOverhead + len(digits)) {
		w.buf = append(w.buf, '(')
		w.buf = append(w.buf, digits...)
		w.buf = append(w.buf, '\r', '\n')
	}
}

// Mark is the place of a header whose number of elements is not known yet.
type Mark int

// reserved is how many bytes Start leaves for a header. One of 100 to 999
// elements fits exactly; the elements of any other are moved, which costs
// little when they are few and is lost in their number when they are many.
const reserved = len("*000\r\n")

// Start leaves room for the header of an aggregate. The elements follow, and
// then the call of EndArray, EndMap or EndSet. Aggregates may be nested; each
// ends before the one around it.
func (w *Writer) Start() Mark {
	w.text("*000\r\n")
	return Mark(len(w.buf))
}

// EndArray makes what was written since Start an array of n elements.
func (w *Writer) EndArray(m Mark, n int) { w.endAggregate(m, '*', n) }

// EndMap makes what was written since Start a map of n keys and their values:
// an array of twice n elements in RESP2.
func (w *Writer) EndMap(m Mark, n int) {
	if w.proto == RESP3 {
		w.endAggregate(m, '%', n)
	} else {
		w.endAggregate(m, '*', 2*n)
	}
}

// EndSet makes what was written since Start a set of n elements: an array in
// RESP2.
func (w *Writer) EndSet(m Mark, n int) {
	if w.proto == RESP3 {
		w.endAggregate(m, '~', n)
	} else {
		w.endAggregate(m, '*', n)
	}
}

// StartVerbatim leaves room for the header of a verbatim string of a format of
// three bytes. Its text follows, by Raw, and then the call of EndVerbatim.
func (w *Writer) StartVerbatim(format string) Mark {
	m := w.Start()
	if w.proto == RESP3 {
		w.text(format)
		w.text(":")
	}
	return m
}

// EndVerbatim makes what was written since StartVerbatim a verbatim string: a
// bulk string in RESP2.
func (w *Writer) EndVerbatim(m Mark) {
	if w.over {
		return
	}
	kind := byte('$')
	if w.proto == RESP3 {
		kind = '='
	}
	w.endAggregate(m, kind, len(w.buf)-int(m))
	w.text("\r\n")
}

// endAggregate puts the header before what was written since Start, and moves
// that to where the header ends.
func (w *Writer) endAggregate(m Mark, kind byte, n int) {
	if n < 0 || n > math.MaxInt32 {
		panic("resp: aggregate of impossible size")
	}
	if w.over || !w.room(headerMax) {
		return
	}
	var digits [16]byte
	header := redcon.AppendArray(digits[:0], n)
	header[0] = kind
	start, body := int(m)-reserved, int(m)
	if len(header) != reserved {
		length := len(w.buf) - body
		if missing := len(header) - reserved; missing > 0 {
			w.buf = append(w.buf, header[:missing]...)
		}
		copy(w.buf[start+len(header):], w.buf[body:body+length])
		w.buf = w.buf[:start+len(header)+length]
	}
	copy(w.buf[start:], header)
}
