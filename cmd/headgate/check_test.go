package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPrintable: a name out of a damaged file moves no cursor, and what people write stays as it is.
func TestPrintable(t *testing.T) {
	require.Equal(t, `a\x1b[31m\nb`, printable("a\x1b[31m\nb"))
	for _, text := range []string{`/var/lib/headgate: "5 files"`, `C:\data\dump.rdb`, "Größe", `\"`, `"\\`} {
		require.Equal(t, text, printable(text))
	}
}
