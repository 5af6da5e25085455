package tablelib_test

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// FuzzTable runs the library's functions on a table with holes and any numbers and texts for places and separators: each call
// ends within its budget, with a result or an error.
func FuzzTable(f *testing.F) {
	f.Add("a,b", ", ", 1.0, 3.0)
	f.Add("", "", -1.0, 1e18)
	f.Add("x\x00y", "\xff", 0.5, 9007199254740993.0)
	vm := newVM(f)
	table := vm.L.GetGlobal("table").(*lua.LTable)
	unpack := vm.L.GetGlobal("unpack").(*lua.LFunction)
	f.Fuzz(func(t *testing.T, text, sep string, from, to float64) {
		i, j := lua.LNumber(from), lua.LNumber(to)
		fresh := func() *lua.LTable {
			tb := vm.L.NewTable()
			for n, b := range []byte(text) {
				if b%7 != 0 {
					tb.RawSetInt(n+1, lua.LNumber(b))
				}
			}
			if i == i { // nan is no key
				tb.RawSet(i, lua.LString(sep))
			}
			return tb
		}
		for _, c := range []struct {
			name string
			args []lua.LValue
		}{
			{"concat", []lua.LValue{fresh(), lua.LString(sep), i, j}}, {"concat", []lua.LValue{fresh(), lua.LString(sep)}},
			{"insert", []lua.LValue{fresh(), i, lua.LString(text)}}, {"insert", []lua.LValue{fresh(), j}},
			{"remove", []lua.LValue{fresh(), i}}, {"remove", []lua.LValue{fresh()}},
			{"sort", []lua.LValue{fresh()}}, {"maxn", []lua.LValue{fresh()}}, {"getn", []lua.LValue{fresh()}},
		} {
			vm.Call(table.RawGetString(c.name).(*lua.LFunction), c.args...)
		}
		vm.Call(unpack, fresh(), i, j)
	})
}
