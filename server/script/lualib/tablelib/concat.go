package tablelib

import (
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/output"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
)

func (lib *library) concat(L *lua.LState) int {
	separator := luacall.OptString(L, 2, "")
	t := luacall.Table(L, 1)
	first := luacall.OptInt(L, 3, 1)
	last := 0
	if L.Get(4) == lua.LNil {
		last = lib.budget.Len(t)
	} else {
		last = luacall.Int(L, 4)
	}
	size := lib.measure(L, t, len(separator), first, last)
	text := lib.budget.Grow(L, lib.text[:0], size)
	for i := first; i <= last; i++ {
		switch v := limits.Get(t, i).(type) {
		case lua.LString:
			text = append(text, v...)
		case lua.LNumber:
			text = luanum.AppendNumber(text, float64(v))
		}
		if i < last {
			text = append(text, separator...)
		}
	}
	lib.budget.Spend(int64(len(text)>>3) + 1)
	if len(text) <= 1 {
		L.Push(luacall.StringValue(string(text)))
		return 1
	}
	s, next := output.String(L, lib.budget, text)
	lib.text = next
	L.Push(s)
	return 1
}

// measure returns how much room the elements from first to last take, with
// separators, and complains about the first that is no string or number.
func (lib *library) measure(L *lua.LState, t *lua.LTable, separator, first, last int) int {
	size := 0
	for i := first; i <= last; i++ {
		lib.budget.Spend(1)
		switch v := limits.Get(t, i).(type) {
		case lua.LString:
			size += len(v) + separator
		case lua.LNumber:
			size += luanum.TextMax + separator
		default:
			luacall.Errorf(L, "invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		if size > lib.budget.MaxString*2 {
			lib.budget.CheckString(L, size)
		}
	}
	return size
}
