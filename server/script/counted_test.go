package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// stepsOf returns how many steps a script counts, to a slice.
func stepsOf(t *testing.T, src string) int {
	e := New(newFakeHost(), Options{})
	steps := 0
	e.budget.Check = func() {
		steps += stepsPerSlice
		e.budget.Steps += stepsPerSlice
	}
	require.Equal(t, ":1\r\n", eval(e, src+" return 1", resp.RESP2, nil, nil), "%.200s", src)
	return steps
}

// TestCallsAreCounted: calls of functions that count nothing by themselves count wherever they stand.
func TestCallsAreCounted(t *testing.T) {
	const rounds, calls = 5000, 90
	chain := strings.TrimSuffix(strings.Repeat("g(t) + ", calls), " + ")
	light := strings.Repeat("n = 1 ", uncounted)
	for name, body := range map[string]string{
		"for":            "for i = 1, rounds do n = " + chain + " end",
		"behind others":  "for i = 1, rounds do " + light + "n = " + chain + " end",
		"in a branch":    "for i = 1, rounds do if i then n = " + chain + " end end",
		"behind, in one": "for i = 1, rounds do if i then " + light + "n = " + chain + " end end",
		"while":          "local i = 0 while i < rounds do i = i + 1 n = " + chain + " end",
		"condition":      "local i = 0 while i < rounds and " + chain + " do i = i + 1 end",
		"repeat":         "local i = 0 repeat i = i + 1 until i == rounds or not (" + chain + ")",
		"function":       "local function f() return " + chain + " end for i = 1, rounds do f() end",
		"arguments":      "for i = 1, rounds do n = {" + strings.ReplaceAll(chain, "+", ",") + "} end",
		"nested":         "for i = 1, rounds do n = " + strings.Repeat("g(", calls) + "t" + strings.Repeat(")", calls) + " end",
		"methods":        "for i = 1, rounds do n = " + strings.ReplaceAll(chain, "g(t)", "t:len()") + " end",
	} {
		steps := stepsOf(t, "local g, t, n = tonumber, '1' "+strings.ReplaceAll(body, "rounds", fmt.Sprint(rounds)))
		require.Greater(t, steps, rounds*calls*9/10, name)
	}
}

// TestLongExpressionsAreCounted: what has many operands counts more than what has one.
func TestLongExpressionsAreCounted(t *testing.T) {
	const rounds, operands = 5000, 1000
	sum := strings.TrimSuffix(strings.Repeat("a + ", operands), " + ")
	steps := stepsOf(t, fmt.Sprintf("local a, n = 1 for i = 1, %d do n = %s end", rounds, sum))
	require.Greater(t, steps, rounds*min(stepsPerTick, operands/partsPerStep)*9/10)
}

// TestEmptiedArraysAreCounted: to find the end of an array takes as long as there were elements behind it.
func TestEmptiedArraysAreCounted(t *testing.T) {
	const calls, elements = 1000, 8000
	for _, call := range []string{
		"table.getn(t)", "#t", "unpack(t)", "table.concat(t)", "table.insert(t, 1, 1) t[1] = nil", "table.remove(t)", "table.sort(t)",
		"table.foreachi(t, type)", "table.maxn(t)", "table.foreach(t, type)", "next(t)", "next(t, 1)", "pairs(t)(t)", "cjson.encode(t)", "cmsgpack.pack(t)",
	} {
		head := "local t = {} for i = 1, 8000 do t[i] = i end for i = 1, 8000 do t[i] = nil end t.x = 1 local n "
		if call == "next(t)" || call == "pairs(t)(t)" {
			head += "t[0.5] = 1 "
		}
		if !strings.Contains(call, ") t[") {
			call = "n = " + call
		}
		steps := stepsOf(t, fmt.Sprintf("%s for i = 1, %d do %s end", head, calls, call))
		require.Greater(t, steps, calls*elements/10, call)
	}
}

