package stringlib_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/script/lualib/internal/luatest"
)

// randomText returns up to most of the pieces, chosen at random.
func randomText(rng *rand.Rand, most int, pieces ...string) string {
	var b strings.Builder
	for range rng.IntN(most + 1) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

func randomSubject(rng *rand.Rand) string {
	return randomText(rng, 16, "a", "a", "a", "b", "b", "c", "A", "1", "2", " ", ".", "-", "(", ")", "[", "]", "%", "^", "$", "\x00", "\xff", "\n")
}

// randomPattern returns a pattern that is well-formed more often than not.
func randomPattern(rng *rand.Rand) string {
	if rng.IntN(8) == 0 {
		return randomText(rng, 8, "%", "(", ")", "[", "]", "^", "$", "*", "+", "-", "?", ".", "a", "b", "1", "f", "b", "\x00", "z")
	}
	singles := []string{"a", "b", "c", ".", "%a", "%d", "%s", "%w", "%A", "%D", "%p", "%u", "%l", "%x", "%c", "%z", "%.", "%(", "%%", "%-",
		"[ab]", "[^ab]", "[a-c]", "[^%s]", "[%w_]", "[]]", "[^]a]", "[a-]", "[%a-c]", "[%]a]", "[1-%]]", "-", "1", "\xff"}
	var b strings.Builder
	if rng.IntN(6) == 0 {
		b.WriteByte('^')
	}
	open, captures := 0, 0
	for range rng.IntN(7) {
		switch rng.IntN(14) {
		case 0, 1:
			b.WriteByte('(')
			open++
			captures++
		case 2, 3:
			if open > 0 {
				b.WriteByte(')')
				open--
				continue
			}
			b.WriteString("()")
			captures++
		case 4:
			b.WriteString([]string{"%b()", "%b[]", "%baa", "%bab"}[rng.IntN(4)])
		case 5:
			b.WriteString([]string{"%f[%a]", "%f[^%a]", "%f[%z]", "%f[ab]"}[rng.IntN(4)])
		case 6:
			if captures > 0 {
				b.WriteString("%" + strconv.Itoa(1+rng.IntN(captures)))
			}
		default:
			b.WriteString(singles[rng.IntN(len(singles))])
			b.WriteString([]string{"", "", "", "*", "+", "-", "?"}[rng.IntN(7)])
		}
	}
	if rng.IntN(8) > 0 {
		b.WriteString(strings.Repeat(")", open))
	}
	if rng.IntN(6) == 0 {
		b.WriteByte('$')
	}
	return b.String()
}

func randomReplacement(rng *rand.Rand) string {
	return randomText(rng, 4, "%0", "%1", "%1", "%2", "%%", "%a", "x", "<", "\x00", "")
}

// TestPatternsAsRedis applies random patterns to random subjects. Everything
// that find, match, gmatch and gsub return has to be what redis-server's do.
func TestPatternsAsRedis(t *testing.T) {
	const pairs, batch = 8_000, 500
	const body = `
		local args, results = {...}, {}
		for i = 1, #args, 4 do
			local s, pattern, text, from = args[i], args[i + 1], args[i + 2], tonumber(args[i + 3])
			results[#results + 1] = {pcall(string.find, s, pattern)}
			results[#results + 1] = {pcall(string.find, s, pattern, from)}
			results[#results + 1] = {pcall(string.match, s, pattern, from)}
			results[#results + 1] = {pcall(string.gsub, s, pattern, text)}
			results[#results + 1] = {pcall(string.gsub, s, pattern, text, from)}
			results[#results + 1] = {pcall(string.gsub, s, pattern, {a = "X", b = false, [1] = 7})}
			results[#results + 1] = {pcall(string.gsub, s, pattern, function(x, y) if y then return y end if x == "a" then return 1 end end)}
			results[#results + 1] = {pcall(function()
				local all = {}
				for x, y in string.gmatch(s, pattern) do all[#all + 1] = {x, y} end
				return all
			end)}
		end
		return unpack(results)`
	redis, vm, rng := luatest.Start(t), newVM(t), luatest.NewRand(t)
	for range pairs / batch {
		var args []string
		for range batch {
			args = append(args, randomSubject(rng), randomPattern(rng), randomReplacement(rng), strconv.Itoa(rng.IntN(16)-6))
		}
		want, got := strings.Split(redis.RunAgain(t, body, args...), " "), strings.Split(vm.Run(t, body, args...), " ")
		require.Equal(t, len(want), len(got))
		for i := range want {
			if want[i] != got[i] {
				const perPair = 8
				call := (i - 1) % perPair
				require.Equal(t, luatest.Explain(want[i]), luatest.Explain(got[i]), "call %d of %q", call, args[(i-1)/perPair*4:][:4])
			}
		}
	}
}

// TestFormatAsRedis formats random numbers and texts with random conversions.
func TestFormatAsRedis(t *testing.T) {
	const calls, batch = 20_000, 1000
	const body = `
		local args, results = {...}, {}
		for i = 1, #args, 3 do results[#results + 1] = {pcall(string.format, args[i], args[i + 1], args[i + 2])} end
		return unpack(results)`
	redis, vm, rng := luatest.Start(t), newVM(t), luatest.NewRand(t)
	value := func() string {
		switch rng.IntN(12) {
		case 0:
			return []string{"inf", "-inf", "nan", "-nan", "0", "-0", "", "x", "a\x00b", "0x1p-1074"}[rng.IntN(10)]
		case 1:
			return randomSubject(rng)
		case 2:
			return strings.Repeat("long", rng.IntN(40))
		}
		return luatest.RandomNumber(rng)
	}
	format := func() string {
		return randomText(rng, 2, "%", "a", "\x00") + "%" + randomText(rng, 2, "-", "+", " ", "#", "0", "") +
			[]string{"", "", "5", "12", "99", "123"}[rng.IntN(6)] + []string{"", "", ".", ".0", ".3", ".17", ".99", ".100"}[rng.IntN(8)] +
			string("diouxXeEfgGcsqdiouxXeEfgGcsqyl%"[rng.IntN(31)]) + randomText(rng, 2, "%s", "%d", "|", "%5.1f")
	}
	for range calls / batch {
		var args []string
		for range batch {
			args = append(args, format(), value(), value())
		}
		want, got := strings.Split(redis.RunAgain(t, body, args...), " "), strings.Split(vm.Run(t, body, args...), " ")
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, luatest.Explain(want[i]), luatest.Explain(got[i]), "%q", args[max(i-1, 0)*3:][:3])
		}
	}
}
