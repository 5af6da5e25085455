package cjson

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// stackMax is how many values C Lua lets a C function keep on its stack. It
// bounds how deep values may nest, whatever the settings allow.
const stackMax = 8000

// library is one table of functions with its settings.
type library struct {
	*shared
	settings settings
}

// shared is what a library has in common with those that its new() returns. They
// are as many as a script likes, so that a buffer of each would be too much.
type shared struct {
	budget *limits.Budget
	null   *lua.LUserData
	out    []byte // reused by encode and for strings with escapes by decode
}

// Open returns the library's table. Its functions count what they read and
// write as steps of b and obey its limits. It is used by one goroutine at a
// time, as L is.
func Open(L *lua.LState, b *limits.Budget) *lua.LTable {
	return newLibrary(L, &shared{budget: b, null: L.NewUserData()})
}

// Reset gives the library, a table that Open returned, the settings it began
// with. It costs next to nothing.
func Reset(lib *lua.LTable) {
	if l := libraryOf(lib); l != nil {
		l.settings = defaults
	}
}

// IsNull reports whether v is the value cjson.null.
func IsNull(v lua.LValue) bool {
	data, ok := v.(*lua.LUserData)
	return ok && data.Value == nil
}

func newLibrary(L *lua.LState, s *shared) *lua.LTable {
	l := &library{shared: s, settings: defaults}
	lib := L.CreateTable(0, 13)
	owner := L.NewUserData()
	owner.Value = l
	lib.RawSetString("encode", L.NewClosure(l.encode, owner))
	for name, f := range map[string]lua.LGFunction{
		"decode":                  l.decode,
		"new":                     l.new,
		"encode_sparse_array":     l.encodeSparseArray,
		"encode_max_depth":        l.encodeMaxDepth,
		"decode_max_depth":        l.decodeMaxDepth,
		"encode_number_precision": l.encodeNumberPrecision,
		"encode_keep_buffer":      l.encodeKeepBuffer,
		"encode_invalid_numbers":  l.encodeInvalidNumbers,
		"decode_invalid_numbers":  l.decodeInvalidNumbers,
	} {
		lib.RawSetString(name, L.NewFunction(f))
	}
	lib.RawSetString("null", s.null)
	lib.RawSetString("_NAME", lua.LString("cjson"))
	lib.RawSetString("_VERSION", lua.LString("2.1.0"))
	return lib
}

// libraryOf finds the library behind its table: the owner that encode carries
// as its upvalue, which no script can reach.
func libraryOf(lib *lua.LTable) *library {
	encode, ok := lib.RawGetString("encode").(*lua.LFunction)
	if !ok || len(encode.Upvalues) == 0 {
		return nil
	}
	owner, ok := encode.Upvalues[0].Value().(*lua.LUserData)
	if !ok {
		return nil
	}
	l, _ := owner.Value.(*library)
	return l
}

// new() returns another library with settings of its own.
func (l *library) new(L *lua.LState) int {
	const steps = 64
	l.budget.Spend(steps)
	L.Push(newLibrary(L, l.shared))
	return 1
}
