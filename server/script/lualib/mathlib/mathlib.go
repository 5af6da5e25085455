// Package mathlib is the Lua library "math" of Redis: that of Lua 5.1 with
// Redis's own random numbers.
package mathlib

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/luacall"
)

// Open returns the library's table. It is used by one goroutine at a time, as L
// is, and takes random numbers from r, which all Lua states of a server share.
func Open(L *lua.LState, b *limits.Budget, r *Random) *lua.LTable {
	functions := map[string]lua.LGFunction{
		"abs":        unary(math.Abs),
		"acos":       unary(arcCosine),
		"asin":       unary(arcSine),
		"atan":       unary(arcTangent),
		"atan2":      binary(arcTangent2),
		"ceil":       whole(math.Ceil),
		"cos":        ofAngle(b, cosine),
		"cosh":       unary(hyperbolicCosine),
		"deg":        unary(func(x float64) float64 { return x / radiansPerDegree }),
		"exp":        unary(exponential),
		"floor":      whole(math.Floor),
		"fmod":       fmod(b),
		"frexp":      frexp,
		"ldexp":      ldexp,
		"log":        unary(logarithm),
		"log10":      unary(logarithm10),
		"max":        extreme(b, func(x, best float64) bool { return x > best }),
		"min":        extreme(b, func(x, best float64) bool { return x < best }),
		"modf":       modf,
		"pow":        binary(Pow),
		"rad":        unary(func(x float64) float64 { return x * radiansPerDegree }),
		"random":     r.random,
		"randomseed": r.randomSeed,
		"sin":        ofAngle(b, sine),
		"sinh":       unary(hyperbolicSine),
		"sqrt":       unary(squareRoot),
		"tan":        ofAngle(b, tangent),
		"tanh":       unary(hyperbolicTangent),
	}
	table := L.CreateTable(0, len(functions)+3)
	for name, f := range functions {
		table.RawSetString(name, L.NewFunction(f))
	}
	table.RawSetString("mod", table.RawGetString("fmod")) // its name in Lua 5.0
	table.RawSetString("pi", lua.LNumber(math.Pi))
	table.RawSetString("huge", lua.LNumber(math.Inf(1)))
	return table
}

const radiansPerDegree = math.Pi / 180

// unary makes a function of one number.
func unary(f func(float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		L.Push(lua.LNumber(f(luacall.Number(L, 1))))
		return 1
	}
}

// ofAngle is unary for a function that takes long where the number is far from 0.
func ofAngle(b *limits.Budget, f func(float64) float64) lua.LGFunction {
	const farSteps = 100 // of reduceFar
	return func(L *lua.LState) int {
		x := luacall.Number(L, 1)
		if math.Abs(x) >= nearMax {
			b.Spend(farSteps)
		}
		L.Push(lua.LNumber(f(x)))
		return 1
	}
}

// fmod takes as long as the numbers are apart.
func fmod(b *limits.Budget) lua.LGFunction {
	const bitsPerStep = 32
	return binary(func(x, y float64) float64 {
		_, high := math.Frexp(x)
		_, low := math.Frexp(y)
		if apart := high - low; apart >= bitsPerStep {
			b.Spend(int64(apart / bitsPerStep))
		}
		return remainder(x, y)
	})
}

// binary makes a function of two numbers.
func binary(f func(x, y float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		y := luacall.Number(L, 2) // looked at first, as a C compiler does
		L.Push(lua.LNumber(f(luacall.Number(L, 1), y)))
		return 1
	}
}

// whole makes a function that rounds. It returns its very argument if that is
// a whole number, which saves an allocation.
func whole(round func(float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		x := luacall.Number(L, 1)
		result := round(x)
		if v, ok := L.Get(1).(lua.LNumber); ok && float64(v) == result {
			L.Push(L.Get(1))
		} else if result > 0 && result < math.MaxInt32 {
			L.Push(luacall.IntValue(int(result)))
		} else {
			L.Push(lua.LNumber(result))
		}
		return 1
	}
}

// extreme makes max and min.
func extreme(b *limits.Budget, better func(x, best float64) bool) lua.LGFunction {
	return func(L *lua.LState) int {
		n := L.GetTop()
		best, at := luacall.Number(L, 1), 1
		b.Spend(int64(n))
		for i := 2; i <= n; i++ {
			if x := luacall.Number(L, i); better(x, best) {
				best, at = x, i
			}
		}
		if v := L.Get(at); v.Type() == lua.LTNumber {
			L.Push(v) // spares an allocation
		} else {
			L.Push(lua.LNumber(best))
		}
		return 1
	}
}

func frexp(L *lua.LState) int {
	fraction, exponent := math.Frexp(luacall.Number(L, 1))
	L.Push(lua.LNumber(fraction))
	L.Push(lua.LNumber(exponent))
	return 2
}

func ldexp(L *lua.LState) int {
	exponent := luacall.Int(L, 2) // looked at first, too
	L.Push(lua.LNumber(math.Ldexp(luacall.Number(L, 1), exponent)))
	return 1
}

func modf(L *lua.LState) int {
	x := luacall.Number(L, 1)
	integer := math.Trunc(x)
	fraction := x - integer
	if math.IsInf(x, 0) {
		fraction = 0
	}
	if !math.IsNaN(x) {
		fraction = math.Copysign(fraction, x)
	}
	L.Push(lua.LNumber(integer))
	L.Push(lua.LNumber(fraction))
	return 2
}

func (r *Random) random(L *lua.LState) int {
	f := r.float()
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(f))
	case 1:
		last := luacall.Int(L, 1)
		if last < 1 {
			luacall.ArgError(L, 1, "interval is empty")
		}
		L.Push(luacall.IntValue(int(math.Floor(f*float64(last))) + 1))
	case 2:
		first, last := luacall.Int(L, 1), luacall.Int(L, 2)
		if first > last {
			luacall.ArgError(L, 2, "interval is empty")
		}
		size := int32(last - first + 1) // wraps around, as in C
		L.Push(luacall.IntValue(int(math.Floor(f*float64(size))) + first))
	default:
		luacall.Error(L, "wrong number of arguments")
	}
	return 1
}

func (r *Random) randomSeed(L *lua.LState) int {
	r.Seed(int32(luacall.Int(L, 1)))
	return 0
}
