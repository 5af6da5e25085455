// Package tablelib is the Lua library "table" of Redis, which is that of Lua
// 5.1, and the function unpack. Tables are accessed without metamethods, as
// there.
//
// Everything that takes time in proportion to a table's size counts steps of
// the script's budget.
package tablelib

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// library is what the functions share.
type library struct {
	budget *limits.Budget
	text   []byte // room for concat, up to limits.KeptBuffer bytes
}

// Open returns the library's table. It is used by one goroutine at a time, as L
// is.
func Open(L *lua.LState, b *limits.Budget) *lua.LTable {
	lib := &library{budget: b}
	functions := []struct {
		name string
		call lua.LGFunction
	}{
		{"concat", lib.concat},
		{"foreach", lib.foreach},
		{"foreachi", lib.foreachi},
		{"getn", lib.getn},
		{"insert", lib.insert},
		{"maxn", lib.maxn},
		{"remove", lib.remove},
		{"setn", setn},
		{"sort", lib.sort},
	}
	table := L.CreateTable(0, len(functions))
	for _, f := range functions {
		table.RawSetString(f.name, L.NewFunction(f.call))
	}
	return table
}

func (lib *library) getn(L *lua.LState) int {
	L.Push(luacall.IntValue(lib.budget.Len(luacall.Table(L, 1))))
	return 1
}

func setn(L *lua.LState) int {
	luacall.Table(L, 1)
	luacall.Error(L, "'setn' is obsolete")
	return 0
}

func (lib *library) maxn(L *lua.LState) int {
	t := luacall.Table(L, 1)
	most := 0.0
	lib.budget.SpendGone(t)
	for key, _ := t.Next(lua.LNil); key != lua.LNil; key, _ = t.Next(key) {
		lib.budget.Spend(1)
		if n, ok := key.(lua.LNumber); ok {
			most = max(most, float64(n))
		}
	}
	L.Push(lua.LNumber(most))
	return 1
}

func (lib *library) foreach(L *lua.LState) int {
	t, f := luacall.Table(L, 1), luacall.Function(L, 2)
	lib.budget.SpendGone(t)
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value, _, _ = limits.Next(t, key) {
		if lib.visit(L, f, key, value) {
			return 1
		}
	}
	return 0
}

func (lib *library) foreachi(L *lua.LState) int {
	t := luacall.Table(L, 1)
	n := lib.budget.Len(t)
	f := luacall.Function(L, 2)
	for i := 1; i <= n; i++ {
		if lib.visit(L, f, luacall.IntValue(i), limits.Get(t, i)) {
			return 1
		}
	}
	return 0
}

// visit calls f and leaves its result on the stack if it is not nil.
func (lib *library) visit(L *lua.LState, f *lua.LFunction, key, value lua.LValue) (stop bool) {
	L.Push(f)
	L.Push(key)
	L.Push(value)
	lib.budget.Call(L, 2, 1)
	if L.Get(-1) != lua.LNil {
		return true
	}
	L.Pop(1)
	return false
}

func (lib *library) insert(L *lua.LState) int {
	t := luacall.Table(L, 1)
	end := lib.budget.Len(t) + 1
	position := end
	switch L.GetTop() {
	case 2:
	case 3:
		position = luacall.Int(L, 2)
		end = max(end, position)
		lib.budget.SpendRoom(t, lua.LNumber(end))
		for i := end; i > position; i-- {
			lib.budget.Spend(1)
			t.RawSetInt(i, limits.Get(t, i-1))
		}
	default:
		luacall.Error(L, "wrong number of arguments to 'insert'")
	}
	t.RawSetInt(position, L.Get(-1))
	return 0
}

func (lib *library) remove(L *lua.LState) int {
	t := luacall.Table(L, 1)
	end := lib.budget.Len(t)
	position := luacall.OptInt(L, 2, end)
	if position < 1 || position > end {
		return 0
	}
	L.Push(limits.Get(t, position))
	lib.budget.Spend(int64(end-position)>>3 + 1)
	if end < limits.ArrayMax-1 {
		// All there is lies in the array part, which shrinks by this. gopher-lua would keep the last one beyond its end.
		if position == end {
			t.RawSetInt(end, lua.LNil)
		}
		t.Remove(position)
		return 1
	}
	for ; position < end; position++ {
		lib.budget.Spend(1)
		t.RawSetInt(position, limits.Get(t, position+1))
	}
	t.RawSetInt(end, lua.LNil)
	return 1
}

// Unpack returns the function unpack of Lua's base library. Its limit is the
// number of values that C functions may return.
func Unpack(b *limits.Budget) lua.LGFunction {
	return func(L *lua.LState) int {
		t := luacall.Table(L, 1)
		first := luacall.OptInt(L, 2, 1)
		last := 0
		if L.Get(3) == lua.LNil {
			last = b.Len(t)
		} else {
			last = luacall.Int(L, 3)
		}
		if first > last {
			return 0
		}
		n := last - first + 1
		if n > math.MaxInt32 || !luacall.HasRoom(L, n) {
			luacall.Error(L, "too many results to unpack")
		}
		b.Spend(int64(n))
		for i := first; i <= last; i++ {
			L.Push(limits.Get(t, i))
		}
		return n
	}
}
