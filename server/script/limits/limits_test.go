package limits

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

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
	var deep lua.LGFunction
	deep = func(L *lua.LState) int {
		L.Push(L.NewFunction(deep))
		b.Call(L, 0, 0)
		return 0
	}
	require.Equal(t, "C stack overflow", raised(t, deep))
}
