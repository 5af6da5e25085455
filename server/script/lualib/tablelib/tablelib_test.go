package tablelib_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
	"headgate/server/script/lualib/stringlib"
	"headgate/server/script/lualib/tablelib"
)

func newVM(t testing.TB) *luatest.VM {
	vm := luatest.NewVM(t, "table", tablelib.Open)
	vm.L.SetGlobal("string", stringlib.Open(vm.L, vm.Budget))
	vm.L.SetGlobal("unpack", vm.L.NewFunction(tablelib.Unpack(vm.Budget)))
	return vm
}

func TestAsRedis(t *testing.T) {
	redis, vm := luatest.Start(t), newVM(t)
	for _, body := range cases {
		want, got := redis.Run(t, body), vm.Run(t, body)
		require.Equal(t, luatest.Explain(want), luatest.Explain(got), "%s", body)
	}
}

// TestSortAsRedis sorts random tables with many equal elements and with
// comparison functions that contradict themselves. Both have to be in the same
// order, or fail in the same way, as after redis-server's sort.
func TestSortAsRedis(t *testing.T) {
	const body = `
		local seed, n, values, kind = ...
		local state, calls, t = tonumber(seed), 0, {}
		local function random(m) state = (state * 16807) % 2147483647 return state % m end
		for i = 1, tonumber(n) do t[i] = {random(tonumber(values)), i} end
		local less = {
			key = function(a, b) return a[1] < b[1] end,
			wrong = function(a, b) return a[1] <= b[1] end,
			random = function() return random(2) == 0 end,
		}
		local ok, e = pcall(table.sort, t, function(a, b)
			calls = calls + 1
			return less[kind](a or {0}, b or {0})
		end)
		local o = {}
		for i = 1, tonumber(n) do o[i] = (t[i] or {0, "nil"})[2] end
		return ok, e, calls, table.concat(o, " ")`
	redis, vm, rng := luatest.Start(t), newVM(t), luatest.NewRand(t)
	for range 1000 {
		args := []string{fmt.Sprint(1 + rng.IntN(1<<30)), fmt.Sprint(rng.IntN(120)), fmt.Sprint(1 + rng.IntN(20)),
			[]string{"key", "key", "wrong", "random"}[rng.IntN(4)]}
		want, got := redis.RunAgain(t, body, args...), vm.Run(t, body, args...)
		require.Equal(t, luatest.Explain(want), luatest.Explain(got), "%v", args)
	}
}

// TestLimits runs what would take too much memory or time.
func TestLimits(t *testing.T) {
	type stopped struct{}
	tests := []struct{ name, body string }{
		{"concat", `local s, t = string.rep("x", 1000000), {} for i = 1, 200 do t[i] = s end return table.concat(t)`},
		{"insert far below", `return table.insert({}, -2^31, 1)`},
		{"sort", `local t = {} for i = 1, 8000 do t[i] = i end for i = 1, 1000 do table.sort(t) end`},
		{"remove", `local t = {} for i = 1, 20000 do t[i] = i end for i = 1, 20000 do table.remove(t, 1) end`},
		{"maxn", `local t = {} for i = 1, 8000 do t[i] = i end for i = 1, 5000 do table.maxn(t) end`},
		{"nested callbacks", `local function f() table.foreach({1}, f) end f()`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vm := newVM(t)
			const steps = 2_000_000
			vm.Budget.Steps = steps
			vm.Budget.Check = func() {
				if vm.Budget.Want == 0 {
					vm.L.RaiseError("%v", stopped{})
				}
			}
			_, raised := vm.Call(vm.Compile(t, test.body))
			require.NotNil(t, raised)
			require.IsType(t, lua.LString(""), raised)
		})
	}
}

func BenchmarkConcat(b *testing.B) { benchmark(b, `return table.concat(t, ",")`) }

func BenchmarkInsertRemove(b *testing.B) {
	benchmark(b, `table.insert(t, 1) return table.remove(t)`)
}

func BenchmarkUnpack(b *testing.B) { benchmark(b, `return unpack(t)`) }

func BenchmarkSort(b *testing.B) { benchmark(b, `return table.sort(t)`) }

func benchmark(b *testing.B, body string) {
	vm := newVM(b)
	_, raised := vm.Call(vm.Compile(b, `t = {} for i = 1, 20 do t[i] = "element" .. i end`))
	require.Nil(b, raised)
	results, raised := vm.Call(vm.Compile(b, "return function() "+body+" end"))
	require.Nil(b, raised)
	b.ReportAllocs()
	for b.Loop() {
		vm.L.Push(results[0])
		vm.L.Call(0, lua.MultRet)
		vm.L.SetTop(0)
	}
}

// TestConcatMakesOneCopy: a long result is what it was built in.
func TestConcatMakesOneCopy(t *testing.T) {
	const size, parts = 1 << 20, 16
	vm := newVM(t)
	require.NoError(t, vm.L.DoString(fmt.Sprintf("t = {} for i = 1, %d do t[i] = string.rep('x', %d) end", parts, size/parts)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, vm.L.DoString("n = table.concat(t) m = table.concat(t, '-')"))
	runtime.ReadMemStats(&after)
	require.Equal(t, size, len(vm.L.GetGlobal("n").String()))
	require.Equal(t, size+parts-1, len(vm.L.GetGlobal("m").String()))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*size+size/4))
}
