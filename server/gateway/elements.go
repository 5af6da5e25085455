package gateway

// maxDepth bounds how deep arrays of a reply may lie in each other. The upstream's connections take no deeper ones.
const maxDepth = 1024

// valueEnd returns the length of the RESP value at the start of b, of either version, or false if it is not whole.
func valueEnd(b []byte, depth int) (end int, ok bool) {
	line := 1
	for line < len(b) && b[line] != '\r' {
		line++
	}
	if line+2 > len(b) || depth > maxDepth {
		return 0, false
	}
	end = line + 2
	n, negative := 0, false
	switch b[0] {
	case '$', '=', '!', '*', '~', '>', '%', '|':
		for _, d := range b[1:line] {
			if d == '-' {
				negative = true
			} else if d < '0' || d > '9' || n > len(b) {
				return 0, false
			} else {
				n = 10*n + int(d-'0')
			}
		}
	}
	if negative {
		return end, true
	}
	switch b[0] {
	case '$', '=', '!':
		end += n + 2
		return end, end <= len(b)
	case '%', '|':
		n *= 2
	case '*', '~', '>':
	default:
		return end, true
	}
	if b[0] == '|' {
		n++ // what the attribute is of follows
	}
	for range n {
		size, ok := valueEnd(b[end:], depth+1)
		if !ok {
			return 0, false
		}
		end += size
	}
	return end, true
}

// valuesOf splits replies that follow each other.
func valuesOf(b []byte) (values [][]byte, ok bool) {
	for len(b) > 0 {
		n, ok := valueEnd(b, 0)
		if !ok {
			return nil, false
		}
		values, b = append(values, b[:n:n]), b[n:]
	}
	return values, true
}

// elementsOf returns the elements of an array, or false for what is none.
func elementsOf(reply []byte) (list [][]byte, ok bool) {
	if len(reply) < 4 || reply[0] != '*' || reply[1] == '-' {
		return nil, false
	}
	return valuesOf(reply[len(firstLine(reply))+2:])
}
