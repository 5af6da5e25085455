package number

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseInt(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"1", 1, true}, {"-1", -1, true}, {"10", 10, true}, {"1234567890", 1234567890, true},
		{"9223372036854775807", 9223372036854775807, true}, {"-9223372036854775808", -9223372036854775808, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false}, {"99999999999999999999", 0, false},
		{"18446744073709551616", 0, false}, {"18446744073709551617", 0, false}, {"-18446744073709551615", 0, false},
		{"", 0, false}, {"-", 0, false}, {"+1", 0, false}, {"-0", 0, false}, {"00", 0, false}, {"01", 0, false},
		{"-01", 0, false}, {" 1", 0, false}, {"1 ", 0, false}, {"1a", 0, false}, {"a", 0, false}, {"1.0", 0, false},
		{"--1", 0, false}, {"1\x00", 0, false}, {"/", 0, false}, {":", 0, false}, {"1:", 0, false},
	} {
		got, ok := ParseInt([]byte(tc.text))
		require.Equal(t, tc.ok, ok, "%q", tc.text)
		require.Equal(t, tc.want, got, "%q", tc.text)
	}
}

// FuzzParseInt holds ParseInt to what makes it canonical: it accepts what formatting gives back, and nothing else.
func FuzzParseInt(f *testing.F) {
	for _, s := range []string{"0", "-1", "9223372036854775807", "-9223372036854775808", "007", "+5", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := strconv.ParseInt(s, 10, 64)
		canonical := err == nil && strconv.FormatInt(n, 10) == s
		got, ok := ParseInt([]byte(s))
		require.Equal(t, canonical, ok)
		if ok {
			require.Equal(t, n, got)
		}
	})
}

func TestAppendInt(t *testing.T) {
	check := func(n int64) {
		t.Helper()
		require.Equal(t, strconv.FormatInt(n, 10), string(AppendInt(nil, n)))
	}
	for _, n := range []int64{0, 9, 10, 99, 100, 101, -1, -100, 1e7, 1e8 - 1, 1e8, 1e8 + 1, 1e16 - 1, 1e16, 1e16 + 1, 1e17 + 99_999_999, 9e18, math.MaxInt64, math.MinInt64, -1e16} {
		check(n)
	}
	rnd := newRand(t)
	for range 100_000 {
		check(int64(rnd.Uint64()) >> rnd.IntN(64))
	}
	for digits := range uint64(10_000) { // all that a part can be
		check(int64(1e18 + digits*1e12 + digits*1e8 + digits*1e4 + digits))
	}
}
