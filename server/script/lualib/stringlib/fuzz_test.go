package stringlib_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
)

// stop is what the fuzz targets' budgets end a call with.
const stop = "out of steps"

// limitSteps makes vm raise an error after n steps.
func limitSteps(vm *luatest.VM, n int64) {
	vm.Budget.Steps = n
	vm.Budget.Check = func() {
		if vm.Budget.Steps <= 0 {
			vm.L.Error(lua.LString(stop), 0)
		}
	}
}

// FuzzPattern matches any pattern against any subject. What find, match,
// gmatch and gsub say has to agree.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"hello world", "o w"}, {"key = value", "^(%w+)%s*=%s*(%w*)$"}, {"((a)(b))", "%b()"}, {"THE (quick) fox", "%f[%a]%a+%f[%A]"},
		{"abcabc", "(a)(b)%1"}, {"aaaaaaaaaaaaaaaaaaaa", "a-a-a-a-a-b"}, {"a\x00b", "[\x00b]"}, {"x", "[^]]"}, {"a", "(a"}, {"a", "a)"},
		{"", "()"}, {"ab", "%"}, {"ab", "[a-"}, {"ab", "[%"}, {"ab", "%f"}, {"ab", "%b("}, {"a", "((((((((((((((((((((((((((((((((((("}, {"-", "[a-%-]"},
	} {
		f.Add(seed[0], seed[1])
	}
	const body = `
		local s, pattern = ...
		local first, last = string.find(s, pattern)
		local count = select(2, string.gsub(s, pattern, ""))
		local same = string.gsub(s, pattern, "%0")
		local found = string.match(s, pattern)
		local n = 0
		if string.sub(pattern, 1, 1) ~= "^" then
			for _ in string.gmatch(s, pattern) do n = n + 1 end
		else
			n = count
		end
		return first or false, last or false, count, same, found ~= nil, n`
	f.Fuzz(func(t *testing.T, subject, pattern string) {
		vm := newVM(t)
		limitSteps(vm, 200_000)
		results, raised := vm.Call(vm.Compile(t, body), lua.LString(subject), lua.LString(pattern))
		if raised != nil {
			require.IsType(t, lua.LString(""), raised)
			return
		}
		require.Len(t, results, 6)
		first, matched := results[0].(lua.LNumber)
		count, text := results[2].(lua.LNumber), string(results[3].(lua.LString))
		if strings.IndexByte(pattern, 0) < 0 && strings.ContainsAny(pattern, "^$*+?.([%-") {
			require.Equal(t, matched, results[4] == lua.LTrue, "find and match")
			require.Equal(t, matched, count > 0, "find and gsub")
		}
		if matched {
			last := results[1].(lua.LNumber)
			require.True(t, first >= 1 && last >= first-1 && int(last) <= len(subject), "%v %v", first, last)
		}
		if !strings.Contains(pattern, "(") {
			require.Equal(t, subject, text, "replacing each match by itself")
		}
		require.Equal(t, count, results[5], "gsub and gmatch")
	})
}

// FuzzFormat formats any values with any format.
func FuzzFormat(f *testing.F) {
	for _, seed := range []string{
		"%d", "%5.2f", "%-10s|", "%+08d", "%#x", "%q", "%c%c", "%g %e", "%99.99f", "%100d", "%.100f", "%", "%%", "%y", "%0+ #-0d",
		"%s\x00%s", "%5.1q", "%i%u%o%X%E%G", "%.s", "%-+ #05.3d",
	} {
		f.Add(seed, "text", 1.5)
		f.Add(seed, "-12", -1e300)
	}
	const body = `local format, text, number = ...
		return string.format(format, number, text, number, text), string.format(format, text, number, text, number)`
	f.Fuzz(func(t *testing.T, format, text string, number float64) {
		vm := newVM(t)
		limitSteps(vm, 200_000)
		results, raised := vm.Call(vm.Compile(t, body), lua.LString(format), lua.LString(text), lua.LNumber(number))
		if raised != nil {
			require.IsType(t, lua.LString(""), raised)
			return
		}
		const conversions, longest = 4, 512
		for _, result := range results {
			most := len(format) + conversions*max(longest, 4*len(text)+2)
			require.LessOrEqual(t, len(result.(lua.LString)), most)
		}
	})
}
