package script

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/resp"
)

// onDeepStack is a script that does something within 190 calls of pcall or xpcall, above 19,000 calls of Lua functions.
func onDeepStack(protected, body string) string {
	return fmt.Sprintf("local function same(e) return e end local function g(n) if n > 0 then return (%s) end %s end "+
		"local function f(n) if n > 0 then local x = f(n - 1) return x end return g(190) end return f(19000)", protected, body)
}

// TestOverflowsInHandlers: where the calls that a handler makes overflow the stack once more, no matter how many registers they use, the stack is not
// described.
func TestOverflowsInHandlers(t *testing.T) {
	for _, parameters := range []int{0, 49, 60, 100} {
		e := New(newFakeHost(), Options{})
		src := "local function f(a" + strings.Repeat(", a", parameters) + ") return 1 + f(a) end local function h() return xpcall(f, h) end return {xpcall(f, h)}"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, "*2\r\n$-1\r\n$-1\r\n", eval(e, src, resp.RESP2, nil, nil), parameters)
		runtime.ReadMemStats(&after)
		require.Less(t, after.Mallocs-before.Mallocs, uint64(30_000), "%d parameters: objects", parameters)
	}
}

const (
	bytesOverflow  = "local s = ('x'):rep(%d) local function v(a, ...) return s:byte(1, -1), v(s:byte(1, -1)) end "
	valuesOverflow = "local t = {} for i = 1, %d do t[i] = i end local function v(...) return 1, v(unpack(t)) end "
)

// TestOverflowsOfVarargs: calls that take thousands of registers each overflow the stack as others do, wherever that is caught.
func TestOverflowsOfVarargs(t *testing.T) {
	const caught, inHandler = "*2\r\n$-1\r\n$29\r\nuser_script:1: stack overflow\r\n", "*2\r\n$-1\r\n$23\r\nerror in error handling\r\n"
	for _, overflow := range []string{bytesOverflow, valuesOverflow} {
		for _, n := range []int{4500, 7990} {
			for last, want := range map[string]string{
				"return v()":            "-ERR user_script:1: stack overflow script: ",
				"return {pcall(v)}":     caught,
				"return {xpcall(v, v)}": inHandler,
				"return {xpcall(v, function(e) return e end)}":                              caught,
				"return {pcall(coroutine.wrap(function() return {pcall(v)} end))}":          "*2\r\n:1\r\n" + caught,
				"return {coroutine.resume(coroutine.create(function() return 1, v() end))}": caught,
				"return {pcall(string.gsub, 'x', 'x', function() return (v()) end)}":        caught,
			} {
				e := New(newFakeHost(), Options{})
				src := fmt.Sprintf(overflow, n) + last
				require.Contains(t, strings.Replace(eval(e, src, resp.RESP2, nil, nil), want, "as wanted", 1), "as wanted", src)
			}
			e := New(newFakeHost(), Options{})
			_, err := e.LoadLibrary([]byte("#!lua name=deep\n"+fmt.Sprintf(overflow, n)+"redis.register_function('deep', function() return v() end)"), false)
			require.NoError(t, err)
			require.Contains(t, call(e, "deep", nil, nil), "-ERR user_function:2: stack overflow")
			_, err = e.LoadLibrary([]byte("#!lua name=other\n"+fmt.Sprintf(overflow, n)+"return v()"), false)
			require.Error(t, err)
			if !strings.Contains(err.Error(), loadTimeText) { // which ends it first on a slow machine
				require.ErrorContains(t, err, "user_function:2: stack overflow")
			}
		}
	}
}

// TestManyVarargs: calls that pass on more and more values, in each other's place, end as others do.
func TestManyVarargs(t *testing.T) {
	more := strings.Repeat("1, ", 100)
	src := "local w local function g(n, ...) if n == 0 then return w(...) end return g(n - 1, " + more + "...) end w = function(...) return 1, w(...) end return {pcall(g, 1000)}"
	e := New(newFakeHost(), Options{})
	require.Equal(t, "*2\r\n$-1\r\n$29\r\nuser_script:1: stack overflow\r\n", eval(e, src, resp.RESP2, nil, nil))
	chunk := "local t = {} for i = 1, 7990 do t[i] = i end return {pcall(loadstring('local f, g, t = ... return 1, f(f, g, t, g(t, 4))'), nil, unpack, t)}"
	require.Contains(t, eval(e, chunk, resp.RESP2, nil, nil), "attempt to call")
	chunk = "local t = {} for i = 1, 7990 do t[i] = i end local f = loadstring('local f, g, t = ... return 1, f(f, g, t, g(t, 4))') return {pcall(f, f, unpack, t)}"
	require.Contains(t, eval(e, chunk, resp.RESP2, nil, nil), "stack overflow\r\n")
}

