package stringlib

import (
	"bytes"
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/luacall"
)

// position makes an index into a string of n bytes out of one that may count
// from the end; an index before the start becomes 0.
func position(i, n int) int {
	if i < 0 {
		i += n + 1
	}
	return max(i, 0)
}

func (lib *library) byte(L *lua.LState) int {
	s := luacall.String(L, 1)
	first := position(luacall.OptInteger(L, 2, 1), len(s))
	last := position(luacall.OptInteger(L, 3, first), len(s))
	first, last = max(first, 1), min(last, len(s))
	if first > last {
		return 0
	}
	n := last - first + 1
	if n > math.MaxInt32 {
		luacall.Error(L, "string slice too long")
	}
	if !luacall.HasRoom(L, n) {
		luacall.Error(L, "stack overflow (string slice too long)")
	}
	lib.budget.Spend(int64(n))
	for _, c := range []byte(s[first-1 : last]) {
		L.Push(luacall.IntValue(int(c)))
	}
	return n
}

func (lib *library) char(L *lua.LState) int {
	n := L.GetTop()
	b := lib.takeBuffer(L)
	lib.budget.Spend(int64(n))
	for i := 1; i <= n; i++ {
		c := luacall.Int(L, i)
		if c != int(byte(c)) {
			luacall.ArgError(L, i, "invalid value")
		}
		b.writeByte(byte(c))
	}
	L.Push(lib.give(b))
	return 1
}

// bytecodeHead is how the bytecode of Lua 5.1 begins on x86-64.
const bytecodeHead = "\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00"

// dump returns no more than the beginning of what Redis's does: Redis loads no
// bytecode either, so it is good for nothing there.
func dump(L *lua.LState) int {
	if luacall.Function(L, 1).IsG {
		luacall.Error(L, "unable to dump given function")
	}
	L.Push(lua.LString(bytecodeHead))
	return 1
}

func length(L *lua.LState) int {
	L.Push(luacall.IntValue(len(luacall.String(L, 1))))
	return 1
}

// pushMapped pushes s with each byte replaced by what mapping makes of it; s
// itself if nothing changes.
func (lib *library) pushMapped(L *lua.LState, s string, mapping func(byte) byte) int {
	lib.budget.Spend(int64(len(s)>>3) + 1)
	for i := range len(s) {
		if mapping(s[i]) == s[i] {
			continue
		}
		b := lib.takeBuffer(L)
		b.writeString(s)
		for ; i < len(s); i++ {
			b.bytes[i] = mapping(s[i])
		}
		L.Push(lib.give(b))
		return 1
	}
	L.Push(luacall.StringValue(s))
	return 1
}

func (lib *library) lower(L *lua.LState) int {
	return lib.pushMapped(L, luacall.String(L, 1), toLower)
}

func (lib *library) upper(L *lua.LState) int {
	return lib.pushMapped(L, luacall.String(L, 1), toUpper)
}

func (lib *library) rep(L *lua.LState) int {
	s := luacall.String(L, 1)
	n := luacall.Int(L, 2)
	if n <= 0 || s == "" {
		L.Push(luacall.StringValue(""))
		return 1
	}
	if n == 1 {
		L.Push(lua.LString(s))
		return 1
	}
	size := math.MaxInt
	if n <= math.MaxInt/len(s) {
		size = n * len(s)
	}
	b := lib.takeBuffer(L)
	b.grow(size)
	b.bytes = append(b.bytes, s...)
	for len(b.bytes) < size {
		b.bytes = append(b.bytes, b.bytes[:min(len(b.bytes), size-len(b.bytes))]...)
	}
	L.Push(lib.give(b))
	return 1
}

func (lib *library) reverse(L *lua.LState) int {
	s := luacall.String(L, 1)
	b := lib.takeBuffer(L)
	b.grow(len(s))
	for i := len(s) - 1; i >= 0; i-- {
		b.bytes = append(b.bytes, s[i])
	}
	L.Push(lib.give(b))
	return 1
}

func (lib *library) sub(L *lua.LState) int {
	s := luacall.String(L, 1)
	first := position(luacall.Integer(L, 2), len(s))
	last := position(luacall.OptInteger(L, 3, -1), len(s))
	first, last = max(first, 1), min(last, len(s))
	if first > last {
		L.Push(luacall.StringValue(""))
		return 1
	}
	lib.budget.CheckString(L, last-first+1)
	L.Push(luacall.PartValue(s, s[first-1:last]))
	return 1
}

// untilNUL returns b up to its first NUL byte, where C sees the end of a
// string.
func untilNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
