package structlib

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/lualib/internal/luatest"
)

// cases are bodies of Lua functions, which must return here what they return
// in redis-server.
var cases = []string{
	`local names = {} for k in pairs(struct) do names[k] = type(struct[k]) end return names`,

	// Integers.
	`return struct.pack('b', 1), struct.pack('B', 255), struct.pack('b', -1), struct.pack('B', 256), struct.pack('b', 300)`,
	`return struct.pack('h', 1), struct.pack('H', 65535), struct.pack('h', -2), struct.pack('>h', 258), struct.pack('<h', 258)`,
	`return struct.pack('l', 1), struct.pack('L', -1), struct.pack('>l', 2^40), struct.pack('T', 7), struct.pack('>T', 7)`,
	`return struct.pack('i', 1), struct.pack('I', 2^32 - 1), struct.pack('>i', -5), struct.pack('i8', -5), struct.pack('I1', 511)`,
	`return struct.pack('i2', 258), struct.pack('>i3', 66051), struct.pack('<i3', 66051), struct.pack('i5', -1), struct.pack('i7', -2)`,
	`return struct.pack('i16', -1), struct.pack('>i16', -1), struct.pack('I32', 5), struct.pack('>I32', 5), struct.pack('i9', 2^60)`,
	`return struct.pack('i0', 5)`,
	`return struct.pack('i33', 5)`,
	`return struct.pack('I99999', 5)`,
	`return struct.pack('i2147483647', 5)`,
	`return struct.pack('i2147483648', 5)`,
	`return struct.pack('i99999999999999999999', 5)`,
	`return struct.pack('>L', 2^63), struct.pack('>L', 2^64), struct.pack('>L', 2^64 - 2048), struct.pack('>L', 1e30), struct.pack('>L', -2^63)`,
	`return struct.pack('>l', 1/0), struct.pack('>l', -1/0), struct.pack('>l', 0/0), struct.pack('>l', -1e30), struct.pack('>l', 2^62)`,
	`return struct.pack('>h', 1.9), struct.pack('>h', -1.9), struct.pack('>h', '12'), struct.pack('>h', '0x10')`,
	`return struct.pack('J', 1)`,
	`return struct.pack('j', 1)`,
	`return struct.pack('n', 1)`,
	`return struct.pack('p', 1)`,

	// Floats.
	`return struct.pack('f', 1.5), struct.pack('>f', 1.5), struct.pack('d', 1.5), struct.pack('>d', 1.5), struct.pack('f', 1e300)`,
	`return struct.pack('f', -0.1), struct.pack('d', -0.1), struct.pack('f', 1/0), struct.pack('d', -1/0), struct.pack('d', '2.5')`,
	`return struct.unpack('fd', struct.pack('fd', 0.1, 0.1))`,
	`return struct.unpack('>fd', struct.pack('>fd', -1e-40, 5e-324))`,
	`return struct.unpack('fd', struct.pack('fd', 1/0, 0/0))`,

	// Strings.
	`return struct.pack('s', 'abc'), struct.pack('s', ''), struct.pack('s', 'a\0b'), struct.pack('s', 12)`,
	`return struct.pack('c', 'abc'), struct.pack('c2', 'abc'), struct.pack('c3', 'abc'), struct.pack('c0', 'abc'), struct.pack('c0', '')`,
	`return struct.pack('c4', 'abc')`,
	`return struct.pack('ic4', 1, 'abc')`,
	`return struct.pack('c', '')`,
	`return struct.pack('c2147483648', 'abc')`,
	`return struct.pack('s', nil)`,
	`return struct.pack('s')`,
	`return struct.pack('s', {})`,
	`return struct.pack('s', true)`,
	`return struct.pack('bsb', 1, 'two', 3), struct.pack('Bc0', 3, 'xyz')`,
	`return struct.unpack('s', 'abc\0def'), struct.unpack('sss', 'a\0\0b\0')`,
	`return struct.unpack('s', 'abc')`,
	`return struct.unpack('s', '')`,
	`return struct.unpack('Bc0', '\3abcdef')`,
	`return struct.unpack('Bc0I', struct.pack('Bc0I', 3, 'abc', 77))`,
	`return struct.unpack('Bc0', '\9abc')`,
	`return struct.unpack('bc0', '\255abc')`,
	`return struct.unpack('c0', 'abc')`,
	`return struct.unpack('sc0', '2\0abc')`,
	`return struct.unpack('sc0', 'x\0abc')`,
	`return struct.unpack('dc0', struct.pack('d', 1.9) .. 'abc')`,
	`return struct.unpack('dc0', struct.pack('d', 0/0) .. 'abc')`,
	`return struct.unpack('dc0', struct.pack('d', 2^64) .. 'abc')`,
	`return struct.unpack('BBc0c0', '\1\2abcdef')`,
	`return struct.unpack('Bc0', '\0abc')`,
	`return struct.unpack('c3c1c', 'abcdef')`,
	`return struct.unpack('c7', 'abcdef')`,

	// Alignment and modes.
	`return struct.pack('!bi', 1, 2), struct.pack('!4bd', 1, 2), struct.pack('!8bd', 1, 2), struct.pack('!1bi', 1, 2), struct.pack('!2bi', 1, 2)`,
	`return struct.pack('!bxhxi', 1, 2, 3), struct.pack('bxh', 1, 2), struct.pack('!16bi16', 1, 2), struct.pack('!32bI32', 1, 2)`,
	`return struct.pack('!bi3', 1, 2), struct.pack('!bbi3', 1, 1, 2), struct.pack('!bbbi3i5b', 1, 2, 3, 4, 5, 6), struct.pack('!8bbi6', 1, 2, 3)`,
	`return struct.pack('!bc3i', 1, 'abc', 2), struct.pack('!sl', 'ab', 1), struct.pack('! b ! 4 i', 1, 2)`,
	`return struct.pack('!0b', 1)`,
	`return struct.pack('!3b', 1)`,
	`return struct.pack('!1073741824bi', 1, 2)`,
	`return struct.pack('!2147483648b', 1)`,
	`return struct.pack('>b<h>i', 1, 2, 3), struct.pack('>h <h', 1, 1), struct.pack('> < >h', 1)`,
	`return struct.pack('=h', 1)`,
	`return struct.pack('x'), struct.pack('xxx'), struct.pack(''), struct.pack('   ')`,
	`return struct.pack('x5', 1)`,
	`return struct.pack('X', 1)`,
	`return struct.pack('(h)', 1)`,
	`return struct.pack('h\0zz', 1)`,
	`return struct.pack('\200', 1)`,
	`return struct.pack('%', 1)`,
	`return struct.pack('i%d', 1)`,
	`return struct.unpack('!bi', '\1\0\0\0\2\0\0\0'), struct.unpack('!bd', ('\0'):rep(16)), struct.unpack('x', 'a')`,

	// Arguments.
	`return struct.pack()`,
	`return struct.pack(nil)`,
	`return struct.pack({})`,
	`return struct.pack(5)`,
	`return struct.pack('i')`,
	`return struct.pack('ii', 1)`,
	`return struct.pack('i', 'x')`,
	`return struct.pack('i', nil)`,
	`return struct.pack('id', 1, {})`,
	`return struct.pack('i', 1, 2, 3)`,
	`return struct.unpack()`,
	`return struct.unpack('i')`,
	`return struct.unpack('i', nil)`,
	`return struct.unpack('i', {})`,
	`return struct.unpack('i', 12345)`,
	`return struct.unpack('', 'abc')`,
	`return struct.unpack('i', 'abc')`,
	`return struct.unpack('q', 'abc')`,
	`return struct.unpack('i33', 'abc')`,
	`return struct.unpack('i0', 'abc')`,

	// Unpacking integers.
	`return struct.unpack('bBhHlL', struct.pack('bBhHlL', -1, -1, -1, -1, -1, -1))`,
	`return struct.unpack('>bBhHlLT', struct.pack('>bBhHlLT', 1, 2, 3, 4, 5, 6, 7))`,
	`return struct.unpack('i3I3>i3I3', '\255\255\255\1\2\3\128\0\0\128\0\0')`,
	`return struct.unpack('L', ('\255'):rep(8)), struct.unpack('l', ('\255'):rep(7) .. '\127'), struct.unpack('l', ('\0'):rep(7) .. '\128')`,
	`return struct.unpack('i16', ('\255'):rep(16)), struct.unpack('I16', ('\1'):rep(16)), struct.unpack('>i16', ('\1'):rep(16))`,
	`return struct.unpack('i9', ('\255'):rep(9)), struct.unpack('i9', ('\1'):rep(9)), struct.unpack('>i9', '\1\2\3\4\5\6\7\8\9'), struct.unpack('i12', ('\64'):rep(12))`,
	`return struct.unpack('i32I32', ('\200'):rep(64))`,

	// Positions.
	`return struct.unpack('b', 'abc', 2), struct.unpack('b', 'abc', 3), struct.unpack('b', 'abc', '2'), struct.unpack('b', 'abc', 1.9)`,
	`return struct.unpack('b', 'abc', nil)`,
	`return struct.unpack('b', 'abc', 4)`,
	`return struct.unpack('b', 'abc', 0)`,
	`return struct.unpack('b', 'abc', -1)`,
	`return struct.unpack('', 'abc', -1), struct.unpack('', 'abc', 100)`,
	`return struct.unpack('', 'abc', 0)`,
	`return struct.unpack('<', 'abc', 4)`,
	`return struct.unpack('<', 'abc', 5)`,
	`return struct.unpack('s', 'abc', 4)`,
	`return struct.unpack('s', 'abc', 5)`,
	`return struct.unpack('c', 'abc', 2^63)`,
	`return struct.unpack('!x<i', ('a'):rep(9), 0/0)`,
	`return struct.unpack('!4i', ('a'):rep(9), -1)`,
	`return struct.unpack('!4i', ('a'):rep(9), 2)`,
	`return struct.unpack('b', 'abc', 'x')`,
	`return struct.unpack('b', 'abc', {})`,
	`return struct.unpack('b', 'abc', 2^64)`,

	// Sizes.
	`return struct.size('b'), struct.size('bhilLTfd'), struct.size('!bhilLTfd'), struct.size('c10'), struct.size('xxx'), struct.size('')`,
	`return struct.size('i7'), struct.size('!bi8'), struct.size('!4bi8'), struct.size('<>! '), struct.size('!bc3d')`,
	`return struct.size('s')`,
	`return struct.size('c0')`,
	`return struct.size('q')`,
	`return struct.size('x5q9Z')`,
	`return struct.size('%')`,
	`return struct.size('=')`,
	`return struct.size('!3')`,
	`return struct.size('i33')`,
	`return struct.size('i0')`,
	`return struct.size('c2147483647c2147483647')`,
	`return struct.size()`,
	`return struct.size({})`,
	`return struct.size('b', 'c')`,

	// The C stack.
	`return select('#', struct.unpack(('b'):rep(7990), ('x'):rep(8000)))`,
	`return (struct.unpack(('b'):rep(7997), ('x'):rep(8000)))`,
	`return (struct.unpack(('b'):rep(7998), ('x'):rep(8000)))`,
	`return (struct.unpack(('b'):rep(7997), ('x'):rep(8000), 1))`,
	`return #struct.pack(('b'):rep(5000), unpack({[5000] = 1}))`,
}

