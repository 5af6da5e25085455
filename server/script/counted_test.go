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
