package resp

import "headgate/internal/quoting"

// inline parses the inline command at the start of b: words on one line, as
// somebody types them into telnet. The size is 0 while the line is not
// complete.
func (r *Reader) inline(args [][]byte, b []byte, lim *Limits) (out [][]byte, size int, err error) {
	end := r.lineEnd(b, '\n', lim.Inline)
	if end < 0 {
		if len(b) > lim.Inline {
			return args, 0, errInlineTooBig
		}
		return args, 0, nil
	}
	line := b[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	// Rewind may have the line parsed again, which quoting leaves as it is.
	out, ok := quoting.AppendWords(args, line)
	if !ok {
		return args, 0, errQuotes
	}
	return out, end + 1, nil
}
