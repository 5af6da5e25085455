// Package output hands over the strings that libraries build in buffers they
// use again.
package output

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// String returns the contents of a buffer that b.Grow has returned, and the
// buffer to use next time. A large one becomes the string itself instead of
// being copied, if that wastes little.
func String(L *lua.LState, b *limits.Budget, buffer []byte) (s lua.LString, next []byte) {
	if cap(buffer) <= limits.KeptBuffer {
		return lua.LString(buffer), buffer
	}
	defer b.Done(buffer)
	if len(buffer) < cap(buffer)/4*3 {
		b.CheckString(L, len(buffer))
		return lua.LString(buffer), nil
	}
	return lua.LString(unsafe.String(unsafe.SliceData(buffer), len(buffer))), nil
}

// Keep returns the buffer to use next time when no string was made of it.
func Keep(b *limits.Budget, buffer []byte) []byte {
	if cap(buffer) <= limits.KeptBuffer {
		return buffer
	}
	b.Done(buffer)
	return nil
}
