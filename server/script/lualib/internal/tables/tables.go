// Package tables reads Lua tables without metamethods and without an
// allocation for each element of the array part.
package tables

import lua "github.com/yuin/gopher-lua"

// FirstKeyed returns the first entry of t that lies beyond its array part, of
// which n is the length: what LTable.Len returns. The entries after it are
// found with LTable.Next. The key is nil when there is none.
func FirstKeyed(t *lua.LTable, n int) (key, value lua.LValue) {
	if n == 0 {
		return t.Next(lua.LNil)
	}
	return t.Next(lua.LNumber(n))
}
