package luacall_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
	"headgate/server/script/lualib/luacall"
	"headgate/server/script/lualib/stringlib"
)

// calls are functions whose errors name the called function and the place as
// redis-server does.
var calls = []string{
	`string.rep()`,
	"\n\nstring.rep()",
	`return string.rep()`,
	`return (string.rep())`,
	`return (string.rep)()`,
	`local f = string.rep f()`,
	`local f = string.rep return f()`,
	`local t = {f = string.rep} t.f()`,
	`local t = {f = {g = string.rep}} return t.f.g()`,
	`local t = {string.rep} t[1]()`,
	`local k = "rep" string[k]()`,
	`string["rep"]()`,
	`local f = string.rep local g = function() f() end g()`,
	`local f = string.rep local g = function() return f() end return g()`,
	`(function() return string.rep end)()()`,
	`local f = string.rep local x = f or 1 x()`,
	`("x"):rep()`,
	`("x"):rep({})`,
	`("x").rep()`,
	`local s = "x" return s:rep()`,
	`local s = "x" return s.rep(s, {})`,
	`local t = {rep = string.rep} t:rep()`,
	`local t = {rep = string.rep} t.rep(t)`,
	`local t = {rep = string.rep} return t:rep(1)`,
	`string.rep("x", ("x"):rep())`,
	`("x"):rep(string.rep())`,
	"local s = 'x'\ns:rep(\n1, string.rep())",
	`pcall(string.rep) return pcall(string.rep, {}, 1)`,
	`return xpcall(string.rep, function(e) return e .. "!" end)`,
	`return select(2, pcall(function() string.rep() end))`,
	`local co = coroutine.create(function() string.rep() end) return coroutine.resume(co)`,
	`local co = coroutine.wrap(function() return string.rep("a", 2) end) return co()`,
	`return string.gsub("x", "x", string.rep)`,
	`return string.gsub("x", "x", function() return string.rep() end)`,
	`local t = setmetatable({}, {__index = string.rep}) return t.x`,
	`local t = setmetatable({}, {__add = string.rep}) return t + 1`,
	`local t = setmetatable({}, {__call = string.rep}) return t(1)`,
	`string.rep("x", nil)`,
	`string.rep("x", true)`,
	`string.rep(nil)`,
	`string.rep("x", "1e")`,
	`string.rep(function() end, 1)`,
	`string.rep(coroutine.create(function() end), 1)`,
	`return string.rep("x", "3"), string.rep(1.5, 2), string.rep(10, "0x2")`,
}

func TestErrorsAsRedis(t *testing.T) {
	redis, vm := luatest.Start(t), luatest.NewVM(t, "string", stringlib.Open)
	vm.L.GetMetatable(lua.LString("")).(*lua.LTable).RawSetString("__index", vm.L.GetGlobal("string"))
	for _, body := range calls {
		want, got := redis.Run(t, body), vm.Run(t, body)
		require.Equal(t, luatest.Explain(want), luatest.Explain(got), "%s", body)
	}
}

func TestValues(t *testing.T) {
	for _, i := range []int{-1, 0, 1, 1023, 1024, 1 << 40} {
		require.Equal(t, lua.LNumber(i), luacall.IntValue(i))
	}
	for _, s := range []string{"", "a", "\x00", "\xff", "ab"} {
		require.Equal(t, lua.LString(s), luacall.StringValue(s))
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = luacall.IntValue(1000), luacall.StringValue("a")
	}))
}
