package resp

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
	out, ok := splitWords(args, line)
	if !ok {
		return args, 0, errQuotes
	}
	return out, end + 1, nil
}

// splitWords appends the words of line to args, by the rules of Redis's
// sdssplitargs. It reports false when quotes are not balanced, or when a
// closing quote is followed by anything but a space.
//
// Words without quotes are slices of line. A quoted one is decoded to memory
// of its own, never in place, because Rewind may have the line parsed again.
func splitWords(args [][]byte, line []byte) (out [][]byte, ok bool) {
	out = args
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return out, true
		}
		end := i
		for end < len(line) && !endsWord(line[end]) && line[end] != '"' && line[end] != '\'' {
			end++
		}
		if end == len(line) || endsWord(line[end]) {
			out = append(out, line[i:end:end])
			i = end
			continue
		}
		word := append([]byte{}, line[i:end]...)
		if line[end] == '"' {
			word, i = appendDoubleQuoted(word, line, end+1)
		} else {
			word, i = appendSingleQuoted(word, line, end+1)
		}
		if i == 0 || i < len(line) && !isSpace(line[i]) {
			return args, false
		}
		out = append(out, word)
	}
}

// appendDoubleQuoted decodes what stands from line[i] to the closing double
// quote, with the escapes \n \r \t \b \a and \xHH; any other escaped byte
// stands for itself. It returns the position behind the quote, or 0 when there
// is none.
func appendDoubleQuoted(word, line []byte, i int) (out []byte, behind int) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			return word, i + 1
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) && isHex(line[i+3]):
			word = append(word, hexValue(line[i+2])<<4|hexValue(line[i+3]))
			i += 3
		case c == '\\' && i+1 < len(line):
			i++
			word = append(word, unescape(line[i]))
		default:
			word = append(word, c)
		}
	}
	return nil, 0
}

// appendSingleQuoted decodes what stands from line[i] to the closing single
// quote; \' is the only escape. It returns the position behind the quote, or 0
// when there is none.
func appendSingleQuoted(word, line []byte, i int) (out []byte, behind int) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			return word, i + 1
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
			word = append(word, '\'')
		default:
			word = append(word, c)
		}
	}
	return nil, 0
}

// unescape returns the byte that a backslash and c stand for.
func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// isSpace is C's isspace: what may stand between words.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// endsWord holds for the bytes that end a word without quotes. The vertical
// tab and the form feed do not, although isSpace holds for them.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// hexValue returns the value of a hexadecimal digit.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&0x0f + 9
}
