package script

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestLoadKeepsErrorsOfItsReader: what the reader raises is load's result.
func TestLoadKeepsErrorsOfItsReader(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for src, want := range map[string]string{
		`local f, e = load(function() error('x') end) return {tostring(f), e.err, e.source, e.line}`:                                                                                                "nil|ERR user_script:1: x|@user_script|1",
		`local f, e = load(function() redis.call('NOPE') end) return {tostring(f), e.err, e.line}`:                                                                                                  "nil|ERR Unknown Redis command called from script|1",
		`return {tostring(select(2, pcall(load, function() error('x') end))), (select(3, pcall(load, function() error('x') end)))}`:                                                                 "nil|user_script:1: x",
		`local f, e = load(function() return {} end) return {e.err, e.line}`:                                                                                                                        "ERR user_script:1: reader function must return a string|1",
		`local _, _, e = xpcall(function() return load(function() local a = nil + 1 end) end, function(e) return 'H ' .. e end) return e`:                                                           "H user_script:1: attempt to perform arithmetic on a nil value",
		`return coroutine.wrap(function() local _, e = load(function() local a = {} return a.b.c end) return e end)()`:                                                                              "user_script:1: attempt to index field 'b' (a nil value)",
		`return type(load(function() return load(function() error('x') end) end))`:                                                                                                                  "function",
		`local fs, k = {}, 5 load(function() local v = 7 fs[1] = function() k = k + 1 v = v + 1 return k * 100 + v end error('x') end) k = 50 local x, y = 1, 2 return {fs[1](), k, fs[1](), x, y}`: "5108|51|5209|1|2",
		`load(function() error('x') end) error('later', 0)`:                                                                                                                                         "later script",
	} {
		reply := eval(e, src, resp.RESP2, nil, nil)
		for _, part := range strings.Split(want, "|") {
			require.Contains(t, reply, part, src)
		}
	}
}

// TestLoadAsksItsReader until that has no more to give, and once more if that is the first answer, as Lua does. The wanted counts are redis-server's.
func TestLoadAsksItsReader(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for pieces, want := range map[string]string{
		"nil":                       "2 nil",
		"''":                        "2 nil",
		"nil, 'return 7'":           "3 7",
		"'', 'return 7'":            "3 7",
		"'return 7'":                "2 7",
		"'return ', '7', '', 'x x'": "3 7",
		// Not beyond what shows the first error: that is the byte behind the token.
		"'return 1 1', 'x', 'y'":              "4 nil",
		"'return 1 1 ', 'x', 'y'":             "1 nil",
		"'x = )', 'y', 'z'":                   "2 nil",
		"'x = ) ', 'y', 'z'":                  "1 nil",
		"'x', ' =', '= 1', 'y', 'z'":          "3 nil",
		"'x = \"a\\n', '\"', 'y', 'z'":        "1 nil",
		"'x = [', '=', '= 1', 'y'":            "3 nil",
		"'x = [=[', ']', '=', ']', ' y z'":    "6 nil",
		"'-', '- c\\n', 'x', ' y', ' z', ' '": "5 nil",
		"'x = 1', 'e', '+', 'a', ' z'":        "5 nil",
		"'x = 1', '.', '.', ' 2', ' z'":       "4 nil",
		"'x = .', '5', '.', '.', 'z ', 'z'":   "5 nil",
		"'r', 'e', 't', 'u', 'r', 'n', '7'":   "8 nil",
		"'local function f(...) return', ' ... end', ' return f(7)', ' ', '--'": "6 7",
	} {
		reply := eval(e, "local p, n = {"+pieces+"}, 0 local f = load(function() n = n + 1 return p[n] end) return n .. ' ' .. tostring((f and f()))", resp.RESP2, nil, nil)
		require.Contains(t, reply, "\r\n"+want+"\r\n", pieces)
	}
}

// TestLoadsWithinLoads: a function that gives one load its text may call another one, which is asked for all of its text before that is parsed.
func TestLoadsWithinLoads(t *testing.T) {
	e := New(newFakeHost(), Options{})
	src := `local n = 0
local function reader(pieces, before)
  local i = 0
  return function() before() n, i = n + 1, i + 1 return pieces[i] end
end
local inner = function() return tostring(select(2, load(reader({'x ', ') ', 'y'}, function() end)))) end
local f, e = load(reader({'return ', '1 ', '1 ', '1'}, function() n = n + #inner() end))
return {n, e, inner(), select(2, load(reader({'x x ', 'y'}, function() end)))}`
	complaint := "(load):1: '=' expected near ')'"
	reply := eval(e, src, resp.RESP2, nil, nil)
	require.Equal(t, fmt.Sprintf("*4\r\n:96\r\n$35\r\n(load):1: '<eof>' expected near '1'\r\n$%d\r\n%s\r\n$31\r\n(load):1: '=' expected near 'x'\r\n", len(complaint), complaint), reply)
}

// TestStopsPassLoad: no load keeps a script that is stopped.
func TestStopsPassLoad(t *testing.T) {
	slices := 0
	e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 5)})
	for _, src := range []string{
		"while true do load(function() while true do end end) end",
		"while true do load(function() error('x') end) end",
		"local s = 'x' load(function() while true do s = s .. s .. 'x' local t = {s, s .. 'a'} end end) while true do end",
	} {
		reply := eval(e, src, resp.RESP2, nil, nil)
		require.True(t, strings.HasPrefix(reply, "-"+timeLimitText) || strings.HasPrefix(reply, "-"+memoryText), "%s: %.200s", src, reply)
	}
	kill := New(newFakeHost(), Options{OnSlice: func(time.Duration) Action { return Kill }})
	reply := eval(kill, "load(function() while true do end end) return 1", resp.RESP2, nil, nil)
	require.Contains(t, reply, killedText)
}
