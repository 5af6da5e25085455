package limits

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// ArgError raises Lua 5.1's complaint about argument i, counted from 1, of the
// library function called name. Called by a function written in Go, such as
// pcall, it has neither a name nor a place.
func ArgError(L *lua.LState, i int, name, text string) {
	if caller, ok := L.GetStack(1); ok {
		if fn, err := L.GetInfo("f", caller, nil); err == nil && fn.(*lua.LFunction).IsG {
			L.Error(lua.LString(fmt.Sprintf("bad argument #%d to '?' (%s)", i, text)), 0)
		}
	}
	L.RaiseError("bad argument #%d to '%s' (%s)", i, name, text)
}

// TypeError raises Lua 5.1's complaint that argument i is no want.
func TypeError(L *lua.LState, i int, name, want string) {
	got := "no value"
	if i <= L.GetTop() {
		got = L.Get(i).Type().String()
	}
	ArgError(L, i, name, want+" expected, got "+got)
}

// CheckAny raises an error unless argument i is there.
func CheckAny(L *lua.LState, i int, name string) lua.LValue {
	if i > L.GetTop() {
		ArgError(L, i, name, "value expected")
	}
	return L.Get(i)
}

// CheckString returns argument i, a string or a number.
func CheckString(L *lua.LState, i int, name string) string {
	s, ok := ToString(L.Get(i))
	if !ok {
		TypeError(L, i, name, "string")
	}
	return s
}

// OptString is CheckString with a value for an argument that is nil or absent.
func OptString(L *lua.LState, i int, name, otherwise string) string {
	if L.Get(i) == lua.LNil {
		return otherwise
	}
	return CheckString(L, i, name)
}

// CheckNumber returns argument i, a number or a string that is one.
func CheckNumber(L *lua.LState, i int, name string) float64 {
	n, ok := ToNumber(L.Get(i))
	if !ok {
		TypeError(L, i, name, "number")
	}
	return float64(n)
}

// CheckInt returns argument i as C casts a double to ptrdiff_t: cut towards
// zero, and the least int64 for what does not fit.
func CheckInt(L *lua.LState, i int, name string) int {
	return int(TruncateInt(CheckNumber(L, i, name)))
}

// OptInt is CheckInt with a value for an argument that is nil or absent.
func OptInt(L *lua.LState, i int, name string, otherwise int) int {
	if L.Get(i) == lua.LNil {
		return otherwise
	}
	return CheckInt(L, i, name)
}

// CheckTable returns argument i, a table.
func CheckTable(L *lua.LState, i int, name string) *lua.LTable {
	t, ok := L.Get(i).(*lua.LTable)
	if !ok {
		TypeError(L, i, name, "table")
	}
	return t
}

// CheckFunction returns argument i, a function.
func CheckFunction(L *lua.LState, i int, name string) *lua.LFunction {
	f, ok := L.Get(i).(*lua.LFunction)
	if !ok {
		TypeError(L, i, name, "function")
	}
	return f
}

// TruncateInt converts as x86-64's cvttsd2si does, which is what C compilers
// make of the cast: what does not fit becomes the least int64.
func TruncateInt(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}
