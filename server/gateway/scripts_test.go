package gateway

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScriptsAreKept as long as there is room, those that were loaded last.
func TestScriptsAreKept(t *testing.T) {
	var s keptScripts
	require.Nil(t, s.of([]byte("e0e1f9fabfc9d4800c877a703b823ac0578ff8db")))
	for range 2 {
		s.keep("return 1")
	}
	require.Equal(t, "return 1", s.of([]byte("E0E1F9FABFC9D4800C877A703B823AC0578FF8DB")).Text)
	require.Nil(t, s.of([]byte("e0e1")))
	require.Len(t, s.order, 1)
	for i := range keptScriptsMax {
		s.keep("return " + strconv.Itoa(i+2))
	}
	require.Nil(t, s.of([]byte("e0e1f9fabfc9d4800c877a703b823ac0578ff8db")), "the oldest has gone")
	require.Len(t, s.bySHA, keptScriptsMax)
	s.keep(string(make([]byte, keptScriptBytesMax)))
	require.Len(t, s.bySHA, 1)
	s.keep(string(make([]byte, keptScriptBytesMax+1)))
	require.Len(t, s.bySHA, 1)
	require.Equal(t, keptScriptBytesMax, s.bytes)
}
