// Package stringlib is the Lua library "string" of Redis, which is that of Lua
// 5.1 in the C locale: strings are bytes, letters are those of ASCII.
//
// Everything that takes time or memory in proportion to its input counts steps
// of the script's budget, the pattern matcher one for each step it takes. It
// does not recurse. A string longer than the budget allows is an error where
// Redis would try to build it.
//
// string.dump gives out the head of Lua's bytecode and nothing more, because
// there is none.
package stringlib

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// library is the state that the functions of one Lua state share.
type library struct {
	budget   *limits.Budget
	matchers []*matcher // free ones
	buffers  []*buffer  // free ones
}

// Open returns the library's table. It is used by one goroutine at a time, as L
// is.
func Open(L *lua.LState, b *limits.Budget) *lua.LTable {
	lib := &library{budget: b}
	functions := []struct {
		name string
		call lua.LGFunction
	}{
		{"byte", lib.byte},
		{"char", lib.char},
		{"dump", dump},
		{"find", lib.find},
		{"format", lib.format},
		{"gmatch", lib.gmatch},
		{"gsub", lib.gsub},
		{"len", length},
		{"lower", lib.lower},
		{"match", lib.match},
		{"rep", lib.rep},
		{"reverse", lib.reverse},
		{"sub", lib.sub},
		{"upper", lib.upper},
	}
	table := L.CreateTable(0, len(functions)+1)
	for _, f := range functions {
		table.RawSetString(f.name, L.NewFunction(f.call))
	}
	table.RawSetString("gfind", table.RawGetString("gmatch")) // its name in Lua 5.0
	return table
}
