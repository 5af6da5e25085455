package mathlib_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/luatest"
	"headgate/server/script/lualib/mathlib"
	"headgate/server/script/lualib/stringlib"
)

func newVM(t testing.TB) *luatest.VM {
	vm := luatest.NewVM(t, "math", func(L *lua.LState, b *limits.Budget) *lua.LTable { return mathlib.Open(L, b, mathlib.NewRandom()) })
	vm.L.SetGlobal("string", stringlib.Open(vm.L, vm.Budget))
	return vm
}

func TestAsRedis(t *testing.T) {
	redis, vm := luatest.Start(t), newVM(t) // which keep their random numbers' state
	for _, body := range cases {
		want, got := redis.Run(t, body), vm.Run(t, body)
		require.Equal(t, luatest.Explain(want), luatest.Explain(got), "%s", body)
	}
}

// TestRandomAsRedis seeds the generator and draws from random intervals.
func TestRandomAsRedis(t *testing.T) {
	const body = `
		local args, results = {...}, {}
		math.randomseed(args[1])
		for i = 2, #args, 2 do
			results[#results + 1] = math.random()
			results[#results + 1] = {pcall(math.random, args[i])}
			results[#results + 1] = {pcall(math.random, args[i], args[i + 1])}
		end
		return unpack(results)`
	redis, vm, rng := luatest.Start(t), newVM(t), luatest.NewRand(t)
	for range 50 {
		args := []string{luatest.RandomNumber(rng)}
		for range 100 {
			args = append(args, luatest.RandomNumber(rng), luatest.RandomNumber(rng))
		}
		require.Equal(t, redis.RunAgain(t, body, args...), vm.Run(t, body, args...), "seed %s", args[0])
	}
}

// TestFunctionsAsRedis compares the functions at random arguments, bit for bit
// where IEEE 754 says what the result is. The others may be off in the last
// place now and then, because the C library's are.
func TestFunctionsAsRedis(t *testing.T) {
	exact := map[string]bool{"abs": true, "ceil": true, "deg": true, "floor": true, "fmod": true, "frexp": true, "ldexp": true,
		"max": true, "min": true, "modf": true, "rad": true, "sqrt": true}
	names := []string{"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor", "fmod", "frexp", "ldexp",
		"log", "log10", "max", "min", "modf", "pow", "rad", "sin", "sinh", "sqrt", "tan", "tanh"}
	const calls = 2000
	redis, vm, rng := luatest.Start(t), newVM(t), luatest.NewRand(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			var args []string
			for range calls {
				args = append(args, randomArgument(rng), randomArgument(rng))
			}
			body := fmt.Sprintf(`local args = {...} for i = 1, #args, 2 do
				args[(i + 1) / 2] = string.format("%%.17g %%.17g", math.%s(args[i], args[i + 1]), 0) end
				return unpack(args, 1, #args / 2)`, name)
			want, got := strings.Split(luatest.Explain(redis.RunAgain(t, body, args...)), `" "`), strings.Split(luatest.Explain(vm.Run(t, body, args...)), `" "`)
			require.Equal(t, len(want), len(got))
			different := 0
			for i := range want {
				if want[i] == got[i] {
					continue
				}
				different++
				call := fmt.Sprint(name, args[2*i:][:2])
				require.False(t, exact[name], "%s: %s and %s", call, want[i], got[i])
				requireNeighbours(t, want[i], got[i], call)
			}
			require.LessOrEqual(t, different, calls/50)
		})
	}
}

func randomArgument(rng *rand.Rand) string {
	f := 0.0
	switch rng.IntN(8) {
	case 0:
		return []string{"0", "-0", "1", "-1", "inf", "-inf", "nan", "-nan", "0.5", "2", "10", "100"}[rng.IntN(12)]
	case 1:
		return luatest.RandomNumber(rng)
	case 2:
		f = float64(rng.IntN(2001) - 1000)
	case 3:
		f = rng.NormFloat64() * 1e-5
	default:
		f = rng.NormFloat64() * 4
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// requireNeighbours wants two numbers that are almost the same.
func requireNeighbours(t *testing.T, want, got, call string) {
	t.Helper()
	const most = 4 // units in the last place
	parse := func(text string) float64 {
		f, err := strconv.ParseFloat(strings.Fields(strings.Trim(strings.TrimPrefix(text, "true "), `"`))[0], 64) // the first of all has what Explain begins with
		require.NoError(t, err, "%s: %s and %s", call, want, got)
		return f
	}
	a, b := parse(want), parse(got)
	require.False(t, math.IsNaN(a) || math.IsNaN(b), "%s: %s and %s", call, want, got)
	distance := int64(math.Float64bits(a) - math.Float64bits(b))
	require.LessOrEqual(t, max(distance, -distance), int64(most), "%s: %s and %s", call, want, got)
}

// TestSharedRandom shows that what one Lua state draws the other does not.
func TestSharedRandom(t *testing.T) {
	draw := func(vm *luatest.VM) lua.LValue {
		results, raised := vm.Call(vm.Compile(t, `return math.random(1000000000)`))
		require.Nil(t, raised)
		return results[0]
	}
	r, alone := mathlib.NewRandom(), newVM(t)
	one, other := newVM(t), newVM(t)
	one.L.SetGlobal("math", mathlib.Open(one.L, one.Budget, r))
	other.L.SetGlobal("math", mathlib.Open(other.L, other.Budget, r))
	for range 10 {
		require.Equal(t, draw(alone), draw(one))
		require.Equal(t, draw(alone), draw(other))
	}
}

func BenchmarkMath(b *testing.B) {
	for _, call := range []string{"floor(3.7)", "floor(1e9)", "max(1, 2)", "min(5, 3)", "random()", "random(10)", "sqrt(2)", "exp(-0.5)", "log(7)", "pow(2, 10)", "sin(1)"} {
		b.Run(call, func(b *testing.B) {
			vm := newVM(b)
			results, raised := vm.Call(vm.Compile(b, "return function() return math."+call+" end"))
			require.Nil(b, raised)
			b.ReportAllocs()
			for b.Loop() {
				vm.L.Push(results[0])
				vm.L.Call(0, 1)
				vm.L.SetTop(0)
			}
		})
	}
}
