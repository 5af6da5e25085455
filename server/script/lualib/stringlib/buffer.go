package stringlib

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// buffersMax is how many buffers are kept for reuse: as many as calls nest in
// all but strange scripts.
const buffersMax = 4

// buffer builds a string within the budget's limits.
type buffer struct {
	bytes  []byte
	L      *lua.LState
	budget *limits.Budget
}

// takeBuffer returns an empty buffer. One that an error keeps from being given
// back is garbage.
func (lib *library) takeBuffer(L *lua.LState) *buffer {
	n := len(lib.buffers)
	if n == 0 {
		return &buffer{L: L, budget: lib.budget}
	}
	b := lib.buffers[n-1]
	lib.buffers = lib.buffers[:n-1]
	b.L = L
	return b
}

// give returns what is in b as a Lua string and keeps b for reuse.
func (lib *library) give(b *buffer) lua.LValue {
	n := len(b.bytes)
	if cap(b.bytes) > limits.KeptBuffer && n >= cap(b.bytes)/4*3 {
		// Nobody writes to these bytes any more, so the string may have them.
		b.budget.Done(b.bytes)
		return lua.LString(unsafe.String(unsafe.SliceData(b.bytes), n))
	}
	b.budget.CheckString(b.L, n)
	result := luacall.StringValue(string(b.bytes))
	b.budget.Done(b.bytes)
	if len(lib.buffers) < buffersMax && cap(b.bytes) <= limits.KeptBuffer {
		b.bytes, b.L = b.bytes[:0], nil
		lib.buffers = append(lib.buffers, b)
	}
	return result
}

// grow makes room for n more bytes.
func (b *buffer) grow(n int) { b.bytes = b.budget.Grow(b.L, b.bytes, n) }

func (b *buffer) writeString(s string) {
	b.grow(len(s))
	b.bytes = append(b.bytes, s...)
}

func (b *buffer) writeByte(c byte) {
	b.grow(1)
	b.bytes = append(b.bytes, c)
}
