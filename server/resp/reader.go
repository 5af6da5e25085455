package resp

import "math"

// minRead is the least room in bytes that Space offers before it grows a
// buffer: short reads cost a system call each.
const minRead = 4 << 10

// spareMax is how many times larger than the unread bytes a grown buffer may
// stay. It is large enough that a pipeline of large commands does not make the
// buffer shrink and grow in turn.
const spareMax = 8

// parseState says what the Reader expects next of the command it is in.
type parseState uint8

const (
	atStart  parseState = iota // nothing of the command seen yet
	inInline                   // the end of an inline command
	inCount                    // the end of the line with the argument count
	inLength                   // the end of a line with an argument's length
	inBulk                     // the end of an argument
)

// Reader splits the bytes of one connection into commands. The zero value is
// ready and holds no memory until Space is called. It is not safe for
// concurrent use.
//
// The caller reads from its socket into Space, reports the count to Received,
// and calls Next until there is no complete command left. Arguments point into
// the buffer: they stay valid, and must not be changed, until the next call of
// Space or Compact.
type Reader struct {
	buf  []byte
	next int // start of the first command that was not handed out
	end  int // end of the bytes received

	// The rest is the place inside a command that is not complete yet, so that
	// its bytes are looked at once, however many reads it takes to arrive. The
	// two positions count from next.
	scan  int // where the search for the end of a line goes on
	at    int // start of the line or argument that is being received
	bulk  int // length of the argument that is being received
	left  int // arguments still to come, that one included
	state parseState
}

// Space returns room to read into, at least one byte long. The room comes from
// p when the Reader holds no buffer, and by growing when the buffer is full,
// so the caller reads only when Next has nothing left to return.
// Earlier arguments and offsets become invalid.
//
// As long as Compact follows every batch of commands, a buffer is at most
// BufferSize or spareMax times the unread bytes, whichever is more.
func (r *Reader) Space(p *Pool) []byte {
	if r.buf == nil {
		r.buf = p.Get()
	}
	// A rest that is longer than the room before it stays where it is, so that
	// the bytes moved never outnumber the bytes consumed.
	if rest := r.end - r.next; r.next >= rest {
		copy(r.buf, r.buf[r.next:r.end])
		r.next, r.end = 0, rest
	}
	if len(r.buf)-r.end < minRead {
		r.buf = p.Buffers.Grow(r.buf, len(r.buf)+minRead)
	}
	return r.buf[r.end:]
}

// moveTo copies the unread bytes to the front of buf and goes on with that.
func (r *Reader) moveTo(buf []byte, p *Pool) {
	r.end = copy(buf, r.buf[r.next:r.end])
	r.next = 0
	p.Put(r.buf)
	r.buf = buf
}

// Received tells that n bytes were written to the start of the room that Space
// returned last.
func (r *Reader) Received(n int) {
	if n < 0 || n > len(r.buf)-r.end {
		panic("resp: Received more bytes than Space has room for")
	}
	r.end += n
}

// Buffered returns how many bytes are received and not handed out. The caller
// compares it with its query buffer limit while a client is blocked or paused
// and Next is not called.
func (r *Reader) Buffered() int { return r.end - r.next }

// Offset returns the end of the last command that Next returned, for Rewind.
// It is valid until the next call of Space or Compact.
func (r *Reader) Offset() int { return r.next }

// Rewind takes back the commands that Next returned since Offset was offset:
// they come again from Next. A client that gets blocked or paused in the
// middle of a pipeline needs it.
func (r *Reader) Rewind(offset int) {
	if offset < 0 || offset > r.next {
		panic("resp: Rewind to an offset that is not behind the reader")
	}
	r.begin(offset)
}

// begin starts over with the command at offset.
func (r *Reader) begin(offset int) {
	r.next, r.state = offset, atStart
	r.scan, r.at, r.left = 0, 0, 0
}

// Compact frees memory after the commands received have been executed: it
// gives an empty buffer back to p, and moves a short rest out of a buffer that
// had grown. Arguments and offsets become invalid.
func (r *Reader) Compact(p *Pool) {
	rest := r.end - r.next
	if rest == 0 {
		p.Put(r.buf)
		*r = Reader{}
		return
	}
	if len(r.buf) <= BufferSize || len(r.buf)/spareMax <= rest {
		return
	}
	if rest+minRead <= BufferSize {
		r.moveTo(p.Get(), p)
	} else {
		r.moveTo(p.Buffers.Get(rest+minRead), p)
	}
}

// Release frees all memory: the connection is gone.
func (r *Reader) Release(p *Pool) {
	p.Put(r.buf)
	*r = Reader{}
}

// Next appends the arguments of the next complete command, at least one, to
// args. It reports false when more bytes are needed, and skips commands
// without arguments as Redis does. The error is a *ProtocolError or
// ErrQueryBuffer; either way the connection cannot go on, and further calls
// return the same error. What comes back does not depend on how the bytes were
// split between reads.
func (r *Reader) Next(args [][]byte, lim *Limits) (out [][]byte, ok bool, err error) {
	for r.next < r.end {
		b := r.buf[r.next:r.end]
		// Whatever a command turns out to be has to turn out within the limit,
		// or it would depend on how much has arrived.
		tooLong := len(b) > lim.Query
		if tooLong {
			b = b[:lim.Query]
		}
		out, size, err := r.command(args, b, lim)
		if err == nil && size == 0 && tooLong {
			err = ErrQueryBuffer
		}
		if err != nil || size == 0 {
			return args, false, err
		}
		r.begin(r.next + size)
		if len(out) > len(args) {
			return out, true, nil
		}
	}
	return args, false, nil
}

