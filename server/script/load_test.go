package script

import (
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

// TestLoadAsksItsReader until that has no more to give, and once more if that is the first answer, as Lua does.
func TestLoadAsksItsReader(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for pieces, want := range map[string]string{
		"nil":                       "2 nil",
		"''":                        "2 nil",
		"nil, 'return 7'":           "3 7",
		"'', 'return 7'":            "3 7",
		"'return 7'":                "2 7",
		"'return ', '7', '', 'x x'": "3 7",
	} {
		reply := eval(e, "local p, n = {"+pieces+"}, 0 local f = load(function() n = n + 1 return p[n] end) return n .. ' ' .. tostring((f()))", resp.RESP2, nil, nil)
		require.Contains(t, reply, "\r\n"+want+"\r\n", pieces)
	}
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