func TestAgainstRedis(t *testing.T) {
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "struct", Open)
	for _, body := range cases {
		want, got := redis.Run(t, body), vm.Run(t, body)
		assert.Equal(t, want, got, "%s\nredis: %s\nhere:  %s", body, luatest.Explain(want), luatest.Explain(got))
	}
}

// randomFormat returns a format of a few options, and arguments for it.
func randomFormat(rng *rand.Rand) (format string, args []string) {
	var out strings.Builder
	for range rng.IntN(8) {
		option := "bBhHlLTiIfdscx!<> q"[rng.IntN(19)]
		out.WriteByte(option)
		if strings.IndexByte("iIc!", option) >= 0 && rng.IntN(3) > 0 {
			out.WriteString(strconv.Itoa(rng.IntN(20)))
		}
		switch {
		case strings.IndexByte("sc", option) >= 0:
			args = append(args, strings.Repeat("x", rng.IntN(20)))
		case strings.IndexByte("x!<> q", option) < 0:
			args = append(args, luatest.RandomNumber(rng))
		}
	}
	return out.String(), args
}

// TestRandomAgainstRedis packs and unpacks values of all kinds.
func TestRandomAgainstRedis(t *testing.T) {
	const rounds = 2000
	const body = `local format, data = ..., (select(2, ...))
		return {pcall(struct.pack, format, select(3, ...))}, {pcall(struct.unpack, format, data)}, {pcall(struct.size, format)}`
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "struct", Open)
	rng := luatest.NewRand(t)
	for range rounds {
		format, args := randomFormat(rng)
		data := make([]byte, rng.IntN(60))
		for i := range data {
			data[i] = byte(rng.IntN(256) >> rng.IntN(8))
		}
		args = append([]string{format, string(data)}, args...)
		want, got := redis.RunAgain(t, body, args...), vm.Run(t, body, args...)
		require.Equal(t, plain(want), plain(got), "%q\nredis: %s\nhere:  %s", args, luatest.Explain(want), luatest.Explain(got))
	}
}

