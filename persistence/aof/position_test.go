package aof

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPosition: what is written is read again, and what is no position is none.
func TestPosition(t *testing.T) {
	p := Position{ID: strings.Repeat("a1", 20), Offset: 1 << 61, DB: 15}
	line := string(p.Annotation())
	require.Less(t, len(line), maxAnnotation)
	note, found := strings.CutPrefix(strings.TrimSuffix(line, "\r\n"), "#")
	require.True(t, found)
	got, ok := ReadPosition([]byte(note))
	require.True(t, ok)
	require.Equal(t, p, got)
	for _, text := range []string{"", "GAP", "REPL", "REPL:", "REPL:x", "REPL:x:1", "REPL:x:y:0", "REPL:x:1:y", "REPL:x:1:2:3", "NOW:1"} {
		_, ok := ReadPosition([]byte(text))
		require.False(t, ok, text)
	}
}
