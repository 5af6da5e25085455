package script

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/luanum"
	"headgate/server/script/lualib/tablelib"
)

const (
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
		"getmetatable": s.baseGetMetatable, "ipairs": s.baseIpairs, "loadstring": s.baseLoadString,
		"next": s.baseNext, "pairs": s.basePairs, "rawequal": baseRawEqual, "rawget": s.baseRawGet,
		"rawset": s.baseRawSet, "select": baseSelect, "setmetatable": s.baseSetMetatable, "tonumber": baseToNumber,
		"tostring": s.baseToString, "type": baseType, "unpack": tablelib.Unpack(s.engine.budget),
	} {
		s.function(name, fn)
	}
	s.pcall = s.function("pcall", s.basePcall)
	s.xpcall = s.function("xpcall", s.baseXpcall)
	s.load = s.function("load", s.baseLoad)
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

// toText is luacall.ToString.
func toText(v lua.LValue) (string, bool) { return luacall.ToString(v) }

func baseAssert(L *lua.LState) int {
	if lua.LVAsBool(luacall.Any(L, 1)) {
		return L.GetTop()
	}
	luacall.Error(L, luacall.OptString(L, 2, "assertion failed!"))
	return 0
}

// collected is what collectgarbage answers for each of its options. None does anything.
var collected = map[string]lua.LValue{
	"collect": lua.LNumber(0), "stop": lua.LNumber(0), "restart": lua.LNumber(0), "count": lua.LNumber(heapShown),
	"step": lua.LFalse, "setpause": lua.LNumber(pauseShown), "setstepmul": lua.LNumber(pauseShown),
}

func baseCollect(L *lua.LState) int {
	option := cut(luacall.OptString(L, 1, "collect"))
	answer, known := collected[option]
	if !known {
		luacall.ArgError(L, 1, "invalid option '"+option+"'")
	}
	luacall.OptInt(L, 2, 0)
	return push(L, answer)
}

func baseInfo(L *lua.LState) int {
	L.Push(lua.LNumber(heapShown))
	return 1
}

func (s *sandbox) baseError(L *lua.LState) int {
	level := luacall.OptInt(L, 2, 1)
	v := L.Get(1)
	if message, ok := toText(v); ok && level > 0 {
		luacall.SpendOn(L, len(message))
		v = lua.LString(s.positionSeen(L, level) + message)
	}
	raise(L, v)
	return 0
}

// raise raises any value as it is.
func raise(L *lua.LState, v lua.LValue) { L.Error(v, 0) }

func (s *sandbox) baseGetMetatable(L *lua.LState) int {
	v := luacall.Any(L, 1)
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
	t := luacall.Table(L, 1)
	meta := L.Get(2)
	if m, ok := meta.(*lua.LTable); ok {
		// The machine looks into a metatable by itself.
		meta = s.real(m)
	} else if meta != lua.LNil || L.GetTop() < 2 {
		luacall.ArgError(L, 2, "nil or table expected")
	}
	s.refuseReadOnly(L, t)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		luacall.Error(L, "cannot change a protected metatable")
	}
	t.Metatable = meta
	L.Push(t)
	return 1
}

func (s *sandbox) basePairs(L *lua.LState) int {
	t := luacall.Table(L, 1)
	L.Push(s.thread.pairsNext)
	L.Push(t)
	L.Push(lua.LNil)
	return 3
}

