package stringlib_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
	"headgate/server/script/lualib/stringlib"
	"headgate/server/script/lualib/tablelib"
)

func newVM(t testing.TB) *luatest.VM {
	vm := luatest.NewVM(t, "string", stringlib.Open)
	vm.L.SetGlobal("table", tablelib.Open(vm.L, vm.Budget))
	vm.L.GetMetatable(lua.LString("")).(*lua.LTable).RawSetString("__index", vm.L.GetGlobal("string"))
	return vm
}

func TestAsRedis(t *testing.T) {
	redis, vm := luatest.Start(t), newVM(t)
	for _, body := range cases {
		want, got := redis.Run(t, body), vm.Run(t, body)
		require.Equal(t, luatest.Explain(want), luatest.Explain(got), "%s", body)
	}
}