// TestGuardedReturns: an error that gopher-lua gives up on all calls for ends no more than the one that is guarded.
func TestGuardedReturns(t *testing.T) {
	e := New(newFakeHost(), Options{})
	e.begin(e.eval, "", &e.eval.heap)
	L := e.eval.L
	L.Push(L.NewFunction(func(L *lua.LState) int {
		L.Push(L.NewFunction(func(L *lua.LState) int {
			for {
				L.Push(lua.LTrue)
			}
		}))
		err := e.eval.guarded(L, 0, lua.MultRet, e.eval.caught)
		require.ErrorContains(t, err, "stack overflow")
		require.Zero(t, L.GetTop())
		return push(L, lua.LString("fine"))
	}))
	require.NoError(t, e.eval.guarded(L, 0, 1, e.eval.outermost))
	require.Equal(t, lua.LString("fine"), L.Get(-1))
	require.True(t, e.run.broken)
	L.Pop(1)
	e.end(e.eval)
	require.Equal(t, ":1\r\n", eval(e, "return 1", resp.RESP2, nil, nil))
}

// TestVarargsInHandlers is TestOverflowsInHandlers for calls of many values each on a deep stack.
func TestVarargsInHandlers(t *testing.T) {
	const values = "local function o(...) return 1 + o(...) end "
	for _, n := range []int{4500, 7990} {
		for inner, want := range map[string]string{
			"xpcall(function() return o(unpack(t)) end, function(e) return o(unpack(t)) end)":                                         "error in error handling",
			"xpcall(function() return o(unpack(t)) end, function(e) return select(2, pcall(o, unpack(t))) end)":                       "error in error handling",
			"xpcall(v, function(e) return v(unpack(t)) end)":                                                                          "error in error handling",
			"xpcall(b, function(e) return b(s:byte(1, -1)) end)":                                                                      "error in error handling",
			"xpcall(function() return o(unpack(t)) end, function(e) return coroutine.wrap(function() return o(unpack(t)) end)() end)": "error in error handling",
			"pcall(o, unpack(t))": "user_script:1: stack overflow",
			"h()":                 "false",
		} {
			e := New(newFakeHost(), Options{})
			src := fmt.Sprintf(valuesOverflow, n) + strings.Replace(fmt.Sprintf(bytesOverflow, n), "local function v", "local b b = function", 1) + values
			src = strings.Replace(src, ", v(s:byte", ", b(s:byte", 1)
			src += "local function h() return xpcall(function() return o(unpack(t)) end, h) end " +
				"local function f(n) if n > 0 then local x = f(n - 1) return x end return tostring(select(2, " + inner + ")) end return f(19900)"
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			require.Contains(t, eval(e, src, resp.RESP2, nil, nil), want, src)
			runtime.ReadMemStats(&after)
			require.Less(t, after.Mallocs-before.Mallocs, uint64(60_000), "%d values, %s: objects", n, inner)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(400<<20), "%d values, %s: bytes", n, inner)
		}
	}
}

// TestStopsOnDeepStacks: however a script is stopped, its calls are not described for each pcall that the stop passes: that would make a few objects
// for each of them.
func TestStopsOnDeepStacks(t *testing.T) {
	const loop, grow = "while true do end", "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e6) .. i end"
	const failing = "while true do xpcall(error, function(e) for i = 1, 100 do xpcall(error, function() error(e) end) end end) end"
	for _, c := range []struct{ name, body, want string }{
		{"time", loop, timeLimitText}, {"kill", loop, killedText}, {"memory", grow, memoryText}, {"load", loop, loadTimeText}, {"handlers", failing, timeLimitText},
		{"errors", "while true do pcall(error, ('x'):rep(1e5)) end", timeLimitText},
	} {
		for _, protected := range []string{"pcall(g, n - 1)", "xpcall(function() return g(n - 1) end, same)"} {
			slices := 0
			e := New(newFakeHost(), Options{OnSlice: func(elapsed time.Duration) Action {
				slices++
				switch {
				case c.name == "kill" && slices == 50:
					return Kill
				case c.want == timeLimitText && slices == 50:
					return TimeLimit
				}
				return Continue
			}})
			src := onDeepStack(protected, c.body)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if c.name == "load" {
				_, err := e.LoadLibrary([]byte("#!lua name=deep\n"+src), false)
				require.ErrorContains(t, err, c.want)
			} else {
				require.Contains(t, eval(e, src, resp.RESP2, nil, nil), c.want, c.name)
			}
			runtime.ReadMemStats(&after)
			require.Less(t, after.Mallocs-before.Mallocs, uint64(500_000), "%s: objects", c.name)
		}
	}
}
