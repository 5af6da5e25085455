package luanum_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/script/lualib/internal/luatest"
	"headgate/server/script/lualib/luanum"
)

// numbers are texts that are numbers, almost numbers, and none.
var numbers = []string{
	"", " ", "0", "-0", "+0", "1", "-1", "+1", "--1", "+-1", "- 1", "007", "10", "999999999999999", "1000000000000000", "-999999999999999",
	"9007199254740993", "18446744073709551616", "1e15", "1E15", "1e+15", "1e-15", "1e", "1e+", "1e 5", "e5", ".", ".5", "5.", "-.5", "+.5e1", "..5", "1.2.3",
	"1e400", "-1e400", "1e-400", "4.9e-324", "2.4e-324", "1.7976931348623157e308", "1.7976931348623159e308", "0.1", "123.456", "1_000", "0x_1", "1,5",
	" 1", "1 ", "\t\n\v\f\r 1 \t\n\v\f\r", "1\x00", "1\x00x", "\x001", " \x00", "1 \x00 2", "1x", "x1", "1 2", "\xa01", "0x", "0X", "0x1", "0X1f", "-0x10", "+0x10",
	"0xg", "0x.", "0x.8", "0x8.", "0x1.8p1", "0x1p", "0x1p+", "0x1p-1", "0x1P10", "0x1p5x", "0x 1", "0x-1", "0x1e5", "0x1e+5", "0xffffffffffffffff", "0x1fffffffffffff", "0x20000000000001",
	"0xfffffffffffffffffffff", "0x1p1024", "0x1p-1075", "0x0.0000001p-1000", "0b1", "0o7", "inf", "INF", "-inf", "+Inf", "infinity", "-InFiNiTy", "infinit", "inf ", "infx", "in", "i",
	"nan", "NaN", "-nan", "+nan", "nan()", "nan(123)", "nan(0x1f)", "nan(a_Z)", "nan( )", "nan(1", "nan(-)", "nanx", "na", "1e1000000000000", "1e-1000000000000", "0e1000000000000",
	strings.Repeat("9", 400), "0." + strings.Repeat("0", 400) + "1", strings.Repeat("0", 400) + "1", "1" + strings.Repeat("0", 308),
	"0." + strings.Repeat("0", 20000) + "1e20001", "1" + strings.Repeat("0", 20000) + "e-20000", "0x0." + strings.Repeat("0", 20000) + "1p80004", "0x1" + strings.Repeat("0", 20000) + "p-80000",
	"0x1" + strings.Repeat("0", 13) + "8", "0x1" + strings.Repeat("0", 12) + "08" + strings.Repeat("0", 300) + "1", "0x.0000000000001p-1022", "0x.00000000000008p-1022", "0x.000000000000080000001p-1022", "true", "nil", "1d", "1f", "1l", "0x1l", "١",
}

// printed are numbers to print.
var printed = []float64{
	0, math.Copysign(0, -1), 1, -1, 9, 10, 99, 100, 12345, 99999999999999, 1e14, -1e14, 1e15, 1e16, 123456789012345, 1234567890123456, 0.1, 1.0 / 3, 2.0 / 3, 1e-4, 1e-5,
	0.00012345678901234567, 12345678901234.5, 99999999999999.5, 9999999999999.95, 0.99999999999999999, 1e100, -1e-100, 5e-324, math.MaxFloat64, 1.5, -2.25, 1 << 53, 1<<53 + 2, 1 << 62, 1 << 63,
	1e21, 1e22, math.Pi, math.E, 1e-7, 123e-7, 4503599627370495.5, 100000.5, 1e14 - 1, 1e14 - 0.5, 0.5, 255, 1024, 65535,
}

// dump is luatest.Dump for a float, with the sign of a NaN.
const dump = `local function dump(x) return x and string.format("%.17g", x) or "none" end `

