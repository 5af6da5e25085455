package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/ast"

	"headgate/server/resp"
	"headgate/server/script/syntax"
)

// rewritten returns a script as the compiler gets it.
func rewritten(t *testing.T, src string) (*ast.FunctionExpr, *rewriter) {
	chunk, err := syntax.Parse(src, "user_script")
	require.NoError(t, err)
	r := New(newFakeHost(), Options{}).eval.rewriter(fromClient)
	r.chunk(chunk)
	return chunk, r
}

// variables declares so many local variables.
func variables(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("v%03d", i)
	}
	return "local " + strings.Join(names, ", ") + " "
}

// TestNamesAmongManyVariables: scripts are refused whose names the compiler would look for among too many variables.
func TestNamesAmongManyVariables(t *testing.T) {
	nested := func(depth int, inner string) string {
		return strings.Repeat("local f = function() "+variables(150), depth) + inner + strings.Repeat(" end", depth)
	}
	for src, refused := range map[string]bool{
		nested(50, strings.Repeat("zzzz = zzzz ", 200)):                                                    false,
		nested(50, strings.Repeat("zzzz = zzzz ", 20_000)):                                                 true,
		nested(50, strings.Repeat("while true do end for i = 1, 9 do end ", 2000)):                         true,
		variables(190) + strings.Repeat("zzzz = zzzz ", 30_000):                                            false,
		variables(190) + strings.Repeat("zzzz = v000 ", 30_000):                                            false,
		strings.Repeat(variables(190)+"return function() ", 3) + "return v189" + strings.Repeat(" end", 3): false,
	} {
		_, err := New(newFakeHost(), Options{}).Load([]byte(src), true)
		if refused {
			require.EqualError(t, err, "ERR Error compiling script (new function): user_script:1: function or expression too complex", "%.300s", src)
		} else {
			require.NoError(t, err, "%.300s", src)
		}
	}
	// A function with nearly all the variables, and a chunk with all the names, that there may be.
	const round = "v000[v001] = v002 % v003 v004 = v005 + v006 * v007 "
	chunk, r := rewritten(t, variables(190)+strings.Repeat(round, syntax.NodesMax/12))
	require.NotNil(t, chunk)
	require.Less(t, r.passed, passedMax)
}

// TestNamesAreFound: variables are told from others of the same name by where they are visible.
func TestNamesAreFound(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for src, want := range map[string]string{
		"local a = 1 do local a = 2 end return a":                                                  ":1\r\n",
		"local a, a = 1, 2 do local a, a = 3, 4 end return a":                                      ":2\r\n",
		"local a = 1 local function f(a) return function() return a end end return f(2)() + a":     ":3\r\n",
		"local a = 1 local function f(type) return type end return type(a) .. f('x')":              "$7\r\nnumberx\r\n",
		"local n = 0 for type = 1, 3 do n = n + type end return type(n)":                           "$6\r\nnumber\r\n",
		"repeat local type = 1 until type == 1 return type(1)":                                     "$6\r\nnumber\r\n",
		"local function f(KEYS) return KEYS end return f(1) + #KEYS":                               ":1\r\n",
		"local f = function(a, b) return a end local b = 5 return f(b)":                            ":5\r\n",
		"for _, type in ipairs({1}) do local x = type end return type(1)":                          "$6\r\nnumber\r\n",
		"local t = {} function t:m(type) return type end return t:m(1) + #type(1)":                 ":7\r\n",
		"local a = 1 local g = function() a = a + 1 local a = 9 return a end g() g() return a":     ":3\r\n",
		"local x = 1 local f = function() local y = x local x = 2 return y + x end return f() + x": ":4\r\n",
	} {
		require.Equal(t, want, eval(e, src, resp.RESP2, nil, nil), src)
	}
}

// arithmeticDepth returns how deep arithmetic nests, from the outside inwards, without anything else in between.
func arithmeticDepth(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.ArithmeticOpExpr:
		return 1 + max(arithmeticDepth(e.Lhs), arithmeticDepth(e.Rhs))
	case *ast.UnaryMinusOpExpr:
		return 1 + arithmeticDepth(e.Expr)
	}
	return 0
}

// TestLongSums: gopher-lua, which looks through all that is below each operator for constants, sees long sums in parts.
func TestLongSums(t *testing.T) {
	const terms = 9000
	for _, src := range []string{
		"a" + strings.Repeat(" + a", terms),
		"a" + strings.Repeat(" - 2 * a / 3", terms),
		"1" + strings.Repeat(" + 1", terms),
		strings.Repeat("(", 150) + "a" + strings.Repeat(strings.Repeat(" + a", 60)+")", 150),
		strings.Repeat("- ( ", 90) + "a" + strings.Repeat(strings.Repeat(" + a", 60)+")", 90),
	} {
		chunk, _ := rewritten(t, "local a = 1 return "+src)
		deepest := 0
		walk(chunk.Stmts, func(e ast.Expr) bool {
			deepest = max(deepest, arithmeticDepth(e))
			return deepest <= foldsMax
		})
		require.LessOrEqual(t, deepest, foldsMax, "%.40s", src)
	}
	e := New(newFakeHost(), Options{})
	for src, want := range map[string]string{
		"local a = 2 return a" + strings.Repeat(" + a", terms):                                    fmt.Sprintf(":%d\r\n", 2*terms+2),
		"local a = 1 return 0" + strings.Repeat(" - a", terms):                                    fmt.Sprintf(":%d\r\n", -terms),
		"return 1" + strings.Repeat(" + 1", terms):                                                fmt.Sprintf(":%d\r\n", terms+1),
		"local a = 1 a = a" + strings.Repeat(" + a", terms) + " return a":                         fmt.Sprintf(":%d\r\n", terms+1),
		"local function f(a) a = a" + strings.Repeat(" + a", terms) + " return a end return f(1)": fmt.Sprintf(":%d\r\n", terms+1),
		variables(150) + "v000 = 1 return 1" + strings.Repeat(" + v000", terms):                   fmt.Sprintf(":%d\r\n", terms+1),
	} {
		require.Equal(t, want, eval(e, src, resp.RESP2, nil, nil), "%.40s", src)
	}
	require.Contains(t, eval(e, "local a, b = 1 return a"+strings.Repeat(" + a", terms)+" + b"+strings.Repeat(" + a", 100), resp.RESP2, nil, nil),
		"attempt to perform arithmetic on local 'b' (a nil value)")
}