// TestYieldsOfDeepCallsAreCounted: to yield takes as long as there are calls in the coroutine.
func TestYieldsOfDeepCallsAreCounted(t *testing.T) {
	const yields, depth = 3000, 3000
	steps := stepsOf(t, fmt.Sprintf("local function f(n) if n == 0 then while true do coroutine.yield() end end return 1 + f(n - 1) end "+
		"local co = coroutine.wrap(function() f(%d) end) for i = 1, %d do co() end", depth, yields))
	require.Greater(t, steps, yields*depth/callsPerStep*9/10)
}

// TestVarargsAreCounted: what is done with varargs takes as long as there are many of them.
func TestVarargsAreCounted(t *testing.T) {
	const count, uses = 4000, 300
	for name, body := range map[string]string{
		"table":           "for i = 1, uses do n = {...} end",
		"behind others":   "for i = 1, uses do n = {1, k = 2, ...} end",
		"in one":          "n = " + strings.TrimSuffix(strings.Repeat("#{...} + ", uses), " + "),
		"arguments":       "n = g(...) " + strings.Repeat("and g(...)", uses+longMax),
		"methods":         "n = t:m(...) " + strings.Repeat("and t:m(...)", uses+longMax),
		"arg":             "local function h(...) return arg end for i = 1, uses do n = h(...) end",
		"results":         "local function h(...) return ... end n = h(...) " + strings.Repeat("or h(...)", uses+longMax),
		"coroutines":      "for i = 1, uses do coroutine.wrap(h)(...) end",
		"more coroutines": "for i = 1, uses do coroutine.resume(coroutine.create(h), ...) end",
	} {
		steps := stepsOf(t, "local t, n = {m = type} local g = type local function h() end local function f(...) "+strings.ReplaceAll(body, "uses", fmt.Sprint(uses))+
			" end f(unpack({}, 1, "+fmt.Sprint(count)+"))")
		require.Greater(t, steps, uses*count*9/10, name)
	}
}

// TestVarargsAreHandedOn: they are the same wherever they go.
func TestVarargsAreHandedOn(t *testing.T) {
	e := New(newFakeHost(), Options{})
	many := strings.Repeat("g(...) + ", 2*longMax)
	for src, want := range map[string]string{
		"local function f(...) return {...} end return f(1, 2, 3)":                                                      "*3\r\n:1\r\n:2\r\n:3\r\n",
		"local function f(...) return {...} end return f()":                                                             "*0\r\n",
		"local function f(...) return {..., 4} end return f(1, 2, 3)":                                                   "*2\r\n:1\r\n:4\r\n",
		"local function f(...) return {(...)} end return f(1, 2, 3)":                                                    "*1\r\n:1\r\n",
		"local function f(...) return {..., k = 4} end return f(1, 2, 3)":                                               "*1\r\n:1\r\n",
		"local function f(...) return {9, ...} end return #f(1, 2, nil, 3)":                                             ":5\r\n",
		"local function f(...) return {" + strings.Repeat("9, ", itemsAtOnce) + "...} end return #f(1, 2, 3)":           ":53\r\n",
		"local g = tonumber local function f(...) return " + many + "0 end return f(2, 10)":                             fmt.Sprintf(":%d\r\n", 4*longMax),
		"local function g(...) return arg.n end local function f(...) return g(...) end return f(1, nil, nil)":          ":3\r\n",
		"local function g(...) return select('#', ...) end local function f(...) return g(0, ...) end return f(1, nil)": ":3\r\n",
		"local function f(...) local a, b = ... return {b, a} end return f(1, 2)":                                       "*2\r\n:2\r\n:1\r\n",
		"return {coroutine.wrap(function(...) return ... end)(1, 2, 3)}":                                                "*3\r\n:1\r\n:2\r\n:3\r\n",
		"return {coroutine.wrap(function(...) return 7 end)(1, 2, 3)}":                                                  "*1\r\n:7\r\n",
		"return {coroutine.wrap(function() end)(1, 2, 3)}":                                                              "*0\r\n",
		"return {select(2, coroutine.resume(coroutine.create(function() return 1, 2, 3 end), 9))}":                      "*3\r\n:1\r\n:2\r\n:3\r\n",
	} {
		require.Equal(t, want, eval(e, src, resp.RESP2, nil, nil), src)
	}
}