func dumpFloat(f float64, ok bool) string {
	switch {
	case !ok:
		return "none"
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+"))
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

func randomNumeral(rng *rand.Rand) string {
	if rng.IntN(2) == 0 {
		text := luatest.RandomNumber(rng)
		return []string{"", " ", "+", "-"}[rng.IntN(4)] + text + []string{"", "", " ", "e1", "."}[rng.IntN(5)]
	}
	const alphabet = "0123456789abcdefABCDEFxXpP+-. _\x00infaNyt()"
	b := make([]byte, rng.IntN(12))
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	if rng.IntN(3) == 0 {
		return "0x" + string(b)
	}
	return string(b)
}

// TestParseAsRedis reads numbers as redis-server's tonumber does.
func TestParseAsRedis(t *testing.T) {
	redis, rng := luatest.Start(t), luatest.NewRand(t)
	texts := append(middles(rng), numbers...)
	for range 20_000 {
		texts = append(texts, randomNumeral(rng))
	}
	const batch = 2000
	for len(texts) > 0 {
		n := min(batch, len(texts))
		got := []string{"true"}
		for _, text := range texts[:n] {
			got = append(got, fmt.Sprintf("s%x", dumpFloat(luanum.ParseNumber(text))))
		}
		want := strings.Split(redis.RunAgain(t, dump+`local out = {...} for i = 1, #out do out[i] = dump(tonumber(out[i])) end return unpack(out)`, texts[:n]...), " ")
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, luatest.Explain(want[i]), luatest.Explain(got[i]), "%q", texts[max(i-1, 0)])
		}
		texts = texts[n:]
	}
}

// TestParseBaseAsRedis reads whole numbers as redis-server's tonumber with a
// base does.
func TestParseBaseAsRedis(t *testing.T) {
	redis, rng := luatest.Start(t), luatest.NewRand(t)
	texts := append([]string{"zz", "ZZ", "z z", "-z", "+7", "- 1", " 11 ", "0x1F", "0xg", "-0x1", "18446744073709551615", "18446744073709551616",
		"-18446744073709551615", "ffffffffffffffff", "10000000000000000", "1\x00", "1.5", "1e1", "_", "0X", "\v1\f"}, numbers...)
	for range 500 {
		texts = append(texts, randomNumeral(rng))
	}
	for _, base := range []int{2, 3, 8, 9, 11, 16, 17, 35, 36} {
		got := []string{"true"}
		for _, text := range texts {
			got = append(got, fmt.Sprintf("s%x", dumpFloat(luanum.ParseBase(text, base))))
		}
		want := strings.Split(redis.RunAgain(t, fmt.Sprintf(`%slocal out = {...} for i = 1, #out do out[i] = dump(tonumber(out[i], %d)) end return unpack(out)`, dump, base), texts...), " ")
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, luatest.Explain(want[i]), luatest.Explain(got[i]), "%q in base %d", texts[max(i-1, 0)], base)
		}
	}
}

// TestFormatAsRedis prints numbers as redis-server's tostring does.
func TestFormatAsRedis(t *testing.T) {
	redis, rng := luatest.Start(t), luatest.NewRand(t)
	values := append([]float64{math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(math.NaN(), -1)}, printed...)
	for range 20_000 {
		f, err := strconv.ParseFloat(luatest.RandomNumber(rng), 64)
		require.NoError(t, err)
		values = append(values, f, -f, math.Round(f), math.Float64frombits(rng.Uint64()))
	}
	const batch = 2000
	for len(values) > 0 {
		n := min(batch, len(values))
		var args []string
		got := []string{"true"}
		for _, f := range values[:n] {
			args = append(args, dumpFloat(f, true))
			got = append(got, fmt.Sprintf("s%x", luanum.FormatNumber(f)))
			require.Equal(t, luanum.FormatNumber(f), string(luanum.AppendNumber(nil, f)))
			require.LessOrEqual(t, len(luanum.FormatNumber(f)), luanum.TextMax)
		}
		want := strings.Split(redis.RunAgain(t, `local out = {...} for i = 1, #out do out[i] = tostring(tonumber(out[i])) end return unpack(out)`, args...), " ")
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.Equal(t, luatest.Explain(want[i]), luatest.Explain(got[i]), "%v", values[max(i-1, 0)])
		}
		values = values[n:]
	}
}

