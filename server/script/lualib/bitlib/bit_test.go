package bitlib

import (
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/script/lualib/internal/luatest"
)

// cases are bodies of Lua functions, which must return here what they return
// in redis-server.
var cases = []string{
	`local names = {} for k in pairs(bit) do names[k] = type(bit[k]) end return names`,

	`return bit.tobit(0), bit.tobit(1), bit.tobit(-1)`,
	`return bit.tobit(0xffffffff), bit.tobit(0x80000000), bit.tobit(0x7fffffff)`,
	`return bit.tobit(2^32), bit.tobit(2^32 + 1), bit.tobit(-2^32 - 1)`,
	`return bit.tobit(2^51), bit.tobit(2^52), bit.tobit(2^52 + 1), bit.tobit(2^53 - 1)`,
	`return bit.tobit(2^53), bit.tobit(2^60), bit.tobit(-2^60), bit.tobit(1e300)`,
	`return bit.tobit(0.5), bit.tobit(1.5), bit.tobit(2.5), bit.tobit(-0.5), bit.tobit(-1.5)`,
	`return bit.tobit(0.49999999999999994), bit.tobit(3.7), bit.tobit(-3.7)`,
	`return bit.tobit(1/0), bit.tobit(-1/0), bit.tobit(0/0), bit.tobit(-(0/0))`,
	`return bit.tobit('12'), bit.tobit('0x10'), bit.tobit(' 7 '), bit.tobit('1e3'), bit.tobit('inf')`,
	`return bit.tobit(1, 2, 3)`,
	`return bit.tobit()`,
	`return bit.tobit(nil)`,
	`return bit.tobit(true)`,
	`return bit.tobit({})`,
	`return bit.tobit('x')`,
	`return bit.tobit('')`,
	`return bit.tobit(bit.tobit)`,

	`return bit.bnot(0), bit.bnot(-1), bit.bnot(1), bit.bnot(0x12345678), bit.bnot('255')`,
	`return bit.bnot()`,
	`return bit.bnot('z')`,

	`return bit.band(0xff, 0x0f), bit.band(-1, 0x7fffffff), bit.band(0xffffffff, 0x80000000)`,
	`return bit.band(7)`,
	`return bit.band(7, 6, 4, 12)`,
	`return bit.band('7', '0x6')`,
	`return bit.band()`,
	`return bit.band(nil)`,
	`return bit.band(1, nil)`,
	`return bit.band(1, {}, nil)`,
	`return bit.band(1, nil, 'x')`,
	`return bit.band({}, nil)`,
	`return bit.bor(1, 2, 4), bit.bor(0), bit.bor(0x80000000, 1), bit.bor(-1, 5)`,
	`return bit.bor()`,
	`return bit.bor(0, 'a')`,
	`return bit.bxor(5, 3), bit.bxor(1, 1, 1), bit.bxor(-1, 0xff), bit.bxor(0xa5a5f0f0, 0xaa55ff00)`,
	`return bit.bxor()`,
	`return bit.bxor(false, 1)`,
	`local t = {} for i = 1, 200 do t[i] = i * 7 end return bit.bxor(unpack(t)), bit.bor(unpack(t)), bit.band(unpack(t))`,

	`return bit.lshift(1, 0), bit.lshift(1, 31), bit.lshift(1, 32), bit.lshift(1, 33), bit.lshift(1, -1)`,
	`return bit.lshift(0x87654321, 12)`,
	`return bit.lshift(1)`,
	`return bit.lshift()`,
	`return bit.lshift(1, 'x')`,
	`return bit.lshift('x', 'y')`,
	`return bit.lshift(1, 4.5), bit.lshift(1, '3'), bit.lshift(1, 2.5)`,
	`return bit.rshift(256, 8), bit.rshift(-256, 24), bit.rshift(0x87654321, 12), bit.rshift(-1, 0), bit.rshift(-1, 32)`,
	`return bit.rshift(1, nil)`,
	`return bit.arshift(256, 8), bit.arshift(-256, 8), bit.arshift(0x87654321, 12), bit.arshift(-1, 31), bit.arshift(-1, 63)`,
	`return bit.arshift(1, {})`,
	`return bit.rol(0x12345678, 12), bit.rol(0x12345678, 0), bit.rol(0x12345678, 32), bit.rol(0x12345678, -4), bit.rol(0x80000000, 1)`,
	`return bit.rol(1)`,
	`return bit.ror(0x12345678, 12), bit.ror(0x12345678, 0), bit.ror(0x12345678, 31), bit.ror(0x12345678, -4), bit.ror(1, 1)`,
	`return bit.ror(nil, nil)`,
	`return bit.bswap(0x12345678), bit.bswap(0x78563412), bit.bswap(0), bit.bswap(-1), bit.bswap(255)`,
	`return bit.bswap()`,

	`return bit.tohex(1), bit.tohex(-1), bit.tohex(0xffffffff), bit.tohex(0x87654321)`,
	`return bit.tohex(-1, 4), bit.tohex(0x21, 4), bit.tohex(0x87654321, 4), bit.tohex(0xabcd, 2)`,
	`return bit.tohex(-1, -4), bit.tohex(0xabcdef, -8), bit.tohex(0xabcdef, -1)`,
	`return bit.tohex(5, 0), bit.tohex(5, 1), bit.tohex(5, 9), bit.tohex(5, 100), bit.tohex(0xab, -9), bit.tohex(0xab, -100)`,
	`return bit.tohex(0xab, 2^31), bit.tohex(0xab, -2^31), bit.tohex(0xab, 2^31 - 1), bit.tohex(0xab, 1 - 2^31)`,
	`return bit.tohex(0xab, 2^32), bit.tohex(0xab, 2^32 + 3)`,
	`return bit.tohex('171', '4')`,
	`return bit.tohex()`,
	`return bit.tohex(nil)`,
	`return bit.tohex(1, nil)`,
	`return bit.tohex(1, 'x')`,
	`return bit.tohex(1, 2, 3)`,

	`local x = 0 for i = 1, 100 do x = bit.bxor(bit.rol(x, 5), i * 0x9e3779b9) end return x`,
	`assert(0x7fffffff == 2147483647, "broken hex literals")
	 return bit.tobit(0x8000000000), bit.tobit(-0x80000000)`,
}