func (s *sandbox) baseNext(L *lua.LState) int {
	t := s.real(luacall.Table(L, 1))
	s.engine.budget.Spend(1)
	luacall.SpendOnKey(L, L.Get(2))
	k, v, passed, ok := limits.Next(t, L.Get(2))
	if lib := s.engine.run.library; !ok && lib != nil {
		k, v, passed, ok = lib.removed.Next(t, L.Get(2))
	}
	s.engine.budget.Spend(int64(passed))
	if !ok {
		raise(L, lua.LString("invalid key to 'next'"))
	}
	L.Push(k)
	if k == lua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

func (s *sandbox) baseIpairs(L *lua.LState) int {
	t := luacall.Table(L, 1)
	L.Push(s.thread.next)
	L.Push(t)
	L.Push(lua.LNumber(0))
	return 3
}

// ipairsNext is what ipairs hands to the loop.
func ipairsNext(L *lua.LState) int {
	t := luacall.Table(L, 1)
	i := luacall.Integer(L, 2) + 1
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
	a, b := luacall.Any(L, 1), luacall.Any(L, 2)
	luacall.SpendOnKey(L, a)
	L.Push(lua.LBool(L.RawEqual(a, b)))
	return 1
}

func (s *sandbox) baseRawGet(L *lua.LState) int {
	t := s.real(luacall.Table(L, 1))
	key := luacall.Any(L, 2)
	luacall.SpendOnKey(L, key)
	L.Push(t.RawGet(key))
	return 1
}

func (s *sandbox) baseRawSet(L *lua.LState) int {
	t := luacall.Table(L, 1)
	key, v := luacall.Any(L, 2), luacall.Any(L, 3)
	s.refuseReadOnly(L, t)
	if n, ok := key.(lua.LNumber); ok && math.IsNaN(float64(n)) {
		raise(L, lua.LString("table index is NaN"))
	}
	if key == lua.LNil {
		raise(L, lua.LString("table index is nil"))
	}
	s.engine.budget.Spend(1)
	luacall.SpendOnKey(L, key)
	s.engine.budget.SpendRoom(t, key)
	t.RawSet(key, v)
	L.SetTop(1)
	return 1
}

func baseSelect(L *lua.LState) int {
	top := L.GetTop()
	if v, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(v), "#") {
		L.Push(lua.LNumber(top - 1))
		return 1
	}
	i := luacall.Int(L, 1)
	switch {
	case i < 0:
		i = top + i
	case i > top:
		i = top
	}
	if i < 1 {
		luacall.ArgError(L, 1, "index out of range")
	}
	return top - i
}

func baseToNumber(L *lua.LState) int {
	base := luacall.OptInteger(L, 2, 10)
	if base == 10 {
		v := luacall.Any(L, 1)
		if n, ok := v.(lua.LNumber); ok {
			L.Push(n)
		} else if n, ok := luacall.ToNumber(L, v); ok {
			L.Push(n)
		} else {
			L.Push(lua.LNil)
		}
		return 1
	}
	digits := luacall.String(L, 1)
	if base < 2 || base > 36 {
		luacall.ArgError(L, 2, "base out of range")
	}
	luacall.SpendOn(L, len(digits))
	if f, ok := luanum.ParseBase(digits, base); ok {
		L.Push(lua.LNumber(f))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

func (s *sandbox) baseToString(L *lua.LState) int {
	v := luacall.Any(L, 1)
	if f := metamethod(L, v, lua.LNil, "__tostring"); f != lua.LNil {
		L.Push(f)
		L.Push(v)
		s.engine.budget.Call(L, 1, 1)
		return 1
	}
	L.Push(lua.LString(show(v)))
	return 1
}

// show is tostring without metamethods.
func show(v lua.LValue) string {
	switch v := v.(type) {
	case lua.LNumber:
		return luanum.FormatNumber(float64(v))
	case *lua.LUserData:
		if v.Value == nil {
			return "userdata: (nil)"
		}
		return fmt.Sprintf("userdata: %p", v)
	}
	return v.String()
}

func baseType(L *lua.LState) int {
	L.Push(typeNames[luacall.Any(L, 1).Type()])
	return 1
}

// typeNames are the names of types as Lua values.
var typeNames = func() (names [lua.LTChannel + 1]lua.LValue) {
	for i := range names {
		names[i] = lua.LString(lua.LValueType(i).String())
	}
	return names
}()
