package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

const (
	// unpackMax is how many values a call of unpack may have on its stack: C
	// functions have so much (LUAI_MAXCSTACK).
	unpackMax = 8000
	// heapShown is what collectgarbage("count") and gcinfo answer, in KiB: a
	// script has no business knowing more of the server.
	heapShown = 69
	// pauseShown is what it says the collector was set to, in percent.
	pauseShown = 200
)

// openBase makes the global functions that belong to no library.
func (s *sandbox) openBase() {
	for name, fn := range map[string]lua.LGFunction{
		"assert": baseAssert, "collectgarbage": baseCollect, "error": s.baseError, "gcinfo": baseInfo,
		"getmetatable": s.baseGetMetatable, "ipairs": s.baseIpairs, "load": s.baseLoad, "loadstring": s.baseLoadString,
		"next": s.baseNext, "pairs": s.basePairs, "rawequal": baseRawEqual, "rawget": s.baseRawGet,
		"rawset": s.baseRawSet, "select": baseSelect, "setmetatable": s.baseSetMetatable, "tonumber": baseToNumber,
		"tostring": s.baseToString, "type": baseType, "unpack": s.baseUnpack,
	} {
		s.function(name, fn)
	}
	s.pcall = s.function("pcall", s.basePcall)
	s.xpcall = s.function("xpcall", s.baseXpcall)
	s.globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	s.thread.next = s.L.NewFunction(ipairsNext)
	s.thread.pairsNext = s.L.NewFunction(s.baseNext)
	if s.purpose == forScripts {
		s.function("__redis__err__handler", func(L *lua.LState) int {
			L.SetTop(1)
			return s.describe(L)
		})
	}
	s.libraryTable("coroutine", s.coroutines())
}

// toText is limits.ToString.
func toText(v lua.LValue) (string, bool) { return limits.ToString(v) }

func baseAssert(L *lua.LState) int {
	if lua.LVAsBool(limits.CheckAny(L, 1, "assert")) {
		return L.GetTop()
	}
	L.RaiseError("%s", limits.OptString(L, 2, "assert", "assertion failed!"))
	return 0
}

func baseCollect(L *lua.LState) int {
	switch option := limits.OptString(L, 1, "collectgarbage", "collect"); option {
	case "count":
		L.Push(lua.LNumber(heapShown))
	case "collect", "stop", "restart":
		L.Push(lua.LNumber(0))
	case "step":
		L.Push(lua.LFalse)
	case "setpause", "setstepmul":
		L.Push(lua.LNumber(pauseShown))
	default:
		limits.ArgError(L, 1, "collectgarbage", "invalid option '"+option+"'")
	}
	return 1
}

func baseInfo(L *lua.LState) int {
	L.Push(lua.LNumber(heapShown))
	return 1
}

func (s *sandbox) baseError(L *lua.LState) int {
	level := limits.OptInt(L, 2, "error", 1)
	v := L.Get(1)
	if message, ok := toText(v); ok && level > 0 {
		v = lua.LString(position(L, level) + message)
	}
	raise(L, v)
	return 0
}

// raise raises any value as it is.
func raise(L *lua.LState, v lua.LValue) { L.Error(v, 0) }

func (s *sandbox) baseGetMetatable(L *lua.LState) int {
	v := limits.CheckAny(L, 1, "getmetatable")
	if _, ok := v.(lua.LString); ok {
		L.Push(s.shownStrings)
		return 1
	}
	if t, ok := v.(*lua.LTable); ok && s.real(t) != t {
		if meta := s.metatables[t]; meta != nil {
			L.Push(meta)
		} else {
			L.Push(lua.LNil)
		}
		return 1
	}
	L.Push(L.GetMetatable(v))
	return 1
}

func (s *sandbox) baseSetMetatable(L *lua.LState) int {
	t := limits.CheckTable(L, 1, "setmetatable")
	meta := L.Get(2)
	if m, ok := meta.(*lua.LTable); ok {
		// The machine looks into a metatable by itself.
		meta = s.real(m)
	} else if meta != lua.LNil || L.GetTop() < 2 {
		limits.ArgError(L, 2, "setmetatable", "nil or table expected")
	}
	s.refuseReadOnly(L, t)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		L.RaiseError("cannot change a protected metatable")
	}
	t.Metatable = meta
	L.Push(t)
	return 1
}

func (s *sandbox) basePairs(L *lua.LState) int {
	t := limits.CheckTable(L, 1, "pairs")
	L.Push(s.thread.pairsNext)
	L.Push(t)
	L.Push(lua.LNil)
	return 3
}

func (s *sandbox) baseNext(L *lua.LState) int {
	t := s.real(limits.CheckTable(L, 1, "next"))
	s.engine.budget.Spend(1)
	key := L.Get(2)
	if n, ok := key.(lua.LNumber); ok && (n == 0 || math.IsNaN(float64(n))) && t.RawGet(n) == lua.LNil {
		raise(L, lua.LString("invalid key to 'next'"))
	}
	k, v := t.Next(key)
	L.Push(k)
	if k == lua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

func (s *sandbox) baseIpairs(L *lua.LState) int {
	t := limits.CheckTable(L, 1, "ipairs")
	L.Push(s.thread.next)
	L.Push(t)
	L.Push(lua.LNumber(0))
	return 3
}

// ipairsNext is what ipairs hands to the loop.
func ipairsNext(L *lua.LState) int {
	t := limits.CheckTable(L, 1, "?")
	i := limits.CheckInt(L, 2, "?") + 1
	v := limits.Get(t, i)
	if v == lua.LNil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(i))
	L.Push(v)
	return 2
}

