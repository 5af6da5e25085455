package types

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRankRangeWithin(t *testing.T) {
	tests := []struct {
		name        string
		start, stop int64
		size        int
		from, to    int
		ok          bool
	}{
		{"all", 0, -1, 5, 0, 4, true},
		{"from the end", -3, -2, 5, 2, 3, true},
		{"start before the first", -100, 1, 5, 0, 1, true},
		{"stop past the last", 3, 100, 5, 3, 4, true},
		{"one", 4, 4, 5, 4, 4, true},
		{"start past the last", 5, 10, 5, 0, 0, false},
		{"stop before the first", 0, -6, 5, 0, 0, false},
		{"stop before start", 3, 2, 5, 0, 0, false},
		{"of nothing", 0, -1, 0, 0, 0, false},
		{"edges of int64", math.MinInt64, math.MaxInt64, 5, 0, 4, true},
		{"edges of int64 crossed", math.MaxInt64, math.MinInt64, 5, 0, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			from, to, ok := rankRange{test.start, test.stop}.within(test.size)
			require.Equal(t, test.ok, ok)
			if ok {
				require.Equal(t, test.from, from)
				require.Equal(t, test.to, to)
			}
		})
	}
}

func TestParseLexBound(t *testing.T) {
	tests := []struct {
		text string
		want lexBound
		ok   bool
	}{
		{"-", lexBound{infinite: '-'}, true},
		{"+", lexBound{infinite: '+'}, true},
		{"[a", lexBound{member: []byte("a")}, true},
		{"(a", lexBound{member: []byte("a"), exclusive: true}, true},
		{"[", lexBound{member: []byte{}}, true},
		{"(", lexBound{member: []byte{}, exclusive: true}, true},
		{"[\x00", lexBound{member: []byte{0}}, true},
		{"+\x00x", lexBound{infinite: '+'}, true},
		{"", lexBound{}, false},
		{"a", lexBound{}, false},
		{"-inf", lexBound{}, false},
		{"+x", lexBound{}, false},
		{"\x00", lexBound{}, false},
	}
	for _, test := range tests {
		got, ok := parseLexBound([]byte(test.text))
		require.Equal(t, test.ok, ok, "%q", test.text)
		if ok {
			require.Equal(t, test.want, got, "%q", test.text)
		}
	}
}
