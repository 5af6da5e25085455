package limits

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

func TestFormatNumber(t *testing.T) {
	for want, n := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "1": 1, "-15": -15, "0.1": 0.1, "0.3": 0.1 + 0.2, "1e+15": 1e15, "1e+14": 1e14,
		"99999999999999": 99999999999999, "1.2345678901234e+14": 123456789012345, "3.1415926535898": math.Pi, "1e-05": 1e-5,
		"0.0001": 1e-4, "1e+100": 1e100, "inf": math.Inf(1), "-inf": math.Inf(-1), "9.007199254741e+15": 1 << 53,
		"123.456": 123.456,
	} {
		require.Equal(t, want, FormatNumber(lua.LNumber(n)))
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]float64{
		"5": 5, " 5 ": 5, "\t-5\n": -5, "+5": 5, "1e3": 1000, ".5": 0.5, "5.": 5, "0x10": 16, "-0x10": -16, "0X1f": 31, "010": 10,
		"1e400": math.Inf(1), "inf": math.Inf(1), "-inf": math.Inf(-1), "123456789012345678": 123456789012345678, "0x.8": 0.5, "0x1p4": 16,
	} {
		n, ok := ParseNumber(text)
		require.True(t, ok, text)
		require.Equal(t, want, float64(n), text)
	}
	for _, text := range []string{"", " ", "x", "5x", "1 2", "0x", "1e", "1_000", "0b1", "--5", "+-5", "0x1_0", "e5", "."} {
		_, ok := ParseNumber(text)
		require.False(t, ok, text)
	}
}

func TestLenBeyondTheArray(t *testing.T) {
	table := &lua.LTable{Metatable: lua.LNil}
	for _, n := range []int{0, 1, 10, ArrayMax - 2, ArrayMax - 1, ArrayMax, ArrayMax + 1, 3 * ArrayMax} {
		for i := 1; i <= n; i++ {
			table.RawSetInt(i, lua.LNumber(i))
		}
		require.Equal(t, n, Len(table))
		if n > 0 {
			require.Equal(t, lua.LNumber(n), Get(table, n))
		}
		require.Equal(t, lua.LNil, Get(table, n+1))
		require.Equal(t, lua.LNil, Get(table, 0))
	}
}

func TestBudget(t *testing.T) {
	checks := 0
	b := NewBudget()
	b.Check = func() { checks++; b.Steps = 10 }
	for range 100 {
		b.Spend(1)
	}
	require.Equal(t, 10, checks)
}

// raised runs fn from Lua and returns the error it raises.
func raised(t *testing.T, fn lua.LGFunction) string {
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer L.Close()
	L.SetGlobal("f", L.NewFunction(fn))
	err := L.DoString("f(1)")
	require.Error(t, err)
	return strings.SplitN(err.Error(), "\n", 2)[0]
}

func TestRefusals(t *testing.T) {
	b := NewBudget()
	require.Equal(t, "<string>:1: not enough memory", raised(t, func(L *lua.LState) int { b.CheckString(L, StringMax+1); return 0 }))
	require.Equal(t, "<string>:1: not enough memory", raised(t, func(L *lua.LState) int { b.CheckString(L, -1); return 0 }))
	require.Equal(t, "<string>:1: not enough memory", raised(t, func(L *lua.LState) int { b.CheckTable(L, TableMax+1); return 0 }))
	require.Equal(t, "<string>:1: bad argument #1 to 'f' (table expected, got number)",
		raised(t, func(L *lua.LState) int { CheckTable(L, 1, "f"); return 0 }))
	require.Equal(t, "<string>:1: bad argument #2 to 'f' (number expected, got no value)",
		raised(t, func(L *lua.LState) int { CheckInt(L, 2, "f"); return 0 }))
	var deep lua.LGFunction
	deep = func(L *lua.LState) int {
		L.Push(L.NewFunction(deep))
		b.Call(L, 0, 0)
		return 0
	}
	require.Equal(t, "<string>:1: stack overflow", raised(t, deep))
}

func TestTruncateInt(t *testing.T) {
	for f, want := range map[float64]int64{
		1.9: 1, -1.9: -1, 1e18: 1e18, 1e19: math.MinInt64, -1e19: math.MinInt64, math.Inf(1): math.MinInt64,
	} {
		require.Equal(t, want, TruncateInt(f))
	}
	require.Equal(t, int64(math.MinInt64), TruncateInt(math.NaN()))
}
