package structlib

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
)

const (
	intSize     = 4
	longSize    = 8
	alignMax    = 8  // what ! stands for without a number
	intSizeMax  = 32 // the largest n of in and In
	pointerBits = 64
)

// format is a position in a format string, with the modes set so far.
type format struct {
	L         *lua.LState
	name      string // of the function that reads it
	text      string
	bigEndian bool
	align     uint64
}

// newFormat reads the first argument of the function called name.
func newFormat(L *lua.LState, name string) format {
	text := luacall.String(L, 1)
	for i := range len(text) {
		if text[i] == 0 {
			text = text[:i]
			break
		}
	}
	return format{L: L, name: name, text: text, align: 1}
}

// next takes an option and the size of its value: 0 for c0, for s, and for
// options without a value.
func (f *format) next() (option byte, size uint64) {
	option, f.text = f.text[0], f.text[1:]
	switch option {
	case 'b', 'B', 'x':
		return option, 1
	case 'h', 'H':
		return option, 2
	case 'l', 'L', 'T', 'd':
		return option, longSize
	case 'f':
		return option, 4
	case 'c':
		return option, f.number(1)
	case 'i', 'I':
		size = f.number(intSize)
		if size > intSizeMax {
			luacall.Errorf(f.L, "integral size %d is larger than limit of %d", size, intSizeMax)
		}
	}
	return option, size
}

// number takes the decimal digits that come next, if any.
func (f *format) number(otherwise uint64) uint64 {
	if !f.atDigit() {
		return otherwise
	}
	n := uint64(0)
	for f.atDigit() {
		n = n*10 + uint64(f.text[0]-'0')
		if n > math.MaxInt32 {
			luacall.Errorf(f.L, "integral size overflow")
		}
		f.text = f.text[1:]
	}
	return n
}

func (f *format) atDigit() bool {
	return f.text != "" && f.text[0] >= '0' && f.text[0] <= '9'
}

// mode applies an option that has no value.
func (f *format) mode(option byte) {
	switch option {
	case ' ':
	case '<':
		f.bigEndian = false
	case '>':
		f.bigEndian = true
	case '!':
		align := f.number(alignMax)
		if align == 0 || align&(align-1) != 0 {
			luacall.Errorf(f.L, "alignment %d is not a power of 2", align)
		}
		f.align = align
	default:
		luacall.ArgError(f.L, 1, "invalid format option '"+string([]byte{option})+"'")
	}
}

// padding returns how many bytes come before a value of size bytes at offset.
func (f *format) padding(offset uint64, option byte, size uint64) uint64 {
	if size == 0 || option == 'c' {
		return 0
	}
	size = min(size, f.align)
	return (size - offset&(size-1)) & (size - 1)
}

// isInteger reports whether the option's value is an integer, and whether that
// has a sign.
func isInteger(option byte) (integer, signed bool) {
	switch option {
	case 'b', 'h', 'l', 'i':
		return true, true
	case 'B', 'H', 'L', 'T', 'I':
		return true, false
	}
	return false, false
}
