package luacall

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luanum"
)

// StackMax is how many values a Go function may have on its stack: its
// arguments and its results. It is Lua's LUAI_MAXCSTACK.
const StackMax = 8000

// HasRoom reports whether n more values fit on the stack. It raises an error when they do only as far as this call is concerned, before gopher-lua does:
// that leaves no room to handle it.
func HasRoom(L *lua.LState, n int) bool {
	if n > StackMax || L.GetTop()+n > StackMax {
		return false
	}
	if !limits.RoomFor(L, n+spareRegisters) {
		L.RaiseError("stack overflow")
	}
	return true
}

// spareRegisters is how many registers the handling of an error may take.
const spareRegisters = 1000

// Any returns argument n, which must be there.
func Any(L *lua.LState, n int) lua.LValue {
	if n > L.GetTop() {
		ArgError(L, n, "value expected")
	}
	return L.Get(n)
}

// ToNumber converts numbers, and strings that are one, as Lua's arithmetic does.
// It counts the steps: there may be many strings in one call or statement.
func ToNumber(L *lua.LState, v lua.LValue) (lua.LNumber, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return v, true
	case lua.LString:
		f, steps, ok := luanum.Convert(string(v))
		if steps > 0 {
			limits.BudgetOf(L).Spend(int64(steps))
		}
		return lua.LNumber(f), ok
	}
	return 0, false
}

// SpendOn counts the steps of reading or copying a string of so many bytes, if that is long.
func SpendOn(L *lua.LState, bytes int) {
	if bytes >= longString {
		limits.BudgetOf(L).Spend(int64(bytes / bytesPerStep))
	}
}

// CountOn is SpendOn that always returns, see limits.Budget.Count.
func CountOn(L *lua.LState, bytes int) {
	if bytes >= longString {
		limits.BudgetOf(L).Count(int64(bytes / bytesPerStep))
	}
}

// SpendOnKey counts the steps of comparing v, or of looking it up in a table, if it is a long string.
func SpendOnKey(L *lua.LState, v lua.LValue) {
	if text, ok := v.(lua.LString); ok {
		SpendOn(L, len(text))
	}
}

const (
	longString   = 256 // bytes
	bytesPerStep = 8
)

// ToString converts strings and numbers, as the operator .. does.
func ToString(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return luanum.FormatNumber(float64(v)), true
	}
	return "", false
}

// String returns argument n, a string or a number.
func String(L *lua.LState, n int) string {
	s, ok := ToString(L.Get(n))
	if !ok {
		TypeError(L, n, "string")
	}
	return s
}

// OptString is String with a value for an argument that is nil or absent.
func OptString(L *lua.LState, n int, otherwise string) string {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return String(L, n)
}

// Number returns argument n, a number or a string that is one.
func Number(L *lua.LState, n int) float64 {
	v, ok := ToNumber(L, L.Get(n))
	if !ok {
		TypeError(L, n, "number")
	}
	return float64(v)
}

// Integer returns argument n as C casts a double to 64 bits: cut towards zero,
// and the least int64 for what does not fit.
func Integer(L *lua.LState, n int) int {
	return int(luanum.TruncateInt(Number(L, n)))
}

// OptInteger is Integer with a value for an argument that is nil or absent.
func OptInteger(L *lua.LState, n, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return Integer(L, n)
}

// Int returns argument n as a C int: the lower 32 bits of Integer.
func Int(L *lua.LState, n int) int {
	return int(int32(Integer(L, n)))
}

// OptInt is Int with a value for an argument that is nil or absent.
func OptInt(L *lua.LState, n, otherwise int) int {
	if L.Get(n) == lua.LNil {
		return otherwise
	}
	return Int(L, n)
}

// Table returns argument n, a table.
func Table(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		TypeError(L, n, "table")
	}
	return t
}

// Function returns argument n, a function.
func Function(L *lua.LState, n int) *lua.LFunction {
	f, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		TypeError(L, n, "function")
	}
	return f
}
