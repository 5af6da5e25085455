package spelling

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"prot", "port", 1}, {"abcd", "badc", 2}, {"ca", "abc", 3}, {"kitten", "sitting", 3}, {"hz", "hz", 0}} {
		require.Equal(t, tt.want, distance(tt.a, tt.b), "%s %s", tt.a, tt.b)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"port", "maxmemory-policy", "hz", "block"}
	for word, want := range map[string]string{
		"prot": "port", "maxmemory-polic": "maxmemory-policy", "max-mem-policy": "maxmemory-policy", "h": "", "": "", "blok": "block", "xy": "", "nope": "", "pot": "port", "parts": "", "nothing like it": "",
		strings.Repeat("x", maxLength+1): "",
	} {
		require.Equal(t, want, Nearest(word, known...), word)
	}
}
