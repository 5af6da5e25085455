package stringlib_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// TestBudget runs what would take for ever. Each call has to look at the budget
// often enough to be stopped soon after its steps are used up.
func TestBudget(t *testing.T) {
	tests := []struct{ name, body string }{
		{"lazy repetitions", `return string.match(string.rep("a", 5000000), ".-.-.-.-b")`},
		{"greedy repetitions", `return string.match(string.rep("a", 100000), ".*.*.*b")`},
		{"optional items", `return string.match(string.rep("a", 40), string.rep("a?", 40) .. string.rep("a", 40) .. "b")`},
		{"starting points", `return string.find(string.rep("a", 1000000), ".*b")`},
		{"back references", `return string.find(string.rep("a", 100000), "(.*)(.*)%1%2b")`},
		{"brackets", `return string.find(string.rep("(", 1000000), "%b()")`},
		{"long set", `return string.find(string.rep("a", 1000000), "[" .. string.rep("b", 100000) .. "]*c")`},
		{"frontier", `return string.find(string.rep("a", 1000000), "%f[" .. string.rep("b", 100000) .. "]")`},
		{"gsub", `for i = 1, 1000 do string.gsub(string.rep("a", 100000), "a", "b") end`},
		{"gmatch", `for i = 1, 1000 do for _ in string.gmatch(string.rep("a", 100000), "a") do end end`},
		{"plain", `for i = 1, 1000 do string.find(string.rep("a", 1000000), "b", 1, true) end`},
		{"literal", `for i = 1, 1000 do string.find(string.rep("a", 1000000), "b.") end`},
		{"lower", `local s = string.rep("a", 1000000) for i = 1, 1000 do string.lower(s) end`},
		{"reverse", `local s = string.rep("a", 1000000) for i = 1, 1000 do string.reverse(s) end`},
		{"format", `local s = string.rep("a", 1000000) for i = 1, 1000 do string.format("%q", s) end`},
		{"byte", `local s = string.rep("a", 7000) for i = 1, 1000000 do string.byte(s, 1, -1) end`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vm := newVM(t)
			const steps, overrun = 1_000_000, 1_000_000
			limitSteps(vm, steps)
			_, raised := vm.Call(vm.Compile(t, test.body))
			require.Equal(t, lua.LString(stop), raised)
			require.Greater(t, vm.Budget.Steps, int64(-overrun))
		})
	}
}

// TestStepsOfRepetitions: a repetition goes back, or on, to where the byte is that must follow it.
func TestStepsOfRepetitions(t *testing.T) {
	for _, pattern := range []string{"^.-b", "^.*b", "^a-b"} {
		vm := newVM(t)
		const bytes, steps = 100_000, 1 << 40
		vm.Budget.Steps = steps
		results, raised := vm.Call(vm.Compile(t, `return string.find(string.rep("a", 100000), "`+pattern+`")`))
		require.Nil(t, raised)
		require.Equal(t, lua.LNil, results[0], pattern)
		require.Less(t, steps-vm.Budget.Steps, int64(bytes*3/2), pattern)
	}
}

// TestStringLimit builds strings that are too long.
func TestStringLimit(t *testing.T) {
	tests := []struct{ name, body string }{
		{"rep", `return string.rep("x", 1000001)`},
		{"rep overflow", `return string.rep(string.rep("x", 1000000), 2^31 - 1)`},
		{"gsub", `return string.gsub(string.rep("x", 1001), "x", string.rep("y", 1000))`},
		{"gsub captures", `return string.gsub(string.rep("x", 2000), "(x*)", "%1%1%1%1%1%1" .. string.rep("%1", 1000))`},
		{"format", `local s = string.rep("x", 400000) return string.format("%s%s%s", s, s, s)`},
		{"format quoted", `return string.format("%q", string.rep("\0", 400000))`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			vm := newVM(t)
			vm.Budget.MaxString = 1_000_000
			_, raised := vm.Call(vm.Compile(t, test.body))
			require.Contains(t, raised.String(), "not enough memory")
		})
	}
}

// TestManyChoices matches a pattern with more open choices than are allowed,
// and one with fewer.
func TestManyChoices(t *testing.T) {
	vm := newVM(t)
	const body = `local n = ... return string.match(string.rep("a", n), string.rep("a?", n)) == string.rep("a", n)`
	results, raised := vm.Call(vm.Compile(t, body), lua.LNumber(60_000))
	require.Nil(t, raised)
	require.Equal(t, lua.LTrue, results[0])
	_, raised = vm.Call(vm.Compile(t, body), lua.LNumber(300_000))
	require.Equal(t, "user_script:1: pattern too complex", raised.String())
}

// TestNestedCallbacks nests gsub in its own callback.
func TestNestedCallbacks(t *testing.T) {
	vm := newVM(t)
	_, raised := vm.Call(vm.Compile(t, `local function f(s) return (string.gsub(s, ".", f)) end return f("x")`))
	require.Contains(t, raised.String(), "stack overflow")
	vm.Budget.Depth = 0
	const body = `local function f(n) return (string.gsub("ab", ".", function(c) if n > 0 then return c .. f(n - 1) end end)) end return f(6)`
	results, raised := vm.Call(vm.Compile(t, body))
	require.Nil(t, raised)
	require.Len(t, string(results[0].(lua.LString)), 254)
	require.Equal(t, 200, limits.DepthMax)
}
