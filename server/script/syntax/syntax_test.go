package syntax

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// Most messages are compared with redis-server's in package script.

func TestLimits(t *testing.T) {
	locals := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("a%d", i)
		}
		return "local " + strings.Join(names, ",")
	}
	upvalues := "return function() " + strings.ReplaceAll(locals(61), ",", " local ") + " return function() return " +
		strings.Join(strings.Split(strings.TrimPrefix(locals(61), "local "), ","), "+") + " end end"
	const levels = "c:1: chunk has too many syntax levels"
	for src, want := range map[string]string{
		"return " + strings.Repeat("(", 198) + "1" + strings.Repeat(")", 198):  "",
		"return " + strings.Repeat("(", 199) + "1" + strings.Repeat(")", 199):  levels,
		"return " + strings.Repeat("{", 199) + "1" + strings.Repeat("}", 199):  levels,
		"return " + strings.Repeat("- ", 199) + "1":                            levels,
		"return 1" + strings.Repeat(" .. 1", 199):                              levels,
		"return 1" + strings.Repeat(" ^ 1", 199):                               levels,
		strings.Repeat("do ", 199) + strings.Repeat(" end", 199):               "",
		strings.Repeat("do ", 200) + strings.Repeat(" end", 200):               levels,
		"return 1" + strings.Repeat("+1", chainMax):                            "",
		"return 1" + strings.Repeat("+1", chainMax+1):                          levels,
		"return a" + strings.Repeat(".b", chainMax+1):                          levels,
		"if a then " + strings.Repeat("elseif a then ", ElseifsMax+2) + " end": levels,
		locals(200): "",
		locals(201): "c:1: main function has more than 200 local variables",
		upvalues:    "c:1: function at line 1 has more than 60 upvalues",
	} {
		_, err := Parse(src, "c")
		if want == "" {
			require.NoError(t, err, "%.60s", src)
		} else {
			require.EqualError(t, err, want, "%.60s", src)
		}
	}
	var many strings.Builder
	for i := range ConstantsMax + 1 {
		fmt.Fprintf(&many, "f(%d) ", i)
	}
	_, err := Parse(many.String(), "c")
	require.EqualError(t, err, "c:1: constant table overflow")
}

// TestLongNearIsCut checks that a message does not repeat a whole script.
func TestLongNearIsCut(t *testing.T) {
	_, err := Parse("x "+strings.Repeat("y", 10000), "c")
	require.EqualError(t, err, "c:1: '=' expected near '"+strings.Repeat("y", nearMax)+"'")
}

func TestLines(t *testing.T) {
	chunk, err := Parse("local a = 1\r\nlocal b = [[\nx\n]]\n\rf(\na)\nreturn a", "c")
	require.NoError(t, err)
	lines := []int{}
	for _, stmt := range chunk.Stmts {
		lines = append(lines, stmt.Line())
	}
	require.Equal(t, []int{1, 2, 5, 7}, lines)
}

// FuzzParse checks that any text is parsed or refused with a message, and that
// gopher-lua can compile what was parsed.
func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"local a <b", "return 1 .. 2 .. 'x'", "for i = 1, 2 do break end", "function a.b:c(...) return ... end", "x = {1; a = 2, [3] = 4}",
		"--[==[ x ]==] return [[y]]", "if a then elseif b then else end", "repeat local x until x", "a.b[c]:d'e'{f}.g = -#not h ^ 2", "\"\\065\\\n\"",
		"goto x", "return 0x1p4, 1e5, .5, 08", "::l::", "\x1bLua", "#!x\n", "(a) = 1", "f()\n(g)()",
	} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		chunk, err := Parse(src, "c")
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "c:"), err)
			return
		}
		if strings.Count(src, ",")+strings.Count(src, ";") >= LiteralMin-1 {
			return // There may be a table that gopher-lua does not know.
		}
		_, _ = lua.Compile([]ast.Stmt{&ast.ReturnStmt{Exprs: []ast.Expr{chunk}}}, "c")
	})
}
