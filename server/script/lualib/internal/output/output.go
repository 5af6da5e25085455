// Package output hands over the strings that libraries build in buffers they
// use again.
package output

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// keepMax is the capacity of the largest buffer that is kept for the next
// call, in bytes.
const keepMax = 64 << 10

// String returns the contents of a buffer, and the buffer to use next time. A
// large one becomes the string itself instead of being copied.
func String(buffer []byte) (s lua.LString, next []byte) {
	if cap(buffer) <= keepMax {
		return lua.LString(buffer), buffer
	}
	return lua.LString(unsafe.String(unsafe.SliceData(buffer), len(buffer))), nil
}

// Keep returns the buffer to use next time when no string was made of it.
func Keep(buffer []byte) []byte {
	if cap(buffer) <= keepMax {
		return buffer
	}
	return nil
}
