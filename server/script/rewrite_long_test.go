package script

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/resp"
)

// TestLongStringsAreCounted: however a script has strings of a megabyte compared or looked up, its steps grow with that.
func TestLongStringsAreCounted(t *testing.T) {
	const operations = 1200
	long := strings.Repeat("x", 1<<20)
	times := func(n int, part string) string { return strings.Repeat(part, n) }
	for name, src := range map[string]string{
		"in a row, <":            times(operations, "n = a < b "),
		"in a row, >=":           times(operations, "n = a >= b "),
		"in a row, ==":           times(operations, "n = a == b "),
		"in one expression":      times(operations/150, "n = "+times(149, "a == b and ")+"a == b "),
		"in one expression, not": times(operations/150, "n = "+times(149, "a ~= b or ")+"a ~= b "),
		"in one expression, <":   times(operations/150, "n = "+times(149, "a <= b and ")+"a <= b "),
		"elseif":                 times(operations/150, "if a ~= b then elseif "+times(148, "a ~= b then elseif ")+"a ~= b then end "),
		"branches not taken":     times(operations, "if a ~= b then "+times(uncounted+1, "n = 1 ")+"end "),
		"loops not entered":      times(operations, "while a ~= b do n = 1 end "),
		"reads":                  times(operations, "n = t[a] "),
		"reads in one":           times(operations/150, "n = "+times(149, "t[a] and ")+"t[a] "),
		"fields of fields":       times(operations/3, "n = t[a][b][a] "),
		"stores":                 times(operations, "t[a] = t "),
		"many stores":            times(operations/10, times(9, "t[a], ")+"t[a] = 1 "),
		"constructors":           times(operations/20, "n = {"+times(20, "[a] = 1, ")+"} "),
		"for, ==":                fmt.Sprintf("for i = 1, %d do n = a == b end ", operations),
		"for, <":                 fmt.Sprintf("for i = 1, %d do n = a < b end ", operations),
		"for, 3 reads":           fmt.Sprintf("for i = 1, %d do n = t[a], t[b], t[a] end ", operations/3),
		"while":                  fmt.Sprintf("local i = 0 while i < %d and a == b do i = i + 1 end ", operations),
		"repeat":                 fmt.Sprintf("local i = 0 repeat i = i + 1 until i == %d or a ~= b ", operations),
		"functions":              fmt.Sprintf("local function f(a, b) return a == b end for i = 1, %d do f(a, b) end ", operations),
		"metatables":             fmt.Sprintf("local m = setmetatable({}, {__add = function() return a end}) for i = 1, %d do n = m + 1 < b end ", operations),
		"handed on":              "local a1 = a local a2 = a1 local a3 = nil or a2 local a4 = true and a3 " + times(operations, "n = a4 < a3 "),
		"loaded":                 "loadstring([[local m, b = ... local n " + times(operations, "n = m + 1 < b ") + "]])(setmetatable({}, {__add = function() return a end}), b) ",
		"chains":                 "t = setmetatable({}, {__index = t}) " + times(operations, "n = t[a] "),
		"errors":                 times(operations, "pcall(function() return n[a] end) "),
		"rawget":                 times(operations, "n = rawget(t, a) "),
		"rawequal":               times(operations, "n = rawequal(a, b) "),
		"rawset":                 times(operations, "rawset(t, a, t) "),
		"next":                   times(operations, "n = next(t, a) "),
	} {
		h := &tickHost{fakeHost: newFakeHost()}
		slices := 0
		h.engine = New(h, Options{OnSlice: func(time.Duration) Action { slices++; return Continue }})
		src := "local a, b, t, n = ARGV[1], ARGV[2], {} t[a] = t " + src + "return redis.call('ECHO', 'x')"
		require.Equal(t, "$1\r\nx\r\n", eval(h.engine, src, resp.RESP2, nil, []string{long, strings.Clone(long)}), name)
		require.Greater(t, h.ticks*longMax+slices, operations*9/10, "%s: %d ticks, %d slices", name, h.ticks, slices)
	}
}

// TestLongMethodNamesAreCounted: a method is looked up by its name, in one table after the other.
func TestLongMethodNamesAreCounted(t *testing.T) {
	name := strings.Repeat("m", 900_000)
	const head = "local t = {} for i = 1, 97 do t = setmetatable({}, {__index = t}) end local function call() return t:"
	for _, src := range []string{
		head + name + "() end for i = 1, 300 do pcall(call) end",
		head + name + "() end for i = 1, 150 do pcall(call) pcall(call) end",
	} {
		slices := 0
		e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 20)})
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), timeLimitText)
	}
}

