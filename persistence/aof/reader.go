package aof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits of what is read. A command that is longer is not one that any server has written.
const (
	maxAnnotation = 1024      // bytes of a line that begins with #, its end included; Redis reads no longer ones
	maxArguments  = 1 << 24   // of one command
	maxBulk       = 512 << 20 // bytes of one argument
	maxHeader     = 24        // bytes of a line with a count or a length
	readAtLeast   = 64 << 10  // room offered to a read, in bytes
	readerBuffer  = 256 << 10
)

// Flaw is where a file stops making sense, and why.
type Flaw struct {
	Offset int64  // of the first byte that is not to be loaded, or that is wrong
	Cut    bool   // the file ends too early, rather than holding something that cannot be
	Why    string // in a few words
}

// Error implements error.
func (f *Flaw) Error() string { return fmt.Sprintf("%s at offset %d", f.Why, f.Offset) }

// What can be wrong, as it is told to people.
const (
	whyCommandCut    = "the file ends within a command"
	whyAnnotationCut = "the file ends within an annotation"
	whyMultiCut      = "the file ends within a transaction"
	whyBatchCut      = "the file ends within a batch: its CRC is missing"
	whyZeros         = "the file ends in zero bytes"
	whyNoCommand     = "something that is no command"
	whyTooLong       = "a command or an annotation that is longer than any can be"
	whyCRC           = "a batch that differs from its CRC"
	whyBadCRC        = "a CRC annotation that cannot be right"
	whyNesting       = "a MULTI within a transaction, or an EXEC outside of one"
)

// Reader cuts a file into commands and annotations. It is not safe for concurrent use.
type Reader struct {
	src  io.Reader
	buf  []byte
	last int   // where what Next returned last begins in buf
	pos  int   // what comes next in buf
	end  int   // what is in buf
	base int64 // the file's offset of buf[0]
	eof  bool
}

// NewReader reads a file from offset on, which is where src stands.
func NewReader(src io.Reader, offset int64) *Reader {
	return &Reader{src: src, buf: make([]byte, readerBuffer), base: offset}
}

// Offset is where the next command or annotation begins.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// Raw is what Next returned last as it stands in the file. It is valid until Next is called again.
func (r *Reader) Raw() []byte { return r.buf[r.last:r.pos] }

// fill reads more of the file behind what is there from pos on. It reports false at the file's end.
func (r *Reader) fill() (bool, error) {
	if r.eof {
		return false, nil
	}
	if len(r.buf)-r.end < readAtLeast {
		rest := r.end - r.pos
		if len(r.buf)-rest < readAtLeast || rest > len(r.buf)/2 {
			grown := make([]byte, 2*len(r.buf))
			copy(grown, r.buf[r.pos:r.end])
			r.buf = grown
		} else {
			copy(r.buf, r.buf[r.pos:r.end])
		}
		r.base += int64(r.pos)
		r.pos, r.end = 0, rest
	}
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	switch {
	case errors.Is(err, io.EOF):
		r.eof = true
	case err != nil:
		return false, err
	}
	return n > 0 || !r.eof, nil
}

// Next returns the next command's arguments, appended to args, or the annotation without its #: both are valid until the next call. It
// returns io.EOF behind the last one, a *Flaw for what is neither, and other errors of reading as they are.
func (r *Reader) Next(args [][]byte) (command [][]byte, annotation []byte, err error) {
	for {
		b := r.buf[r.pos:r.end]
		var size int
		var why string
		switch {
		case len(b) == 0:
		case b[0] == '#':
			annotation, size, why = cutAnnotation(b)
		case b[0] == '*':
			command, size, why = cutCommand(args, b)
		default:
			why = whyNoCommand
		}
		switch {
		case why != "":
			return nil, nil, &Flaw{Offset: r.Offset(), Why: why}
		case size > 0:
			r.last = r.pos
			r.pos += size
			return command, annotation, nil
		}
		more, err := r.fill()
		switch {
		case err != nil:
			return nil, nil, err
		case more:
		case len(b) == 0:
			return nil, nil, io.EOF
		case b[0] == '#':
			return nil, nil, &Flaw{Offset: r.Offset(), Cut: true, Why: whyAnnotationCut}
		default:
			return nil, nil, &Flaw{Offset: r.Offset(), Cut: true, Why: whyCommandCut}
		}
	}
}

// cutAnnotation finds the line at the start of b. Its size is 0 while it is not complete.
func cutAnnotation(b []byte) (line []byte, size int, why string) {
	end := bytes.IndexByte(b[:min(len(b), maxAnnotation)], '\n')
	switch {
	case end >= 0 && bytes.IndexByte(b[:end], 0) >= 0:
		return nil, 0, whyNoCommand // nobody writes zero bytes there: these are of a lost sector, and more than this line is gone
	case end >= 0:
		return bytes.TrimSuffix(b[1:end], []byte("\r")), end + 1, ""
	case len(b) >= maxAnnotation:
		return nil, 0, whyTooLong
	}
	return nil, 0, ""
}

// cutCommand finds the command at the start of b. Its size is 0 while it is not complete.
func cutCommand(args [][]byte, b []byte) (command [][]byte, size int, why string) {
	count, at, why := cutHeader(b, 0, '*', maxArguments)
	if at == 0 || why != "" {
		return nil, 0, why
	}
	if count == 0 {
		return nil, 0, whyNoCommand
	}
	for ; count > 0; count-- {
		length, start, why := cutHeader(b, at, '$', maxBulk)
		if start == 0 || why != "" {
			return nil, 0, why
		}
		end := start + length
		if len(b) < end+2 {
			if len(b) > end && b[end] != '\r' {
				return nil, 0, whyNoCommand
			}
			return nil, 0, ""
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return nil, 0, whyNoCommand
		}
		args = append(args, b[start:end:end])
		at = end + 2
	}
	return args, at, ""
}

// cutHeader reads the line at b[at] that has a letter and a number in its canonical form. next is 0 while it is not complete.
func cutHeader(b []byte, at int, kind byte, most int) (n, next int, why string) {
	i := at
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case i == at:
			if c != kind {
				return 0, 0, whyNoCommand
			}
		case c == '\r':
			if i == at+1 {
				return 0, 0, whyNoCommand
			}
			if i+1 == len(b) {
				return 0, 0, ""
			}
			if b[i+1] != '\n' {
				return 0, 0, whyNoCommand
			}
			return n, i + 2, ""
		case c < '0' || c > '9' || i-at > maxHeader || (n == 0 && i > at+1):
			return 0, 0, whyNoCommand
		default:
			if n = n*10 + int(c-'0'); n > most {
				return 0, 0, whyTooLong
			}
		}
	}
	return 0, 0, ""
}