// plain replaces error messages, which under pcall begin with a position here
// and name no function in Redis: only that there is one is compared.
func plain(dump string) string {
	parts := strings.Split(dump, "{")
	for i, part := range parts {
		if strings.HasPrefix(part, "n1=false") {
			parts[i] = "error"
		}
	}
	return strings.Join(parts, "{")
}

// TestLimits: no call builds more than the budget allows.
func TestLimits(t *testing.T) {
	vm := luatest.NewVM(t, "struct", Open)
	vm.Budget.MaxString = 100
	require.Contains(t, luatest.Explain(vm.Run(t, `return struct.pack('c0c0', ('x'):rep(60), ('x'):rep(60))`)), "not enough memory")
	require.Contains(t, vm.Run(t, `return #struct.pack('c0', ('x'):rep(60))`), "true n60")
}

// TestSteps: what calls cost grows with what they read and write.
func TestSteps(t *testing.T) {
	vm := luatest.NewVM(t, "struct", Open)
	vm.L.SetGlobal("text", lua.LString(strings.Repeat("x", 80_000)))
	for _, body := range []string{`struct.pack('s', text)`, `struct.unpack('c80000', text)`, `struct.unpack('s', text .. '\0')`,
		`struct.unpack('s', text)`, `struct.size(('x'):rep(10000))`, `struct.pack(('x'):rep(10000))`} {
		const before, least = 1 << 30, 9000
		vm.Budget.Steps = before
		vm.Run(t, body)
		require.Less(t, vm.Budget.Steps, int64(before-least), body)
	}
}

