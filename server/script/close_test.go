package script

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestVariablesOutliveErrorsOfCatchers: what pcall, xpcall or load itself raises leaves the variables of those who called it to their closures.
func TestVariablesOutliveErrorsOfCatchers(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, raises := range []string{
		"load(5)", "xpcall(tostring)", "local function deep() pcall(deep) error('x') end deep()",
		"pcall(load, 5) load(5)", "xpcall(function() load(function() return {} end) end, error) load(5)", "load(function() load(5) end) load(5)", "coroutine.wrap(function() pcall(load, 5) load(5) end)()",
	} {
		src := "local f pcall(function() local v = 7 f = function() v = v + 1 return v end " + raises + " end) local a, b, c = 1, 2, 3 return {f(), f(), a}"
		require.Equal(t, "*3\r\n:8\r\n:9\r\n:1\r\n", eval(e, src, resp.RESP2, nil, nil), raises)
	}
}

// TestHandlersThatFail: an error of xpcall's handler goes to the handler in turn, and leaves the variables of the functions that go on alone. The wanted
// results are those of redis-server 7.0.15.
func TestHandlersThatFail(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for _, c := range []struct{ fails, handler, want string }{
		{"error('x')", "error('h')", "221 error in error handling"},
		{"error('x')", "local x = nil + 1", "221 error in error handling"},
		{"error('x')", "if n < 4 then error('h' .. n, 0) end return m .. '!'", "4 h3!"},
		{"error('x')", "if n < 198 then error('h', 0) end return m", "198 C stack overflow"},
		{"error('x')", "if n < 3 then error({}) end return type(m)", "3 table"},
		{"error('x')", "load(5)", "221 error in error handling"},
		{"error('x')", "if n > 5 then return m end local f, e = load(function() error('r' .. n, 0) end) return e", "6 r5"},
		{"error('x')", "if n > 5 then return m end pcall(load, function() error('r' .. n, 0) end) return m", "1 user_script:1: x"},
		{"return load(function() return {} end)", "if n < 3 then error('h') end", "3 nil"},
	} {
		src := "local n, v = 0, 7 local f = function() v = v + 1 return v end local ok, e = xpcall(function() " + c.fails + " end, function(m) n = n + 1 " +
			c.handler + " end) v = 100 return n .. ' ' .. tostring(e) .. ' ' .. f() .. ' ' .. v"
		want := c.want + " 101 101"
		require.Equal(t, fmt.Sprintf("$%d\r\n%s\r\n", len(want), want), eval(e, src, resp.RESP2, nil, nil), c)
	}
}

// TestHandlersNestAsInRedis: what handles errors in what handles errors counts with the calls below, and there is room for it beyond the deepest of calls.
// The wanted results are those of redis-server 7.0.15.
func TestHandlersNestAsInRedis(t *testing.T) {
	e := New(newFakeHost(), Options{})
	const deep = "local function deep(n) return 1 + deep(1) end "
	for src, want := range map[string]string{
		"local n = 0 local function f() n = n + 1 return xpcall(f, f) end local a, b = f()":                                         "true true 223",
		"local n = 0 local function f() n = n + 1 local x = xpcall(error, f) return x end local a, b = f()":                         "false nil 112",
		"local n = 0 local function f() n = n + 1 if n >= 500 then error('end') end return xpcall(f, f) end local a, b = f()":       "true true 223",
		"local n = 0 local function h(e) n = n + 1 local a, b = xpcall(error, h) return b end local a, b = xpcall(error, h)":        "false error in error handling 111",
		"local n = 0 local function h(e) n = n + 1 local a, b = pcall(h) return b end local a, b = xpcall(error, h)":                "false C stack overflow 197",
		deep + "local n = 0 local function h(e) n = n + 1 return xpcall(deep, h) end local a, b = xpcall(deep, h)":                  "false false 1",
		deep + "local n = 0 local a, b = xpcall(deep, function() for i = 1, 10000 do n = n + 1 end return n end)":                   "false 10000 10000",
		deep + "local n = 0 local a, b = xpcall(deep, function() for i = 1, 10 do n = n + 1 end return select(2, pcall(deep)) end)": "false error in error handling 10",
	} {
		want = fmt.Sprintf("$%d\r\n%s\r\n", len(want), want)
		require.Equal(t, want, eval(e, src+" return tostring(a) .. ' ' .. tostring(b) .. ' ' .. n", resp.RESP2, nil, nil), src)
	}
}