// command parses the command at the start of b. The size is 0 while it is not
// complete.
func (r *Reader) command(args [][]byte, b []byte, lim *Limits) (out [][]byte, size int, err error) {
	if r.state == atStart {
		if b[0] != '*' {
			r.state = inInline
		} else {
			if !lim.unauthenticated() {
				if out, size = collect(args, b, lim.Multibulk, lim.Bulk); size > 0 {
					return out, size, nil
				}
			}
			r.state = inCount
		}
	}
	if r.state == inInline {
		return r.inline(args, b, lim)
	}
	size, err = r.multibulk(b, lim)
	if err != nil || size == 0 {
		return args, 0, err
	}
	// The limits were applied on the way here. An empty command has nothing to
	// collect.
	out, _ = collect(args, b[:size], math.MaxInt, math.MaxInt)
	return out, size, nil
}

// collect appends the arguments of the multibulk command at the start of b to
// args. It is the fast path for a command that is complete, well-formed and
// within the limits; of any other it says nothing but size 0.
func collect(args [][]byte, b []byte, multibulkMax, bulkMax int) (out [][]byte, size int) {
	count, at := header(b, 0)
	if at == 0 || count > multibulkMax {
		return args, 0
	}
	out = args
	for ; count > 0; count-- {
		if at >= len(b) || b[at] != '$' {
			return args, 0
		}
		var length, start int
		if at+3 < len(b) && b[at+2] == '\r' && b[at+1]-'0' <= 9 { // most are this short
			length, start = int(b[at+1]-'0'), at+4
		} else {
			length, start = header(b, at)
		}
		if start == 0 || length > bulkMax || length > len(b)-start-2 {
			return args, 0
		}
		end := start + length
		out = append(out, b[start:end:end])
		at = end + 2
	}
	return out, at
}

// header reads the number in the line that starts at b[at] with '*' or '$',
// and returns where the next line starts: 0 unless the line is complete and
// holds a plain number. Like Redis it takes any byte for the line feed.
func header(b []byte, at int) (n, next int) {
	const digitsMax = 18 // as many never overflow
	first := at + 1
	i := first
	for i < len(b) && i-first <= digitsMax && b[i]-'0' <= 9 {
		n = n*10 + int(b[i]-'0')
		i++
	}
	if i == first || i-first > digitsMax || i+1 >= len(b) || b[i] != '\r' || b[first] == '0' && i > first+1 {
		return 0, 0
	}
	return n, i + 2
}

// multibulk follows the command at the start of b to its end without keeping
// the arguments, from where it stopped last time. The size is 0 while the
// command is not complete.
func (r *Reader) multibulk(b []byte, lim *Limits) (size int, err error) {
	for {
		if r.state == inBulk {
			if len(b)-r.at-2 < r.bulk {
				return 0, nil
			}
			// The two bytes behind an argument are not looked at: Redis does
			// not either.
			r.at += r.bulk + 2
			r.left--
			r.state = inLength
		} else {
			end, err := r.headerEnd(b, lim)
			if err != nil || end == 0 {
				return 0, err
			}
			if err := r.announce(b[r.at:end], lim); err != nil {
				return 0, err
			}
			r.at = end + 2
		}
		r.scan = r.at
		if r.left == 0 {
			return r.at, nil
		}
	}
}

// headerEnd returns where the carriage return of the line at r.at is, or 0
// while the line is not complete.
func (r *Reader) headerEnd(b []byte, lim *Limits) (end int, err error) {
	end = r.lineEnd(b, '\r', lim.Inline)
	switch {
	case end >= 0:
		if end+1 < len(b) {
			return end, nil
		}
	case len(b)-r.at > lim.Inline && r.state == inCount:
		return 0, errCountTooBig
	case len(b)-r.at > lim.Inline:
		return 0, errBulkCountTooBig
	}
	return 0, nil
}

// announce takes in a complete line that announces a count or a length.
func (r *Reader) announce(line []byte, lim *Limits) *ProtocolError {
	if r.state == inLength && (len(line) == 0 || line[0] != '$') {
		// An empty line is judged by its carriage return.
		got := byte('\r')
		if len(line) > 0 {
			got = line[0]
		}
		return errDollar(got)
	}
	n, ok := parseLength(line[1:])
	if r.state == inCount {
		switch {
		case !ok || n > int64(lim.Multibulk):
			return errCount
		case lim.MultibulkUnauth > 0 && n > int64(lim.MultibulkUnauth):
			return errCountUnauth
		}
		r.left, r.state = int(max(n, 0)), inLength
		return nil
	}
	switch {
	case !ok || n < 0 || n > int64(lim.Bulk):
		return errBulk
	case lim.BulkUnauth > 0 && n > int64(lim.BulkUnauth):
		return errBulkUnauth
	}
	r.bulk, r.state = int(n), inBulk
	return nil
}

// lineEnd returns the position of the first stop in the line that starts at
// r.at, if it comes within limit bytes, or -1. A NUL byte ends the search for
// good, since Redis looks for line ends with C's string functions.
func (r *Reader) lineEnd(b []byte, stop byte, limit int) int {
	if len(b)-r.at > limit {
		b = b[:r.at+limit+1]
	}
	for r.scan < len(b) {
		switch b[r.scan] {
		case stop:
			return r.scan
		case 0:
			return -1
		}
		r.scan++
	}
	return -1
}

// parseLength reads a decimal int64 in the only form that Redis accepts in a
// header: no plus sign, no leading zeros, no minus zero.
func parseLength(digits []byte) (n int64, ok bool) {
	const digitsMax = 19 // as many never overflow a uint64
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > digitsMax || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var magnitude uint64
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		magnitude = magnitude*10 + uint64(c-'0')
	}
	if negative {
		return int64(-magnitude), magnitude <= 1<<63
	}
	return int64(magnitude), magnitude <= math.MaxInt64
}
