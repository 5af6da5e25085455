package script

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// stopAfter returns an OnSlice that ends a script at its n-th slice.
func stopAfter(slices *int, n int) func(time.Duration) Action {
	return func(time.Duration) Action {
		if *slices++; *slices >= n {
			*slices = 0
			return TimeLimit
		}
		return Continue
	}
}

// endless are scripts that would not end by themselves, or take all memory.
var endless = []string{
	"while true do end",
	"repeat until false",
	"for i = 1, 1e18 do end",
	"for i = 1, 1 / 0, 1023 do end",
	"for i = 1, 1 / 0 do for j = 1, 0 / 0 do end end",
	"while true do for i = 1, -1e9 do end end",
	"while true do for i = 5, 5 do end end",
	"local function f() return f() end return f()",
	"while true do pcall(function() while true do end end) end",
	"while true do pcall(error, 'x') end",
	"xpcall(function() while true do end end, function() while true do end end)",
	"local co = coroutine.wrap(function() while true do end end) while true do pcall(co) end",
	"while true do coroutine.wrap(function() end)() end",
	"local t = {} while true do t[#t + 1] = coroutine.create(function() coroutine.yield() end) coroutine.resume(t[#t]) end",
	"local s = 'x' while true do s = s .. s end",
	"local s = 'x' while true do pcall(function() s = s .. s end) end",
	"local t = {} while true do t[#t + 1] = {} t[#t][8000] = 1 end",
	"local t = {} while true do table.insert(t, 1) end",
	"local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
	"while true do local x = {[8000] = 1} end",
	"local a = {} while true do a = {a} end",
	"local function f() f() end while true do pcall(f) end",
	"local function f() return 1 + xpcall(f, f) end f()",
	"while true do collectgarbage() end",
	"while true do redis.call('ECHO', 'x') end",
	"while true do redis.pcall('NOPE') end",
	"while true do loadstring('return 1') end",
	"table.sort({3, 2, 1}, function() while true do end end)",
	"string.gsub('aaa', 'a', function() while true do end end)",
	"return string.match(string.rep('a', 5e6), '.-.-.-.-.-b')",
	"local t = {} for i = 1, 40 do t = {t, t, t, t} end return t",
	"local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
	"while true do setmetatable({}, {__index = math}) end",
	"local t = {} for i = 1, 8000 do t[i] = i end while true do t[math.random(8000)] = nil local n = #t end",
	"local a = {} while true do " + strings.Repeat("a = {a} a[8000] = 1 ", 2000) + "end",
}

func TestEndlessScriptsAreStopped(t *testing.T) {
	slices := 0
	e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 8)})
	for _, src := range endless {
		reply := eval(e, src, resp.RESP2, nil, nil)
		stopped := strings.HasPrefix(reply, "-"+timeLimitText) || strings.HasPrefix(reply, "-"+memoryText)
		require.True(t, stopped, "%.80s: %.200s", src, reply)
		require.Equal(t, ":2\r\n", eval(e, "return 1 + 1", resp.RESP2, nil, nil), src)
	}
}

// TestLongStepsAreStopped: what takes long by the length of a string is no step like others, and nor is a command. By their rounds alone the loops would have
// but a few slices.
func TestLongStepsAreStopped(t *testing.T) {
	for _, round := range []string{
		"tonumber(digits)", "tonumber(digits, 8)", "tonumber(digits .. 'x')", "local x = -digits", "local x = digits % 2", "string.rep('x', blank)",
		"for i = blank, 1 do end", "bit.tobit(digits)", "local x = by[digits]", "pcall(string.find, 'x', brackets)", "string.find('x', digits)", "string.gsub('x', digits, '')",
		"redis.call('SLOW')", "pcall(collectgarbage, digits)", "pcall(error, digits)", "redis.error_reply(digits)", "pcall(loadstring, 'x', digits)",
	} {
		slices := 0
		e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 20)})
		src := "local digits, blank, brackets = ('1'):rep(5e6), (' '):rep(5e6) .. '1', ('['):rep(5e5) local by = {[digits] = 1} for i = 1, 20 do by['k' .. i] = i end for i = 1, 1000 do " + round + " end"
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), timeLimitText, round)
	}
}

func TestErrorsOfDeepCallsAreStopped(t *testing.T) {
	for _, wrong := range []string{"error, 'x', 15000", "xpcall", "load, 1"} {
		slices := 0
		e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 20)})
		src := "local function f(n) if n > 0 then local x = f(n - 1) return x end for i = 1, 1000 do pcall(" + wrong + ") end end f(15000)"
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), timeLimitText)
	}
}

func TestKill(t *testing.T) {
	e := New(newFakeHost(), Options{OnSlice: func(time.Duration) Action { return Kill }})
	s, err := e.Load([]byte("\nwhile true do pcall(function() while true do end end) end"), true)
	require.NoError(t, err)
	var w resp.Writer
	e.Run(s, nil, nil, &w)
	require.Equal(t, "-"+killedText+" script: "+s.SHA+", on @user_script:2.\r\n", string(w.Bytes()))
}

func TestDeepRecursionIsAnError(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for name, src := range map[string]string{
		"functions":   "local function f() f() end f()",
		"metamethods": "local t t = setmetatable({}, {__index = function(_, k) return t[k] end}) return t.x",
		"callbacks":   "local function f(s) return s:gsub('.', f) end f('a')",
		"coroutines":  "local function f() return coroutine.wrap(f)() end return f()",
		"pcall":       "local function f() local ok, e = pcall(f) if not ok then error(e, 0) end end f()",
		"tostring":    "local t t = setmetatable({}, {__tostring = function() return tostring(t) end}) return tostring(t)",
	} {
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), "stack overflow", name)
		require.Equal(t, ":2\r\n", eval(e, "return 1 + 1", resp.RESP2, nil, nil), name)
	}
}

func TestNestedReplyEnds(t *testing.T) {
	e := New(newFakeHost(), Options{})
	reply := eval(e, "local t = {} t[1] = t return t", resp.RESP2, nil, nil)
	require.True(t, strings.HasSuffix(reply, "*1\r\n-ERR reached lua stack limit\r\n"))
}

func TestLibraryThatLoadsForTooLong(t *testing.T) {
	e := New(newFakeHost(), Options{})
	_, err := e.LoadLibrary([]byte("#!lua name=slow\nwhile true do end"), false)
	require.EqualError(t, err, "ERR Error registering functions: ERR FUNCTION LOAD timeout")
}
