package script

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/bitlib"
	"headgate/server/script/lualib/cjson"
	"headgate/server/script/lualib/cmsgpack"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/mathlib"
	"headgate/server/script/lualib/stringlib"
	"headgate/server/script/lualib/structlib"
	"headgate/server/script/lualib/tablelib"
)

// openLibraries opens the libraries that Redis has, and no others.
func (s *sandbox) openLibraries() {
	for _, library := range []struct {
		name string
		open func(*lua.LState, *limits.Budget) *lua.LTable
	}{
		{"string", stringlib.Open},
		{"table", tablelib.Open},
		{"math", func(L *lua.LState, b *limits.Budget) *lua.LTable {
			return mathlib.Open(L, b, s.engine.random)
		}},
		{"cjson", cjson.Open},
		{"cmsgpack", cmsgpack.Open},
		{"struct", structlib.Open},
		{"bit", bitlib.Open},
	} {
		real := library.open(s.L, s.engine.budget)
		switch library.name {
		case "table":
			s.guardTable(real)
		case "cjson":
			s.json = real
		}
		shown := s.libraryTable(library.name, real)
		if library.name == "string" {
			s.openStrings(real, shown)
		}
	}
}

// guardTable has the functions of table that change a table refuse read-only
// ones, and the others see what those stand for.
func (s *sandbox) guardTable(real *lua.LTable) {
	for name, changes := range map[string]bool{
		"insert": true, "remove": false, "sort": false, // Libraries have no elements to remove or sort.
		"foreach": false, "foreachi": false, "getn": false, "maxn": false, "concat": false,
	} {
		f, ok := real.RawGetString(name).(*lua.LFunction)
		if !ok {
			continue
		}
		inner := f.GFunction
		real.RawSetString(name, s.L.NewFunction(func(L *lua.LState) int {
			if t, ok := L.Get(1).(*lua.LTable); ok && t.Metatable != lua.LNil {
				if changes {
					switch L.GetTop() { // what is wrong with the arguments comes first
					case 3:
						luacall.Int(L, 2)
						fallthrough
					case 2:
						s.refuseReadOnly(L, t)
					}
				} else {
					L.Replace(1, s.real(t))
				}
			}
			return inner(L)
		}))
	}
}

// openStrings makes the metatable of strings. The machine's own also does
// arithmetic, because gopher-lua reads numbers in strings as Go does.
func (s *sandbox) openStrings(real, shown *lua.LTable) {
	s.strings = s.L.NewTable()
	s.strings.RawSetString("__index", real)
	for event, operate := range arithmetic {
		s.strings.RawSetString(event, s.newUnseen(func(L *lua.LState) int {
			a, aOK := luacall.ToNumber(L, L.Get(1))
			b, bOK := luacall.ToNumber(L, L.Get(L.GetTop()))
			if !aOK || !bOK {
				return s.arithmeticOther(L, event)
			}
			L.Push(operate(a, b))
			return 1
		}))
	}
	visible := s.L.NewTable()
	visible.RawSetString("__index", shown)
	s.shownStrings = s.show(visible, nil)
}
