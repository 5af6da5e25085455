package limits

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// weighed are scripts that leave much behind, in one global.
var weighed = map[string]string{
	"long strings":        "t = {} for i = 1, 40 do t[i] = rep(1e6) end",
	"short strings":       "t = {} for i = 1, 1e5 do t[i] = rep(20) end",
	"one string, often":   "t = {} local s = rep(1e6) for i = 1, 1e5 do t[i] = s end",
	"numbers":             "t = {} for i = 1, 3e5 do t[i] = i + 0.5 end",
	"one number of many":  "t = {} for i = 1, 3e4 do for j = 1, 32 do t[i] = i + j end end",
	"empty tables":        "t = {} for i = 1, 1e5 do t[i] = {} end",
	"lists":               "t = {} for i = 1, 1e5 do t[i] = {i, i, i} end",
	"a chain":             "t = {} for i = 1, 1e5 do t = {t} end",
	"named fields":        "t = {} for i = 1, 5e4 do t[i] = {name = i, other = i} end",
	"filled later":        "t = {} for i = 1, 2e4 do local x = {} x.name = i t[i] = x end",
	"filled by number":    "t = {} for i = 1, 5e4 do local x = {} x[2.5] = i t[i] = x end",
	"filled from one":     "t = {} for i = 1, 5e4 do local x = {} x[1] = i t[i] = x end",
	"with one field":      "t = {} for i = 1, 5e4 do t[i] = {name = i} end",
	"emptied again":       "t = {} for i = 1, 2e4 do local x = {} x.name = i x.name = nil t[i] = x end",
	"a large map":         "t = {} for i = 1, 1e5 do t['key' .. i] = i end",
	"a map of numbers":    "t = {} for i = 1, 1e5 do t[i + 0.5] = i end",
	"a map emptied again": "t = {} for i = 1, 1e5 do t['key' .. i] = i end for i = 1, 1e5 do t['key' .. i] = nil end",
	"closures":            "t = {} for i = 1, 1e5 do local n = i t[i] = function() n = n + 1 return n end end",
	"waiting coroutines":  "t = {} for i = 1, 100 do local s = rep(1e5) t[i] = coroutine.create(function() return s end) end",
	"their closures":      "t = {} for i = 1, 100 do t[i] = coroutine.wrap(function() local s, n = rep(1e5), i coroutine.yield(function() return n end) return s end)() end",
	"coroutines":          "t = {} for i = 1, 2e3 do t[i] = coroutine.create(function() end) end",
}

// TestScaleAgainstTheHeap: what is weighed is at least what the heap has grown
// by, and not far above it.
func TestScaleAgainstTheHeap(t *testing.T) {
	for name, src := range weighed {
		L := lua.NewState(lua.Options{SkipOpenLibs: true, RegistryMaxSize: 1 << 20})
		L.SetGlobal("rep", L.NewFunction(func(L *lua.LState) int {
			L.Push(lua.LString(strings.Repeat("x", L.ToInt(1))))
			return 1
		}))
		lua.OpenCoroutine(L)
		L.Options.MinimizeStackMemory, L.Options.RegistrySize = true, 128 // As the engine has them.
		empty := weigh(L)
		before := liveBytes()
		require.NoError(t, L.DoString(src), name)
		grown := liveBytes() - before
		weight := weigh(L) - empty
		t.Logf("%-20s %9d bytes in the heap, %9d weighed", name, grown, weight)
		require.GreaterOrEqual(t, weight, grown*9/10, "%s: %d bytes in the heap", name, grown)
		require.LessOrEqual(t, weight, grown*2+1<<20, "%s: %d bytes in the heap", name, grown)
		L.Close()
	}
}

func weigh(L *lua.LState) int {
	var s Scale
	s.Weigh(L)
	s.Weigh(L.G.Global)
	return s.Bytes
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestScaleEnds: what is too much is not weighed to its end, and others have
// their turns.
func TestScaleEnds(t *testing.T) {
	table := &lua.LTable{Metatable: lua.LNil}
	for i := range 100_000 {
		table.RawSetString(strconv.Itoa(i), &lua.LTable{Metatable: lua.LNil})
	}
	pauses := 0
	s := Scale{Most: 20 << 20, Pause: func() { pauses++ }}
	s.Weigh(table)
	require.Greater(t, pauses, 10)
	s = Scale{Most: 1000}
	s.Weigh(table)
	require.Greater(t, s.Bytes, 1000)
	require.Less(t, s.count, 300_000)
}

// TestClosedVariablesKeepNoRegisters: once they have been weighed.
func TestClosedVariablesKeepNoRegisters(t *testing.T) {
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer L.Close()
	lua.OpenCoroutine(L)
	before := liveBytes()
	require.NoError(t, L.DoString("t = {} for i = 1, 1000 do t[i] = coroutine.wrap(function() local f do local n = i f = function() n = n + 1 return n end end coroutine.yield(f) end)() end"))
	weight := weigh(L)
	require.Less(t, weight, 8<<20)
	require.Less(t, liveBytes()-before, 8<<20)
	require.NoError(t, L.DoString("n = t[7]() + t[7]()"))
	require.Equal(t, lua.LNumber(17), L.GetGlobal("n"))
}

// TestAStateThatEnded can be asked whether it is dead, and be weighed.
func TestAStateThatEnded(t *testing.T) {
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer L.Close()
	L.Options.MinimizeStackMemory = true
	lua.OpenCoroutine(L)
	require.NoError(t, L.DoString("co = coroutine.create(function() local n = 1 f = function() n = n + 1 return n end end) coroutine.resume(co)"))
	End(L.GetGlobal("co").(*lua.LState))
	require.NoError(t, L.DoString("ok = coroutine.resume(co) s = coroutine.status(co) .. f() .. f()"))
	require.Equal(t, lua.LString("dead23"), L.GetGlobal("s"))
	require.Equal(t, lua.LFalse, L.GetGlobal("ok"))
	require.Positive(t, weigh(L))
}
