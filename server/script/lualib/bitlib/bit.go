// Package bitlib is the Lua library "bit" of Redis: operations on 32-bit
// integers with the semantics of Lua BitOp. Arguments are reduced modulo 2^32,
// results are signed.
package bitlib

import (
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// Open returns the library's table. Its functions count their arguments as
// steps of b. It is used by one goroutine at a time, as L is.
func Open(L *lua.LState, b *limits.Budget) *lua.LTable {
	lib := L.CreateTable(0, 12)
	unary := func(name string, operation func(x uint32) uint32) {
		lib.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			b.Spend(1)
			return push(L, operation(argument(L, 1, name)))
		}))
	}
	fold := func(name string, operation func(x, y uint32) uint32) {
		lib.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			x := argument(L, 1, name)
			b.Spend(int64(L.GetTop()))
			for i := L.GetTop(); i > 1; i-- {
				x = operation(x, argument(L, i, name))
			}
			return push(L, x)
		}))
	}
	shift := func(name string, operation func(x uint32, n int) uint32) {
		lib.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			b.Spend(1)
			x := argument(L, 1, name)
			return push(L, operation(x, int(argument(L, 2, name)&31)))
		}))
	}
	unary("tobit", func(x uint32) uint32 { return x })
	unary("bnot", func(x uint32) uint32 { return ^x })
	unary("bswap", bits.ReverseBytes32)
	fold("band", func(x, y uint32) uint32 { return x & y })
	fold("bor", func(x, y uint32) uint32 { return x | y })
	fold("bxor", func(x, y uint32) uint32 { return x ^ y })
	shift("lshift", func(x uint32, n int) uint32 { return x << n })
	shift("rshift", func(x uint32, n int) uint32 { return x >> n })
	shift("arshift", func(x uint32, n int) uint32 { return uint32(int32(x) >> n) })
	shift("rol", bits.RotateLeft32)
	shift("ror", func(x uint32, n int) uint32 { return bits.RotateLeft32(x, -n) })
	lib.RawSetString("tohex", L.NewFunction(func(L *lua.LState) int {
		b.Spend(1)
		return toHex(L)
	}))
	return lib
}

// argument returns the low 32 bits of argument i. Adding 2^52 + 2^51 leaves a
// double's whole part in the low bits of its mantissa, rounded to even, which
// also decides what becomes of numbers that are no 32-bit integers.
func argument(L *lua.LState, i int, name string) uint32 {
	const shiftToMantissa = 1<<52 + 1<<51
	n, ok := luacall.ToNumber(L, L.Get(i))
	if !ok {
		luacall.TypeError(L, i, "number")
	}
	return uint32(math.Float64bits(float64(n) + shiftToMantissa))
}

func push(L *lua.LState, x uint32) int {
	L.Push(lua.LNumber(int32(x)))
	return 1
}

// toHex prints as many digits as the second argument says, by default all 8;
// a negative count asks for capitals.
func toHex(L *lua.LState) int {
	const name, digitsMax = "tohex", 8
	x := argument(L, 1, name)
	count := int64(digitsMax)
	if L.GetTop() > 1 {
		count = int64(int32(argument(L, 2, name)))
	}
	digits := "0123456789abcdef"
	if count < 0 {
		count, digits = -count, "0123456789ABCDEF"
	}
	count = min(count, digitsMax)
	var text [digitsMax]byte
	for i := count - 1; i >= 0; i-- {
		text[i] = digits[x&15]
		x >>= 4
	}
	L.Push(lua.LString(text[:count]))
	return 1
}
