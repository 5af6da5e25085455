package stringlib_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
)

// function returns a Lua function. A chunk would do, but calling one allocates a
// table for its arguments.
func function(b *testing.B, vm *luatest.VM, source string) lua.LValue {
	results, raised := vm.Call(vm.Compile(b, "return "+source))
	require.Nil(b, raised)
	return results[0]
}

func BenchmarkString(b *testing.B) {
	tests := []struct{ name, body string }{
		{"sub", `return string.sub("rate:limit:key", 1, 4)`},
		{"byte", `return string.byte("rate", 1)`},
		{"find plain", `return string.find("rate:limit:key", ":", 1, true)`},
		{"match", `return string.match("rate:1234:key", "^(%a+):(%d+)")`},
		{"gsub", `return string.gsub("a,b,c,d", ",", ";")`},
		{"gsub nothing", `return string.gsub("rate:limit:key", "%d", "x")`},
		{"gmatch", `for _ in string.gmatch("a b c d", "%a") do end`},
		{"format d", `return string.format("%d", 1700000000)`},
		{"format s", `return string.format("%s:%s", "rate", "key")`},
		{"format f", `return string.format("%.3f", 1.2345)`},
		{"rep", `return string.rep("ab", 100)`},
		{"upper", `return string.upper("rate")`},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			vm := newVM(b)
			f := function(b, vm, "function() "+test.body+" end")
			b.ReportAllocs()
			for b.Loop() {
				vm.L.Push(f)
				vm.L.Call(0, lua.MultRet)
				vm.L.SetTop(0)
			}
		})
	}
}

// BenchmarkScan is the matcher on a long subject, in bytes per second.
func BenchmarkScan(b *testing.B) {
	tests := []struct{ name, pattern string }{
		{"literal", "b.c"}, {"class", "%d"}, {"set", "[^a ]"}, {"lazy", "^.-b"},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			vm := newVM(b)
			const size = 1 << 16
			results, raised := vm.Call(vm.Compile(b, `return string.rep("a", ...)`), lua.LNumber(size))
			require.Nil(b, raised)
			f := function(b, vm, "function(s, pattern) return string.find(s, pattern) end")
			b.SetBytes(size)
			for b.Loop() {
				vm.L.Push(f)
				vm.L.Push(results[0])
				vm.L.Push(lua.LString(test.pattern))
				vm.L.Call(2, lua.MultRet)
				vm.L.SetTop(0)
			}
		})
	}
}