// TestComparisonsOfNumbersCostNothing: what limiters compare is compared by the machine.
func TestComparisonsOfNumbersCostNothing(t *testing.T) {
	const head = "local now, limit = tonumber(ARGV[1]), tonumber(ARGV[2] or 5) local n = redis.call('INCR', KEYS[1]) "
	for src, inline := range map[string]bool{
		head + "return n < limit":  true,
		head + "return limit <= n": true,
		head + "return n > 5":      true,
		head + "return redis.call('GET', KEYS[1]) >= math.floor(now / 2)":                 true,
		head + "local t = now if t < limit then t = limit end t = t + n return t - n > t": true,
		head + "return #ARGV > n":                                                 true,
		head + "for i = 1, 10 do if i >= n then return i end end":                 true,
		head + "local function f(a) local b = a * 2 return a < b end return f(1)": true,
		head + "return n < ARGV[1]":                                               false,
		head + "local function f(a, b) return a < b end return f(1, 2)":           false,
		head + "local a = now a = n return a < ARGV[1]":                           false,
		head + "setmetatable({}, {}) return now + 1 < ARGV[1]":                    false,
		"local tonumber = tostring local a = tonumber(1) return a < tonumber(2)":  false,
	} {
		e := New(newFakeHost(), Options{})
		s, err := e.Load([]byte(src), false)
		require.NoError(t, err, src)
		require.Equal(t, inline, !callsComparison(e, s.function.Proto), src)
	}
}

// callsComparison reports whether a compiled function compares by one of ours.
func callsComparison(e *Engine, p *lua.FunctionProto) bool {
	ours := map[lua.LValue]bool{}
	for name := range e.eval.comparisons() {
		ours[e.eval.values[name]] = true
	}
	return slices.ContainsFunc(p.Constants, func(c lua.LValue) bool { return ours[c] }) ||
		slices.ContainsFunc(p.FunctionPrototypes, func(inner *lua.FunctionProto) bool { return callsComparison(e, inner) })
}

// TestComparisonsByFunctions: functions of ours compare as gopher-lua's machine does.
func TestComparisonsByFunctions(t *testing.T) {
	const head = "local mt = {__lt = function(a, b) return a.n < b.n end, __le = function(a, b) return 'yes' end, __eq = function(a, b) return a.n == b.n end} " +
		"local T, U, V = setmetatable({n = 1}, mt), setmetatable({n = 2}, mt), setmetatable({n = 3}, {__lt = mt.__lt}) "
	values := []string{"1", "2", "-1", "0/0", "'1'", "'a'", "'b'", "''", "'a\\0b'", "nil", "true", "false", "mt", "{}", "T", "U", "V", "type", "coroutine.create(compare)"}
	bodies := []string{"return {" + strings.Repeat("a OP b, ", longMax+1) + "}", "local function f() a = b return a end return {a OP f(), b OP f(), f() OP a}"}
	e := New(newFakeHost(), Options{})
	plain := lua.NewState()
	defer plain.Close()
	for _, operator := range []string{"<", "<=", ">", ">=", "==", "~="} {
		for _, body := range bodies {
			for _, a := range values {
				for _, b := range values {
					src := head + "local compare compare = function(a, b) " + strings.ReplaceAll(body, "OP", operator) + " end local ok, list = pcall(compare, " + a + ", " + b + ") " +
						"local text = tostring(ok) for i = 1, ok and #list or 0 do text = text .. ' ' .. tostring(list[i]) end return text"
					require.NoError(t, plain.DoString(src))
					want := plain.ToString(-1)
					plain.Pop(1)
					require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(want), want), eval(e, src, resp.RESP2, nil, nil), "%s %s %s", a, operator, b)
				}
			}
		}
	}
	for operands, want := range map[string]string{
		"nil, 1": "nil with number", "{}, {}": "two table values", "1, 'x'": "number with string", "true, false": "two boolean values",
	} {
		reply := eval(e, "local function f(a, b)\nreturn a < b end return f("+operands+")", resp.RESP2, nil, nil)
		require.Contains(t, reply, "-ERR user_script:2: attempt to compare "+want+" script: ")
	}
}

// TestVariablesOfManyCalls: calls whose variables are used by functions nest less deep than others, since each function that is made, or returns, takes as
// long as there are such variables.
func TestVariablesOfManyCalls(t *testing.T) {
	e := New(newFakeHost(), Options{})
	const src = "local function f(n) local a, b, c, d = n, n, n, n local g = function() return a + b + c + d end if n > 0 then return 1 + f(n - 1) end return g() end return f("
	require.Equal(t, ":1000\r\n", eval(e, src+"1000)", resp.RESP2, nil, nil))
	require.Contains(t, eval(e, src+"15000)", resp.RESP2, nil, nil), "stack overflow")
	require.Equal(t, ":15000\r\n", eval(e, "local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end return f(15000)", resp.RESP2, nil, nil))
}

// TestEmptiedTablesAreCounted: to find what is left in a table takes as long as there are keys that have none any more.
func TestEmptiedTablesAreCounted(t *testing.T) {
	const calls = 200
	for _, call := range []string{"next(t)", "pairs(t)(t)", "table.foreach(t, type)", "table.maxn(t)", "cjson.encode(t)", "cmsgpack.pack(t)"} {
		slices := 0
		e := New(newFakeHost(), Options{OnSlice: func(time.Duration) Action { slices++; return Continue }})
		src := "local t = {} for i = 1, 3e4 do t['k' .. i] = i end for i = 1, 29999 do t['k' .. i] = nil end local n " + strings.Repeat("n = "+call+" ", calls) + "return 1"
		require.Equal(t, ":1\r\n", eval(e, src, resp.RESP2, nil, nil), call)
		require.Greater(t, slices, calls, call)
	}
}
