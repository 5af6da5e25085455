package ascii

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEqualFold(t *testing.T) {
	for _, text := range []string{"COST", "cost", "cOsT"} {
		require.True(t, EqualFold([]byte(text), "COST"), text)
	}
	require.True(t, EqualFold(nil, ""))
	for _, text := range []string{"", "COS", "COSTS", "cos\x00", "COS\xf4", "cos4", "ＣＯＳＴ"} {
		require.False(t, EqualFold([]byte(text), "COST"), "%q", text)
	}
	require.False(t, EqualFold([]byte("\u212aEY"), "KEY"), "the Kelvin sign")
}

// TestOnlyLettersFold goes through all bytes: the neighbours of the letters keep their own.
func TestOnlyLettersFold(t *testing.T) {
	for c := range 256 {
		b := []byte{byte(c)}
		want := string(b)
		if c >= 'a' && c <= 'z' {
			want = string(rune(c - 'a' + 'A'))
		}
		require.Equal(t, want, Upper(string(b)), "%q", b)
		for other := range 256 {
			word := string([]byte{byte(other)})
			require.Equal(t, word == want, EqualFold(b, word), "%q %q", b, word)
		}
	}
}

func TestEqualFoldAllocatesNothing(t *testing.T) {
	arg := []byte("withscores")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if !EqualFold(arg, "WITHSCORES") {
			t.Fatal(string(arg))
		}
	}))
}
