package number

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "1": 1, "+1": 1, "-1.5": -1.5, ".5": 0.5, "5.": 5,
		"1e3": 1000, "1E+3": 1000, "1e-3": 0.001, "007": 7, "3.0e0": 3,
		"0x10": 16, "0XfF": 255, "0x.8": 0.5, "0x1p-2": 0.25, "-0x1P4": -16, "0x1.8p1": 3,
		"inf": math.Inf(1), "+Inf": math.Inf(1), "-INFINITY": math.Inf(-1),
		"1e-320": 1e-320, "0e999": 0, "0x0p-9999": 0,
		"1.7976931348623157e308": math.MaxFloat64,
		strings.Repeat("0", 100) + "." + strings.Repeat("0", 100) + "1e101": 1,
		"0x" + strings.Repeat("0", 100) + "1":                               1,
	} {
		got, ok := ParseFloat([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
		require.Equal(t, math.Signbit(want), math.Signbit(got), text)
		score, ok := ParseScore([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, score, text)
	}
	for _, text := range []string{
		"", " ", " 1", "1 ", "\v1", "+", "-", ".", "e5", "1e", "1e+", "1.2.3", "--1", "1a", "1_000", "0x1_0",
		"0x", "0x.", "0x1p", "0xg", "0b1", "0o7", "1p3", "i", "in", "infi", "infinit", "infinityy", "nan", "NaN", "-nan", "nan(1)",
		"1e309", "-1e309", "1e400", "0x1p1024", "1e-400", "-1e-324", "0x1p-2000", "1\x00", "\x001", "1,5",
	} {
		_, ok := ParseFloat([]byte(text))
		require.False(t, ok, "%q", text)
	}
}

func TestParseScoreBound(t *testing.T) {
	for _, tc := range []struct {
		text      string
		score     float64
		exclusive bool
		ok        bool
	}{
		{"5", 5, false, true}, {"(5", 5, true, true}, {"(-inf", math.Inf(-1), true, true}, {"+inf", math.Inf(1), false, true},
		{"", 0, false, true}, {"(", 0, true, true}, {" 1", 1, false, true}, {"( 1", 1, true, true}, {"\t\n1", 1, false, true},
		{"1e400", math.Inf(1), false, true}, {"-1e400", math.Inf(-1), false, true}, {"1e-400", 0, false, true},
		{"(0x10", 16, true, true}, {"1\x00junk", 1, false, true}, {"\x00", 0, false, true},
		{"1 ", 0, false, false}, {"((1", 0, false, false}, {" (1", 0, false, false}, {" ", 0, false, false},
		{"nan", 0, false, false}, {"(nan", 0, false, false}, {"x", 0, false, false}, {"[1", 0, false, false},
	} {
		score, exclusive, ok := ParseScoreBound([]byte(tc.text))
		require.Equal(t, tc.ok, ok, "%q", tc.text)
		if ok {
			require.Equal(t, tc.score, score, "%q", tc.text)
			require.Equal(t, tc.exclusive, exclusive, "%q", tc.text)
		}
	}
}

func TestAppendDouble(t *testing.T) {
	for want, f := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "1": 1, "-42": -42, "3.5": 3.5, "0.10000000000000001": 0.1, "-2.5": -2.5,
		"100000": 1e5, "1e+17": 1e17, "10000000000000000": 1e16, "99999999999999984": 99999999999999984, "1e+20": 1e20,
		"1.0000000000000001e-05": 1e-5, "0.0001": 1e-4, "123456789012345.67": 123456789012345.67, "999999999999999": 999999999999999,
		"1.7976931348623157e+308": math.MaxFloat64, "4.9406564584124654e-324": math.SmallestNonzeroFloat64, "-2.2250738585072014e-308": -0x1p-1022,
		"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.Copysign(math.NaN(), 1), "-nan": math.Copysign(math.NaN(), -1),
	} {
		require.LessOrEqual(t, len(want), DoubleMax)
		require.Equal(t, "x"+want, string(AppendDouble([]byte("x"), f)))
	}
}

func TestLongDouble(t *testing.T) {
	for _, tc := range []struct{ x, y, want string }{
		{"10.50", "0.1", "10.6"}, {"10.6", "-5", "5.6"}, {"5.0e3", "2.0e2", "5200"}, {"3", "0", "3"}, {"-0", "-0", "0"},
		{"0.1", "0.2", "0.3"}, {"1", "-1", "0"}, {"-1e-30", "0", "0"}, {"0x10", "0x.8", "16.5"}, {"17179869184", "1.5", "17179869185.5"},
		{"1e19", "1", "10000000000000000001"}, {"1e20", "1", "100000000000000000000"}, {"9223372036854775807", "1", "9223372036854775808"},
		{"0.00000000000000001", "0", "0.00000000000000001"}, {"0.000000000000000004", "0", "0"},
		{"1e-4950", "0", "0"}, {"0e99999", "2", "2"}, {"0x1p70", "0", "1180591620717411303424"},
	} {
		x, ok := ParseLongDouble([]byte(tc.x))
		require.True(t, ok, tc.x)
		y, ok := ParseLongDouble([]byte(tc.y))
		require.True(t, ok, tc.y)
		sum, finite := x.Add(y)
		require.True(t, finite)
		require.Equal(t, tc.want, sum.String(), "%+v", tc)
		require.Equal(t, "="+tc.want, string(sum.Append([]byte("="))))
	}
	for _, text := range []string{
		"", " 1", "1 ", "nan", "1e4933", "-1e4933", "0x1p16384", "1e-4951", "0x1p-16446", "1e99999", "1e-99999", "1_0", "1e",
		"0x", "+", strings.Repeat("1", 4934), "1." + strings.Repeat("0", 5*1024-2), strings.Repeat("0", 600<<10),
	} {
		_, ok := ParseLongDouble([]byte(text))
		require.False(t, ok, "%.20q", text)
	}
	for _, text := range []string{"1." + strings.Repeat("0", 5*1024-3), strings.Repeat("1", 4932), "." + strings.Repeat("0", 4949) + "1", "1.18e4932", "0x1p-16445", "0x1p16383"} {
		_, ok := ParseLongDouble([]byte(text))
		require.True(t, ok, "%.20q", text)
	}
}

func TestLongDoubleInfinity(t *testing.T) {
	inf, ok := ParseLongDouble([]byte("inf"))
	require.True(t, ok)
	require.True(t, inf.IsInf())
	require.Equal(t, "inf", inf.String())
	negative, ok := ParseLongDouble([]byte("-Infinity"))
	require.True(t, ok)
	require.True(t, negative.IsInf())
	require.Equal(t, "-inf", negative.String())
	one := LongDoubleOf(1)
	require.False(t, one.IsInf())
	for _, pair := range [][2]LongDouble{{inf, one}, {one, inf}, {inf, negative}, {negative, negative}} {
		_, finite := pair[0].Add(pair[1])
		require.False(t, finite)
	}
	largest, ok := ParseLongDouble([]byte("1.18e4932"))
	require.True(t, ok)
	_, finite := largest.Add(largest)
	require.False(t, finite)
	sum, finite := LongDouble{}.Add(LongDoubleOf(math.MinInt64))
	require.True(t, finite, "the zero value is 0")
	require.Equal(t, "-9223372036854775808", sum.String())
	require.Equal(t, "0", LongDouble{}.String())
}

func TestLongDoubleTimesRoundedUp(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1000, "0.001": 1, "0.0011": 2, "1e-4000": 1, "-0.0005": 0, "-1": -1000, "-0.001": 0, "-0.002": -1, "-1.0005": -1000,
		"9223372036854775.807": math.MaxInt64, "9223372036854775.808": math.MinInt64, "1e300": math.MinInt64, "inf": math.MinInt64,
		"-1e300": math.MinInt64, "-inf": math.MinInt64,
	} {
		x, ok := ParseLongDouble([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, x.TimesRoundedUp(1000), text)
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "100b": 100, "10k": 10_000, "10kb": 10 << 10, "5m": 5_000_000, "5MB": 5 << 20, "1g": 1_000_000_000, "1Gb": 1 << 30,
		"": 0, "kb": 0, "18446744073709551615": math.MaxUint64, "007": 7,
	} {
		got, ok := ParseMemory(text)
		require.True(t, ok, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{"-1", "+1", " 1", "1 ", "1.5gb", "1tb", "1kk", "x", "18446744073709551616", "18446744073709551615k", "17179869184gb"} {
		_, ok := ParseMemory(text)
		require.False(t, ok, "%q", text)
	}
	for bytes, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1.00K", 1536: "1.50K", 1<<20 - 1: "1024.00K", 1 << 20: "1.00M", 1572864: "1.50M",
		1 << 30: "1.00G", 1 << 40: "1.00T", 1 << 50: "1.00P", 1<<60 - 1: "1024.00P", 1 << 60: "1152921504606846976B",
	} {
		require.Equal(t, want, FormatMemoryHuman(bytes))
	}
}

func TestDoublesAllocateNothing(t *testing.T) {
	texts := [][]byte{[]byte("1234.5678"), []byte("-1e300"), []byte("inf"), []byte("0x10"), []byte("1700000000123")}
	var room [DoubleMax]byte
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, text := range texts {
			f, ok := ParseFloat(text)
			if !ok {
				t.Fatal(string(text))
			}
			AppendDouble(room[:0], f)
			ParseScoreBound(text)
		}
	}))
}

func BenchmarkIncrByFloat(b *testing.B) {
	value, increment := []byte("1234.5678"), []byte("0.1")
	room := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		x, _ := ParseLongDouble(value)
		y, _ := ParseLongDouble(increment)
		sum, _ := x.Add(y)
		sum.Append(room)
	}
}

func TestLongDoubleOrder(t *testing.T) {
	parse := func(s string) LongDouble {
		value, ok := ParseLongDouble([]byte(s))
		require.True(t, ok, s)
		return value
	}
	largest := MaxLongDouble()
	require.Zero(t, largest.Cmp(parse("1.18973149535723176502e+4932")))
	_, finite := largest.Add(parse("1e4914"))
	require.False(t, finite)
	require.Equal(t, -1, largest.Neg().Cmp(parse("-1e4931")))
	require.Equal(t, 1, parse("inf").Cmp(largest))
	require.Zero(t, parse("0").Cmp(parse("-0")))
	require.Equal(t, "-0.5", parse("0.5").Neg().String())
}
