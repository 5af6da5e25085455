package bitlib

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
)

// FuzzBit calls every function with any two numbers, and with a text in the place of one. Results are numbers of 32 bits, except
// tohex's digits, and what is undone is as it was.
func FuzzBit(f *testing.F) {
	f.Add(0.0, 31.0, "0x10")
	f.Add(-1.0, 4294967296.0, "")
	f.Add(1e300, 0.5, "nan")
	vm := luatest.NewVM(f, "bit", Open)
	call := func(function string, args ...lua.LValue) lua.LValue {
		results, _ := vm.Call(vm.L.GetGlobal("bit").(*lua.LTable).RawGetString(function).(*lua.LFunction), args...)
		if len(results) == 0 {
			return lua.LNil
		}
		return results[0]
	}
	f.Fuzz(func(t *testing.T, a, b float64, text string) {
		x, y, s := lua.LNumber(a), lua.LNumber(b), lua.LString(text)
		for _, name := range []string{"tobit", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "bswap"} {
			n, ok := call(name, x, y).(lua.LNumber)
			require.True(t, ok, name)
			require.Equal(t, lua.LNumber(int32(n)), n, name)
			call(name, s, y)
			call(name, x, s)
		}
		bits := call("tobit", x)
		require.Equal(t, bits, call("bnot", call("bnot", bits)))
		require.Equal(t, bits, call("bswap", call("bswap", bits)))
		require.Equal(t, bits, call("ror", call("rol", bits, y), y))
		require.Equal(t, bits, call("bxor", call("bxor", bits, y), y))
		digits := call("tohex", x, y)
		require.LessOrEqual(t, len(digits.(lua.LString)), 8)
		call("tohex", s, y)
	})
}
