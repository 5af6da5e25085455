package rdb

import "errors"

// LZF is a stream of literals and references. A control byte below 32 is followed by that many bytes plus one, to be copied as
// they are. Any other refers back: its top three bits are the length less two, or 7 for a byte with the rest of it;
// its low five bits and the next byte are the distance less one.
const (
	lzfLiterals  = 32   // most literals after one control byte
	lzfDistance  = 8192 // farthest reference
	lzfMatch     = 264  // longest reference
	lzfMinMatch  = 3
	lzfHashBits  = 13
	lzfMaxExpand = 88 // no stream of n bytes becomes more than this times n: three bytes make lzfMatch at most
)

// lzf compresses. Positions in its table count from the first byte that it has ever seen, so that what is left of earlier
// inputs is told from the present one without clearing the table. The zero value is ready for use.
type lzf struct {
	table [1 << lzfHashBits]uint32
	base  uint32 // the first position of the present input; positions below belong to earlier ones
}

// lzfMaxInput bounds what compress takes.
const lzfMaxInput = 1 << 20

// compress appends src, compressed, to dst if that saves 4 bytes or more. src must not be longer than lzfMaxInput.
func (z *lzf) compress(dst, src []byte) ([]byte, bool) {
	if z.base > 1<<32-1-2*lzfMaxInput || z.base == 0 {
		*z = lzf{base: 1}
	}
	base := z.base
	z.base += uint32(len(src))
	limit := len(dst) + len(src) - 4
	from := 0 // of the literals that are not written yet
	for i := 0; i+lzfMinMatch <= len(src); {
		h := (uint32(src[i]) | uint32(src[i+1])<<8 | uint32(src[i+2])<<16) * 0x9e3779b1 >> (32 - lzfHashBits)
		at := z.table[h]
		z.table[h] = base + uint32(i)
		j := int(at) - int(base)
		if at < base || i-j > lzfDistance || src[j] != src[i] || src[j+1] != src[i+1] || src[j+2] != src[i+2] {
			i++
			continue
		}
		n := lzfMinMatch
		for n < lzfMatch && i+n < len(src) && src[j+n] == src[i+n] {
			n++
		}
		dst = appendLiterals(dst, src[from:i])
		dst = appendReference(dst, i-j, n)
		if len(dst) > limit {
			return dst, false
		}
		i += n
		from = i
	}
	dst = appendLiterals(dst, src[from:])
	return dst, len(dst) <= limit
}

func appendLiterals(dst, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), lzfLiterals)
		dst = append(dst, byte(n-1))
		dst = append(dst, p[:n]...)
		p = p[n:]
	}
	return dst
}

func appendReference(dst []byte, distance, n int) []byte {
	distance--
	n -= 2
	if n < 7 {
		return append(dst, byte(n<<5|distance>>8), byte(distance))
	}
	return append(dst, byte(7<<5|distance>>8), byte(n-7), byte(distance))
}

var errLZF = errors.New("compressed bytes that make no sense")

// lzfCheck reports whether src stands for n bytes, without making them.
func lzfCheck(src []byte, n int) error {
	made := 0
	for i := 0; i < len(src); {
		control := int(src[i])
		i++
		if control < lzfLiterals {
			i += control + 1
			made += control + 1
			if i > len(src) {
				return errLZF
			}
			continue
		}
		length := control>>5 + 2
		if length == 7+2 {
			if i == len(src) {
				return errLZF
			}
			length += int(src[i])
			i++
		}
		if i == len(src) || control&31<<8|int(src[i]) >= made {
			return errLZF
		}
		i++
		made += length
	}
	if made != n {
		return errLZF
	}
	return nil
}

// lzfDecompress appends what src stands for, which must be n bytes, to dst. The memory for them is taken at once, when they are known to
// come.
func lzfDecompress(dst, src []byte, n int) ([]byte, error) {
	if err := lzfCheck(src, n); err != nil {
		return dst, err
	}
	if cap(dst)-len(dst) < n {
		dst = append(make([]byte, 0, len(dst)+n), dst...)
	}
	start := len(dst)
	for i := 0; i < len(src); {
		control := int(src[i])
		i++
		if control < lzfLiterals {
			end := i + control + 1
			if end > len(src) || len(dst)-start+control+1 > n {
				return dst, errLZF
			}
			dst = append(dst, src[i:end]...)
			i = end
			continue
		}
		length := control >> 5
		if length == 7 {
			if i == len(src) {
				return dst, errLZF
			}
			length += int(src[i])
			i++
		}
		length += 2
		if i == len(src) {
			return dst, errLZF
		}
		from := len(dst) - (control&31<<8 | int(src[i])) - 1
		i++
		if from < start || len(dst)-start+length > n {
			return dst, errLZF
		}
		for length > 0 { // a reference may reach into what it makes, which repeats then: each part is twice the last
			part := dst[from:min(from+length, len(dst))]
			dst = append(dst, part...)
			length -= len(part)
		}
	}
	if len(dst)-start != n {
		return dst, errLZF
	}
	return dst, nil
}
