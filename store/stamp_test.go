package store

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStamp(t *testing.T) {
	tests := map[string]struct {
		want stamp
		ok   bool
	}{
		"0":                      {stamp{0, 0}, true},
		"1700000000000":          {stamp{1700000000000, 0}, true},
		"1700000000000000":       {stamp{1700000000000000, 0}, true},
		"9007199254740991":       {stamp{stampMaxScore, 0}, true},
		"9007199254740992":       {},
		"999999999999999999":     {},
		"1000000000000000000":    {stamp{stampMinNanos, 0}, true},
		"1763900060123456789":    {stamp{1763900060123456789, 0}, true},
		"1763900060123456789-0":  {},
		"4611686018427387903":    {stamp{stampMaxNanos, 0}, true},
		"4611686018427387904":    {},
		"9223372036854775807":    {},
		"0-0":                    {stamp{0, 1}, true},
		"1700000000000-12":       {stamp{1700000000000, 13}, true},
		"4398046511103-9999999":  {stamp{stampMaxSuffixed, stampMaxSuffix + 1}, true},
		"4398046511103-10000000": {},
		"4398046511104-0":        {},
		"4398046511104":          {stamp{4398046511104, 0}, true},
		"":                       {},
		"-":                      {},
		"-5":                     {},
		"-0":                     {},
		"00":                     {},
		"01":                     {},
		"+1":                     {},
		"1.0":                    {},
		"1e3":                    {},
		" 1":                     {},
		"5-":                     {},
		"5-01":                   {},
		"5--1":                   {},
		"5-1-1":                  {},
		"5-x":                    {},
		"x5":                     {},
		"99999999999999999999":   {},
	}
	for member, test := range tests {
		got, ok := parseStamp([]byte(member))
		require.Equal(t, test.ok, ok, member)
		if ok {
			require.Equal(t, test.want, got, member)
			require.Equal(t, member, string(got.appendText(nil)))
			require.LessOrEqual(t, len(member), maxStampText)
		}
	}
}

func TestIsStamp(t *testing.T) {
	require.True(t, isStamp(0, []byte("0")))
	require.False(t, isStamp(math.Copysign(0, -1), []byte("0")))
	require.False(t, isStamp(5, []byte("6")))
	require.True(t, isStamp(5, []byte("5-7")))
	require.True(t, isStamp(1763900060123456800, []byte("1763900060123456789")))
	require.False(t, isStamp(1763900060123457024, []byte("1763900060123456789")))
	require.False(t, isStamp(math.Inf(1), []byte("5")))
	require.False(t, isStamp(1, []byte("an id")))
}

// randomStamp draws scores and suffixes of few values and of all lengths.
func randomStamp(rnd *rand.Rand) stamp {
	if rnd.IntN(4) == 0 {
		return stamp{score: stampMinNanos + rnd.Int64N(min(int64(1)<<(1+rnd.IntN(62)), stampMaxNanos-stampMinNanos+1))}
	}
	s := stamp{score: rnd.Int64N(1 << (1 + rnd.IntN(53)))}
	if s.score <= stampMaxSuffixed && rnd.IntN(3) > 0 {
		s.suffix = uint32(rnd.IntN(int(powersOfTen[rnd.IntN(8)]))) + 1
	}
	return s
}

// TestStampOrder compares stamps as their sorted set does: by score, then by member.
func TestStampOrder(t *testing.T) {
	rnd := newRand(t)
	for range 200_000 {
		a, b := randomStamp(rnd), randomStamp(rnd)
		switch rnd.IntN(4) {
		case 0, 1:
			b.score = a.score
		case 2:
			b = stamp{score: a.score} // of nanoseconds, often of the same float64
			if near := a.score + rnd.Int64N(600) - 300; near >= stampMinNanos && near <= stampMaxNanos {
				b.score = near
			}
		}
		want := cmp.Compare(float64(a.score), float64(b.score))
		if want == 0 {
			want = strings.Compare(string(a.appendText(nil)), string(b.appendText(nil)))
		}
		require.Equal(t, want, a.compare(b), "%v %v", a, b)
		if want < 0 {
			require.LessOrEqual(t, a.cursor(), b.cursor(), "%v %v", a, b)
		}
	}
}

// TestStampCursor: cursors survive clients that read them as float64, and few stamps share one.
func TestStampCursor(t *testing.T) {
	rnd := newRand(t)
	for range 100_000 {
		s := randomStamp(rnd)
		c := s.cursor()
		require.Equal(t, c, uint64(float64(c)), "%v", s)
		require.Less(t, c, uint64(cursorsStamps))
	}
	shared := map[uint64]int{}
	most := 0
	for n := range 1_000_000 {
		c := stamp{7, uint32(n) + 1}.cursor()
		shared[c]++
		most = max(most, shared[c])
	}
	require.Equal(t, 1111, most)
	clear(shared)
	most = 0
	for ns := range int64(10_000) {
		c := stamp{score: 1763900060123456789 + ns}.cursor()
		shared[c]++
		most = max(most, shared[c])
	}
	require.Equal(t, 1024, most)
	require.NotEqual(t, stamp{7, 0}.cursor(), stamp{7, 1}.cursor())
}

func TestNextAsText(t *testing.T) {
	for _, n := range []int{1, 2, 9, 10, 11, 13, 99, 100, 101, 110, 999, 1000, 1234, 10_001} {
		want := make([]string, n)
		for i := range want {
			want[i] = fmt.Sprint(i)
		}
		slices.Sort(want)
		for i, text := 0, 0; i < n; i++ {
			require.Equal(t, want[i], fmt.Sprint(text), "%d of %d", i, n)
			text = nextAsText(text, n)
		}
	}
}
