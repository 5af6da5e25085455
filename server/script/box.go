package script

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// text returns b as a string without copying it. It is valid, and immutable, as
// long as b is left alone.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns the bytes of s without copying them. They must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// face is how Go lays out an interface value.
type face struct{ kind, data unsafe.Pointer }

// boxed returns *s as a Lua value that shares its memory, where a conversion
// would allocate.
func boxed(s *lua.LString) lua.LValue {
	v := lua.LValue(lua.LString(""))
	(*face)(unsafe.Pointer(&v)).data = unsafe.Pointer(s)
	return v
}

// Whole numbers that are boxed once.
const (
	leastBoxed = -16
	mostBoxed  = 1024
)

// numbers holds the boxed numbers from leastBoxed to mostBoxed.
type numbers [mostBoxed - leastBoxed + 1]lua.LValue

func (n *numbers) init() {
	for i := range n {
		n[i] = lua.LNumber(i + leastBoxed)
	}
}

// value returns i as a Lua value.
func (n *numbers) value(i int64) lua.LValue {
	if i >= leastBoxed && i <= mostBoxed {
		return n[i-leastBoxed]
	}
	return lua.LNumber(i)
}

// arguments makes KEYS and ARGV. For scripts that only read them (see rewriter)
// it fills the same two tables again and again; the strings share the caller's
// memory for all scripts, since none outlives its run.
type arguments struct {
	keys, argv *lua.LTable
	strings    []lua.LString
}

const (
	// reusedMax is how many elements a table may hold that is filled again: its
	// length is found by stepping over those that were emptied.
	reusedMax = 64
	// boxesMax is how many strings are kept room for.
	boxesMax = 1024
)

// tables returns KEYS and ARGV; fresh ones when the script may keep them.
func (a *arguments) tables(L *lua.LState, fresh bool, keys, args [][]byte) (k, v *lua.LTable) {
	n := len(keys) + len(args)
	if cap(a.strings) < n || cap(a.strings) > boxesMax && n <= boxesMax {
		a.strings = make([]lua.LString, max(n, reusedMax))
	}
	strings := a.strings[:n]
	if fresh || len(keys) > reusedMax || len(args) > reusedMax {
		k = fill(L.CreateTable(len(keys), 0), keys, strings)
		return k, fill(L.CreateTable(len(args), 0), args, strings[len(keys):])
	}
	if a.keys == nil {
		a.keys, a.argv = L.CreateTable(reusedMax, 0), L.CreateTable(reusedMax, 0)
	}
	k = fill(a.keys, keys, strings)
	return k, fill(a.argv, args, strings[len(keys):])
}

// fill makes values the elements of t.
func fill(t *lua.LTable, values [][]byte, strings []lua.LString) *lua.LTable {
	for i, value := range values {
		strings[i] = lua.LString(text(value))
		t.RawSetInt(i+1, boxed(&strings[i]))
	}
	for i := len(values) + 1; t.RawGetInt(i) != lua.LNil; i++ {
		t.RawSetInt(i, lua.LNil)
	}
	return t
}

// copyStrings returns a table of copies.
func copyStrings(L *lua.LState, values [][]byte) *lua.LTable {
	t := L.CreateTable(len(values), 0)
	for i, value := range values {
		t.RawSetInt(i+1, lua.LString(value))
	}
	return t
}
