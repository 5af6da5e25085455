package rdb

import (
	"encoding/binary"
	"errors"
	"math"

	"headgate/internal/listpack"
)

// A ziplist is what listpacks have replaced: its size (uint32), the offset of the last element (uint32), the number
// of elements (uint16, 65535 for more), the elements, and a byte 255. An element is the length of the one before it, in one
// byte or as 254 and four, an encoding and the text:
//
//	00xxxxxx …            a string of up to 63 bytes
//	01xxxxxx xxxxxxxx …   a string of up to 16383 bytes
//	10______ length(4) …  any string; the length is big-endian
//	C0 D0 E0 F0 FE …      an integer of 2, 4, 8, 3 or 1 bytes, little-endian
//	F1 to FD              0 to 12
const (
	ziplistHead    = 10
	ziplistBigPrev = 254
	ziplistEnd     = 255
	ziplistSmall   = 0xf1 // the integer 0
)

var errZiplist = errors.New("a ziplist that makes no sense")

// ziplistReader goes through the elements of a ziplist.
type ziplistReader struct {
	b     []byte
	at    int
	last  int // where the last element must begin
	prev  int // length of the previous element
	count int // elements by the head; -1: not said
	seen  int
	begin int // of the element that was read last
}

// openZiplist checks what frames a ziplist.
func openZiplist(b []byte) (ziplistReader, error) {
	if len(b) < ziplistHead+1 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) || b[len(b)-1] != ziplistEnd {
		return ziplistReader{}, errZiplist
	}
	count := int(binary.LittleEndian.Uint16(b[8:]))
	if count == math.MaxUint16 {
		count = -1
	}
	return ziplistReader{b: b, at: ziplistHead, last: int(binary.LittleEndian.Uint32(b[4:])), count: count, begin: ziplistHead}, nil
}

func (r *ziplistReader) More() bool { return r.at < len(r.b)-1 }

func (r *ziplistReader) Close() error {
	if r.More() || r.count >= 0 && r.seen != r.count || r.begin != r.last {
		return errZiplist
	}
	return nil
}

// Next reads an element. Text aliases the ziplist.
func (r *ziplistReader) Next() (e listpack.Element, err error) {
	rest := r.b[r.at : len(r.b)-1]
	if len(rest) == 0 {
		return e, errZiplist
	}
	prev, n := int(rest[0]), 1
	if prev == ziplistBigPrev {
		if len(rest) < 5 {
			return e, errZiplist
		}
		prev, n = int(binary.LittleEndian.Uint32(rest[1:])), 5
	}
	if prev != r.prev || n == len(rest) {
		return e, errZiplist
	}
	size := 0 // of the text
	head := 1 // of the encoding
	form := rest[n:]
	switch b := form[0]; {
	case b < 0x40:
		size = int(b)
	case b < 0x80:
		if head = 2; len(form) >= head {
			size = int(b&63)<<8 | int(form[1])
		}
	case b < 0xc0:
		if head = 5; len(form) >= head {
			size = int(binary.BigEndian.Uint32(form[1:]))
		}
	default:
		width, ok := ziplistWidth(b)
		if !ok {
			return e, errZiplist
		}
		e.IsInt = true
		if head = 1 + width; width == 0 {
			e.N = int64(b - ziplistSmall)
		} else if len(form) >= head {
			e.N = littleInt(form[1:head])
		}
	}
	if head > len(form) || size > len(form)-head {
		return e, errZiplist
	}
	e.Text = form[head : head+size]
	r.begin, r.prev = r.at, n+head+size
	r.at += r.prev
	r.seen++
	return e, nil
}

// ziplistWidth is how many bytes an integer of this encoding has.
func ziplistWidth(encoding byte) (width int, ok bool) {
	switch encoding {
	case 0xc0:
		return 2, true
	case 0xd0:
		return 4, true
	case 0xe0:
		return 8, true
	case 0xf0:
		return 3, true
	case 0xfe:
		return 1, true
	}
	return 0, encoding >= ziplistSmall && encoding <= 0xfd
}