func TestTruncateInt(t *testing.T) {
	for f, want := range map[float64]int64{
		1.9: 1, -1.9: -1, 1e18: 1e18, 1e19: math.MinInt64, -1e19: math.MinInt64, math.Inf(1): math.MinInt64,
	} {
		require.Equal(t, want, luanum.TruncateInt(f))
	}
	require.Equal(t, int64(math.MinInt64), luanum.TruncateInt(math.NaN()))
}

func TestNoAllocations(t *testing.T) {
	buffer := make([]byte, 0, 64)
	texts := []string{"12345", "-7", "1.5", "0x1f", "  12 ", "1e10"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, f := range printed {
			buffer = luanum.AppendNumber(buffer[:0], f)
		}
		for _, text := range texts {
			_, ok := luanum.ParseNumber(text)
			require.True(t, ok)
		}
	}))
}

func FuzzParse(f *testing.F) {
	for _, text := range numbers {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, ok := luanum.ParseNumber(text)
		if !ok || math.IsNaN(value) {
			return
		}
		again, ok := luanum.ParseNumber(strconv.FormatFloat(value, 'g', -1, 64))
		require.True(t, ok)
		require.Equal(t, math.Float64bits(value), math.Float64bits(again))
	})
}

func BenchmarkAppendNumber(b *testing.B) {
	buffer := make([]byte, 0, 64)
	for _, f := range []float64{1, 1234567, 1700000000123, 1.5, 1.0 / 3} {
		b.Run(luanum.FormatNumber(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buffer = luanum.AppendNumber(buffer[:0], f)
			}
		})
	}
}

func BenchmarkParseNumber(b *testing.B) {
	for _, text := range []string{"1", "1234567", "1700000000123", "1.5", "0.33333333333333", "0xff"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = luanum.ParseNumber(text)
			}
		})
	}
}

// middles returns texts of numbers that are halfway between two doubles, or hardly above or below that.
func middles(rng *rand.Rand) []string {
	doubles := []uint64{
		0, 1, 2, 3, 1<<52 - 2, 1<<52 - 1, 1 << 52, 1<<52 + 1, 0x10<<52 - 1, 0x3ff << 52, 0x433<<52 - 1, 0x433 << 52, 0x434 << 52, 0x7fe << 52, 0x7ff<<52 - 2, 0x7ff<<52 - 1,
	}
	for range 10 {
		doubles = append(doubles, rng.Uint64()>>12, rng.Uint64()%(0x7ff<<52))
	}
	var texts []string
	for _, bits := range doubles {
		middle := middleAbove(bits)
		below := middle[:len(middle)-1] + "4"
		for _, digits := range []string{middle, below, below + strings.Repeat("9", 1000), middle + strings.Repeat("0", 1000), middle + strings.Repeat("0", 1000) + "1"} {
			point := strings.IndexByte(digits, '.')
			whole := digits[:point] + digits[point+1:]
			texts = append(texts, digits, "-"+digits, whole+"e-"+strconv.Itoa(len(whole)-point), "0."+whole+"e+"+strconv.Itoa(point))
		}
	}
	return texts
}

// middleAbove returns the number in the middle between a double and the next one, in full.
func middleAbove(bits uint64) string {
	const exact = 2200 // bits
	f, next := math.Float64frombits(bits), math.Float64frombits(bits+1)
	sum := new(big.Float).SetPrec(exact).SetFloat64(f)
	if math.IsInf(next, 1) {
		sum.Add(sum, new(big.Float).SetMantExp(big.NewFloat(1), 1024))
	} else {
		sum.Add(sum, big.NewFloat(next))
	}
	text := strings.TrimRight(sum.Quo(sum, big.NewFloat(2)).Text('f', 1076), "0")
	if strings.HasSuffix(text, ".") {
		return text + "0"
	}
	return text
}