func fuzzCall(t *testing.T, vm *luatest.VM, function string, args ...lua.LValue) []lua.LValue {
	results, _ := vm.Call(vm.L.GetGlobal("struct").(*lua.LTable).RawGetString(function).(*lua.LFunction), args...)
	return results
}

func addFormats(f *testing.F, add func(format string)) {
	for _, format := range []string{"", "b", "!bhilLTfd", ">i3<I5c0", "Bc0s", "i32I33", "!1073741824bi", "c2147483647", "c2147483648", "sc0", "xxX", "!16i16 d"} {
		add(format)
	}
}

// FuzzStructUnpack reads any data by any format from any position.
func FuzzStructUnpack(f *testing.F) {
	addFormats(f, func(format string) {
		f.Add(format, "\x03abc\x00def", 1.0)
		f.Add(format, strings.Repeat("\xff", 70), -1.0)
	})
	vm := luatest.NewVM(f, "struct", Open)
	f.Fuzz(func(t *testing.T, format, data string, position float64) {
		fuzzCall(t, vm, "unpack", lua.LString(format), lua.LString(data), lua.LNumber(position))
	})
}

// FuzzStructPack packs values by any format; what was packed has the size that
// size tells, and unpacks to what packs to the same again.
func FuzzStructPack(f *testing.F) {
	addFormats(f, func(format string) { f.Add(format, "text", 1.5) })
	vm := luatest.NewVM(f, "struct", Open)
	f.Fuzz(func(t *testing.T, format, text string, number float64) {
		args := []lua.LValue{lua.LString(format)}
		for i := 0; i < len(format) && format[i] != 0; i++ {
			switch {
			case strings.IndexByte("sc", format[i]) >= 0:
				args = append(args, lua.LString(text))
			case strings.IndexByte("bBhHlLTiIfd", format[i]) >= 0:
				args = append(args, lua.LNumber(number))
			}
		}
		packed := fuzzCall(t, vm, "pack", args...)
		if packed == nil {
			return
		}
		data := packed[0].(lua.LString)
		if size := fuzzCall(t, vm, "size", args[0]); size != nil {
			require.Equal(t, lua.LNumber(len(data)), size[0])
		}
		values := fuzzCall(t, vm, "unpack", args[0], data)
		if values == nil || strings.ContainsAny(format, "sc") {
			return // c0 and s read other bytes than they wrote
		}
		require.Equal(t, lua.LNumber(len(data)+1), values[len(values)-1])
		again := fuzzCall(t, vm, "pack", append(args[:1:1], values[:len(values)-1]...)...)
		require.NotNil(t, again)
		require.Len(t, string(again[0].(lua.LString)), len(data))
	})
}

func BenchmarkPackUnpack(b *testing.B) {
	vm := luatest.NewVM(b, "struct", Open)
	f := vm.Compile(b, `for i = 1, 100 do struct.unpack('Bc0I', struct.pack('Bc0I', 3, 'abc', i)) end`)
	b.ReportAllocs()
	for b.Loop() {
		vm.L.Push(f)
		vm.L.Call(0, 0)
	}
}
