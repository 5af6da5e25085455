package observe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMonitorQuotes: arguments are shown in one line of ASCII, as redis-server shows them.
func TestMonitorQuotes(t *testing.T) {
	for in, want := range map[string]string{
		"":              `""`,
		"plain text ~!": `"plain text ~!"`,
		`a"b\c`:         `"a\"b\\c"`,
		"\n\r\t\a\b":    `"\n\r\t\a\b"`,
		"\x00\x0f\x10":  `"\x00\x0f\x10"`,
		"\x1f\x7f\xff":  `"\x1f\x7f\xff"`,
		"é":             `"\xc3\xa9"`,
	} {
		require.Equal(t, "before "+want, string(appendQuoted([]byte("before "), []byte(in))))
	}
}