// TestParseIsExact: the nearest double is found for digits without end, near 0, near infinity and around the middle of two doubles.
func TestParseIsExact(t *testing.T) {
	rng := luatest.NewRand(t)
	for _, text := range middles(rng) {
		exact, ok := new(big.Rat).SetString(text) // strconv takes the digits behind the 800th for a fraction
		require.True(t, ok)
		want, _ := exact.Float64()
		got, ok := luanum.ParseNumber(text)
		require.True(t, ok)
		require.Equal(t, want, got, "%.100s", text)
	}
	texts := []string{"1." + strings.Repeat("7", 245) + "e-310", strings.Repeat("9", 400) + "e-200", strings.Repeat("9", 400) + "e-91", "1e309", "9e307", "9e308", "1e-323", "2e-324", "1e-330", "1e-331"}
	for range 20_000 {
		text := strconv.Itoa(rng.IntN(9)+1) + "." + strconv.FormatUint(rng.Uint64(), 10)
		for range rng.IntN(6) * rng.IntN(6) {
			text += strconv.FormatUint(rng.Uint64(), 10)
		}
		exponent := rng.IntN(700) - 360
		if rng.IntN(2) == 0 {
			exponent = []int{-290, -310, -324, 290, 308}[rng.IntN(5)] + rng.IntN(3) - 1
		}
		texts = append(texts, text+"e"+strconv.Itoa(exponent))
	}
	for _, text := range texts {
		want, _ := strconv.ParseFloat(text, 64)
		got, ok := luanum.ParseNumber(text)
		require.True(t, ok)
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%.100s", text)
	}
}

// TestStepsOfConversions: what takes longer counts more, from the first byte on.
func TestStepsOfConversions(t *testing.T) {
	for _, c := range []struct {
		text  string
		least int
	}{
		{"12345", 0}, {"1.5", 1}, {"1e-310", 16}, {"0x" + strings.Repeat("1", 254), 32}, {"1." + strings.Repeat("7", 245) + "e-310", 70},
		{strings.Repeat("1", 1e6), 1e6 / 8}, {strings.Repeat(" ", 1e6), 1e6 / 8}, {middleAbove(1), 200},
	} {
		_, steps, _ := luanum.Convert(c.text)
		require.GreaterOrEqual(t, steps, c.least, "%.100s", c.text)
		require.LessOrEqual(t, steps, 2*c.least, "%.100s", c.text)
	}
}

// TestConversionsAllocateNothing: neither long numbers nor those out of range do.
func TestConversionsAllocateNothing(t *testing.T) {
	texts := []string{strings.Repeat("1", 1e6), "1e400", "1e-400", "0x" + strings.Repeat("f", 1e5), "1." + strings.Repeat("7", 245) + "e-310", middleAbove(1), "1.7976931348623159e308"}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, text := range texts {
			_, ok := luanum.ParseNumber(text)
			require.True(t, ok)
		}
	}))
}

func BenchmarkParseLong(b *testing.B) {
	for name, text := range map[string]string{
		"denormal": "1." + strings.Repeat("7", 245) + "e-310", "short denormal": "1e-310", "largest": "1.7976931348623157e308",
		"halfway": "9007199254740993." + strings.Repeat("0", 300) + "1", "long halfway": middleAbove(0) + strings.Repeat("0", 1000) + "1", "hex": "0x" + strings.Repeat("1", 254),
		"20 digits": "1.2345678901234567891", "float": "123456.789e30",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = luanum.ParseNumber(text)
			}
		})
	}
}

// TestNaNsAreThoseOfC: struct.pack and cmsgpack.pack show their bits, and bit.tobit the lower ones. These are redis-server 7.0.15's.
func TestNaNsAreThoseOfC(t *testing.T) {
	for word, want := range map[string]uint64{
		"nan": 0x7ff8 << 48, "-nan": 0xfff8 << 48, "nan()": 0x7ff8 << 48, "nan(7)": 0x7ff8<<48 + 7, "nan(0x7)": 0x7ff8<<48 + 7, "-nan(010)": 0xfff8<<48 + 8,
		"nan(8_)": 0x7ff8 << 48, "nan(99999999999999999999)": 1<<63 - 1, "nan(0xfffffffffffff)": 1<<63 - 1, "NAN(0X1F)": 0x7ff8<<48 + 31,
	} {
		f, ok := luanum.ParseNumber(word)
		require.True(t, ok, word)
		require.Equal(t, want, math.Float64bits(f), word)
	}
}
