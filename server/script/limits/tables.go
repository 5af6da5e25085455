package limits

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// ArrayMax has to hold wherever tables are made, in the tests of a library as
// well as in the server.
func init() { lua.MaxArrayIndex = ArrayMax }

// Get returns t[i] without metamethods, also beyond ArrayMax, where
// LTable.RawGetInt finds nothing. Its counterpart for writing is
// LTable.RawSetInt; LTable.Append, Insert and Remove must not be used.
func Get(t *lua.LTable, i int) lua.LValue {
	if i < ArrayMax {
		if v := t.RawGetInt(i); i >= 1 {
			if v == nil {
				return lua.LNil
			}
			return v
		}
	}
	return t.RawGetH(lua.LNumber(i))
}

// Len returns the length of t by Lua's rules (a border), also beyond ArrayMax,
// where LTable.Len stops. It ignores metatables, as Lua 5.1 does.
func Len(t *lua.LTable) int {
	n := t.Len()
	if n < ArrayMax-1 || Get(t, n+1) == lua.LNil {
		return n
	}
	low, high := n+1, 2*(n+1)
	for Get(t, high) != lua.LNil {
		if high > math.MaxInt32 {
			return high
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		if Get(t, middle) == lua.LNil {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}