func TestAgainstRedis(t *testing.T) {
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "bit", Open)
	for _, body := range cases {
		want, got := redis.Run(t, body), vm.Run(t, body)
		require.Equal(t, want, got, "%s\nredis: %s\nhere:  %s", body, luatest.Explain(want), luatest.Explain(got))
	}
}

// TestRandomAgainstRedis compares all functions on numbers of all sizes.
func TestRandomAgainstRedis(t *testing.T) {
	const rounds = 500
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "bit", Open)
	rng := luatest.NewRand(t)
	const body = `local x, y, out = tonumber((...)), tonumber((select(2, ...))), {}
		for _, name in ipairs{'tobit', 'bnot', 'bswap', 'band', 'bor', 'bxor', 'lshift', 'rshift', 'arshift', 'rol', 'ror', 'tohex'} do
			out[name] = bit[name](x, y)
		end
		return out`
	for range rounds {
		x, y := luatest.RandomNumber(rng), luatest.RandomNumber(rng)
		require.Equal(t, redis.RunAgain(t, body, x, y), vm.Run(t, body, x, y), "%s %s", x, y)
	}
}

// TestSteps: a call's steps grow with its arguments.
func TestSteps(t *testing.T) {
	vm := luatest.NewVM(t, "bit", Open)
	const before = 1 << 20
	vm.Budget.Steps = before
	vm.Run(t, `local t = {} for i = 1, 100 do t[i] = i end return bit.bor(unpack(t))`)
	require.LessOrEqual(t, vm.Budget.Steps, int64(before-100))
}

func BenchmarkBand(b *testing.B) {
	vm := luatest.NewVM(b, "bit", Open)
	f := vm.Compile(b, `for i = 1, 1000 do bit.band(i, 255) end`)
	b.ReportAllocs()
	for b.Loop() {
		vm.L.Push(f)
		vm.L.Call(0, 0)
	}
}
