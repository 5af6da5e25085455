package cmsgpack

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/output"
	"headgate/server/script/lualib/luacall"
)

const (
	// nestingMax is how deep pack follows tables.
	nestingMax = 16
	// stackMax is how many values C Lua lets a C function keep on its stack. It
	// bounds how deep unpack follows tables and how many values it returns.
	stackMax = 8000
)

// The first bytes of values. Those below 0x80 and from 0xe0 on are small
// integers themselves.
const (
	fixMap      = 0x80
	fixArray    = 0x90
	fixText     = 0xa0
	codeNil     = 0xc0
	codeFalse   = 0xc2
	codeTrue    = 0xc3
	codeFloat32 = 0xca
	codeFloat64 = 0xcb
	codeUint8   = 0xcc
	codeUint16  = 0xcd
	codeUint32  = 0xce
	codeUint64  = 0xcf
	codeInt8    = 0xd0
	codeInt16   = 0xd1
	codeInt32   = 0xd2
	codeInt64   = 0xd3
	codeText8   = 0xd9
	codeText16  = 0xda
	codeText32  = 0xdb
	codeArray16 = 0xdc
	codeArray32 = 0xdd
	codeMap16   = 0xde
	codeMap32   = 0xdf
	fixMinus    = 0xe0
)

type library struct {
	budget *limits.Budget
	out    []byte // reused by pack
}

// Open returns the library's table. Its functions count what they read and
// write as steps of b and obey its limits. It is used by one goroutine at a
// time, as L is.
func Open(L *lua.LState, b *limits.Budget) *lua.LTable {
	l := &library{budget: b}
	lib := L.CreateTable(0, 8)
	lib.RawSetString("pack", L.NewFunction(l.pack))
	lib.RawSetString("unpack", L.NewFunction(l.unpack))
	lib.RawSetString("unpack_one", L.NewFunction(l.unpackOne))
	lib.RawSetString("unpack_limit", L.NewFunction(l.unpackLimit))
	lib.RawSetString("_NAME", lua.LString("cmsgpack"))
	lib.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	lib.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	lib.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	return lib
}

// pack(...) returns the values, one after the other.
func (l *library) pack(L *lua.LState) int {
	count := L.GetTop()
	if count == 0 {
		luacall.ArgError(L, 0, "MessagePack pack needs input.")
	}
	p := packer{L: L, budget: l.budget, out: l.out[:0]}
	for i := 1; i <= count; i++ {
		p.value(L.Get(i), 0)
	}
	var packed lua.LString
	packed, l.out = output.String(L, l.budget, p.out)
	L.Push(packed)
	return 1
}

// unpack(text) returns all values.
func (l *library) unpack(L *lua.LState) int {
	text := luacall.String(L, 1)
	return l.unpackSome(L, text, 0, 0)
}

// unpack_one(text, [offset]) returns an offset and one value.
func (l *library) unpackOne(L *lua.LState) int {
	offset := luacall.OptInteger(L, 2, 0)
	return l.unpackSome(L, luacall.String(L, 1), 1, offset)
}

// unpack_limit(text, limit, [offset]) returns an offset and up to limit
// values.
func (l *library) unpackLimit(L *lua.LState) int {
	limit := luacall.Integer(L, 2)
	offset := luacall.OptInteger(L, 3, 0)
	return l.unpackSome(L, luacall.String(L, 1), limit, offset)
}

// unpackSome returns up to limit values from offset on, after the offset to go
// on from, which is -1 at the end. Limit and offset 0 ask for all values and
// for no offset.
func (l *library) unpackSome(L *lua.LState, text string, limit, offset int) int {
	if offset < 0 || limit < 0 {
		// The limit's place in the message has always held the length.
		luacall.Errorf(L, "Invalid request to unpack with offset of %d and limit of %d.", int32(offset), len(text))
	}
	if offset > len(text) {
		luacall.Errorf(L, "Start offset %d greater than input length %d.", int32(offset), len(text))
	}
	all := limit == 0 && offset == 0
	if all {
		limit = math.MaxInt32
	}
	L.SetTop(1)
	u := unpacker{L: L, budget: l.budget, text: text, at: offset}
	if !all {
		L.Push(lua.LNil)
	}
	count := 0
	for ; u.at < len(text) && count < limit; count++ {
		L.Push(u.value(1 + count))
	}
	if all {
		return count
	}
	if 1+count+1 > stackMax {
		luacall.Errorf(L, "stack overflow (in function mp_unpack_full)")
	}
	next := u.at
	if next == len(text) {
		next = -1
	}
	L.Replace(2, lua.LNumber(next))
	return count + 1
}
