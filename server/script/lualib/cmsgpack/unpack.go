package cmsgpack

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// unpacker is the state of one call of an unpack function.
type unpacker struct {
	L      *lua.LState
	budget *limits.Budget
	text   string
	at     int
}

// take returns the next n bytes.
func (u *unpacker) take(n uint64) string {
	if uint64(len(u.text)-u.at) < n {
		luacall.Errorf(u.L, "Missing bytes in input.")
	}
	start := u.at
	u.at += int(n)
	return u.text[start:u.at]
}

// unsigned returns the next n bytes as a big-endian integer.
func (u *unpacker) unsigned(n uint64) (value uint64) {
	digits := u.take(n)
	for i := range len(digits) {
		value = value<<8 | uint64(digits[i])
	}
	return value
}

// value returns the next value. Used is how many slots C Lua's stack would
// hold by now.
func (u *unpacker) value(used int) lua.LValue {
	u.budget.Spend(1)
	code := u.take(1)[0]
	if used+1 > stackMax {
		luacall.Errorf(u.L, "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
	}
	switch {
	case code < fixMap:
		return lua.LNumber(code)
	case code < fixArray:
		return u.dictionary(uint64(code&15), used)
	case code < fixText:
		return u.array(uint64(code&15), used)
	case code < codeNil:
		return u.string(uint64(code & 31))
	case code >= fixMinus:
		return lua.LNumber(int8(code))
	}
	switch code {
	case codeText8, codeText16, codeText32:
		return u.string(u.unsigned(1 << (code - codeText8)))
	case codeArray16, codeArray32:
		return u.array(u.unsigned(2<<(code-codeArray16)), used)
	case codeMap16, codeMap32:
		return u.dictionary(u.unsigned(2<<(code-codeMap16)), used)
	}
	return u.scalar(code)
}

// scalar returns the rest of a value that is neither text nor a table.
func (u *unpacker) scalar(code byte) lua.LValue {
	switch code {
	case codeNil:
		return lua.LNil
	case codeFalse:
		return lua.LFalse
	case codeTrue:
		return lua.LTrue
	case codeFloat32:
		return lua.LNumber(math.Float32frombits(uint32(u.unsigned(4))))
	case codeFloat64:
		return lua.LNumber(math.Float64frombits(u.unsigned(8)))
	case codeUint8, codeUint16, codeUint32, codeUint64:
		// Also unsigned integers pass through a signed one of 64 bits.
		return lua.LNumber(int64(u.unsigned(1 << (code - codeUint8))))
	case codeInt8:
		return lua.LNumber(int8(u.unsigned(1)))
	case codeInt16:
		return lua.LNumber(int16(u.unsigned(2)))
	case codeInt32:
		return lua.LNumber(int32(u.unsigned(4)))
	case codeInt64:
		return lua.LNumber(int64(u.unsigned(8)))
	}
	luacall.Errorf(u.L, "Bad data format in input.")
	return lua.LNil
}

func (u *unpacker) string(n uint64) lua.LValue {
	s := u.take(n)
	u.budget.CheckString(u.L, len(s))
	return lua.LString(strings.Clone(s))
}

// array returns a table of the next n values.
func (u *unpacker) array(n uint64, used int) lua.LValue {
	used++
	if used+1 > stackMax {
		luacall.Errorf(u.L, "stack overflow (in function mp_decode_to_lua_array)")
	}
	t := u.table(n, 0)
	for i := 1; n > 0; i, n = i+1, n-1 {
		v := u.value(used + 1)
		if v == lua.LNil {
			continue
		}
		if i > u.budget.MaxTable {
			u.budget.CheckTable(u.L, i)
		}
		t.RawSetInt(i, v)
	}
	u.budget.Release()
	return t
}

// dictionary returns a table of the next n keys and values.
func (u *unpacker) dictionary(n uint64, used int) lua.LValue {
	used++
	t := u.table(0, n)
	for i := 1; n > 0; i, n = i+1, n-1 {
		key := u.value(used)
		u.budget.Hold(key)
		u.budget.SpendRoom(t, key)
		v := u.value(used + 1)
		u.budget.Release()
		number, isNumber := key.(lua.LNumber)
		switch {
		case key == lua.LNil:
			u.L.Error(lua.LString("table index is nil"), 0)
		case isNumber && math.IsNaN(float64(number)):
			u.L.Error(lua.LString("table index is NaN"), 0)
		}
		if i > u.budget.MaxTable {
			u.budget.CheckTable(u.L, i)
		}
		t.RawSet(key, v)
	}
	u.budget.Release()
	return t
}

// table returns a table with room for the elements announced, as far as the
// input can hold them and a liar gains little. It is held until it is whole.
func (u *unpacker) table(listed, keyed uint64) *lua.LTable {
	const roomMax, steps = 64, 16
	u.budget.Spend(steps)
	left := uint64(len(u.text) - u.at)
	t := u.L.CreateTable(int(min(listed, left, roomMax)), int(min(keyed, left/2, roomMax)))
	u.budget.Hold(t)
	return t
}