func baseRawEqual(L *lua.LState) int {
	a, b := limits.CheckAny(L, 1, "rawequal"), limits.CheckAny(L, 2, "rawequal")
	L.Push(lua.LBool(L.RawEqual(a, b)))
	return 1
}

func (s *sandbox) baseRawGet(L *lua.LState) int {
	t := s.real(limits.CheckTable(L, 1, "rawget"))
	L.Push(t.RawGet(limits.CheckAny(L, 2, "rawget")))
	return 1
}

func (s *sandbox) baseRawSet(L *lua.LState) int {
	t := limits.CheckTable(L, 1, "rawset")
	key, v := limits.CheckAny(L, 2, "rawset"), limits.CheckAny(L, 3, "rawset")
	s.refuseReadOnly(L, t)
	if n, ok := key.(lua.LNumber); ok && math.IsNaN(float64(n)) {
		raise(L, lua.LString("table index is NaN"))
	}
	if key == lua.LNil {
		raise(L, lua.LString("table index is nil"))
	}
	s.engine.budget.Spend(1)
	t.RawSet(key, v)
	L.SetTop(1)
	return 1
}

func baseSelect(L *lua.LState) int {
	top := L.GetTop()
	if v, ok := L.Get(1).(lua.LString); ok && v == "#" {
		L.Push(lua.LNumber(top - 1))
		return 1
	}
	i := limits.CheckInt(L, 1, "select")
	switch {
	case i < 0:
		i = top + i
	case i > top:
		i = top
	}
	if i < 1 {
		limits.ArgError(L, 1, "select", "index out of range")
	}
	return top - i
}

func baseToNumber(L *lua.LState) int {
	base := limits.OptInt(L, 2, "tonumber", 10)
	if base == 10 {
		v := limits.CheckAny(L, 1, "tonumber")
		if n, ok := v.(lua.LNumber); ok {
			L.Push(n)
		} else if n, ok := limits.ToNumber(v); ok {
			L.Push(n)
		} else {
			L.Push(lua.LNil)
		}
		return 1
	}
	digits := limits.CheckString(L, 1, "tonumber")
	if base < 2 || base > 36 {
		limits.ArgError(L, 2, "tonumber", "base out of range")
	}
	if n, ok := parseBase(digits, base); ok {
		L.Push(lua.LNumber(n))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// parseBase reads a whole number as C's strtoul does, which wraps negative ones
// around and stops at the largest.
func parseBase(digits string, base int) (float64, bool) {
	digits = strings.Trim(digits, " \t\n\v\f\r")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if base == 16 && len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X") {
		digits = digits[2:]
	}
	if strings.ContainsAny(digits, "_+-") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil && n != math.MaxUint64 {
		return 0, false
	}
	if negative && err == nil {
		n = -n
	}
	return float64(n), true
}

func (s *sandbox) baseToString(L *lua.LState) int {
	v := limits.CheckAny(L, 1, "tostring")
	if meta, ok := L.GetMetatable(v).(*lua.LTable); ok {
		if f := meta.RawGetString("__tostring"); f != lua.LNil {
			L.Push(f)
			L.Push(v)
			s.engine.budget.Call(L, 1, 1)
			return 1
		}
	}
	L.Push(lua.LString(show(v)))
	return 1
}

// show is tostring without metamethods.
func show(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LNumber:
		return limits.FormatNumber(v)
	case *lua.LUserData:
		if v.Value == nil {
			return "userdata: (nil)"
		}
		return fmt.Sprintf("userdata: %p", v)
	}
	return v.String()
}

func baseType(L *lua.LState) int {
	L.Push(typeNames[limits.CheckAny(L, 1, "type").Type()])
	return 1
}

// typeNames are the names of types as Lua values.
var typeNames = func() (names [lua.LTChannel + 1]lua.LValue) {
	for i := range names {
		names[i] = lua.LString(lua.LValueType(i).String())
	}
	return names
}()

func (s *sandbox) baseUnpack(L *lua.LState) int {
	t := limits.CheckTable(L, 1, "unpack")
	from := limits.OptInt(L, 2, "unpack", 1)
	to := 0
	if L.Get(3) == lua.LNil {
		to = limits.Len(t)
	} else {
		to = limits.CheckInt(L, 3, "unpack")
	}
	if from > to {
		return 0
	}
	n := to - from + 1
	if n <= 0 || n+L.GetTop() > unpackMax {
		L.RaiseError("too many results to unpack")
	}
	s.engine.budget.Spend(int64(n))
	for i := from; i <= to; i++ {
		L.Push(limits.Get(t, i))
	}
	return n
}
