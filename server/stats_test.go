package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorCodesAreCountedAndBounded(t *testing.T) {
	var s statistics
	s.countError("WRONGTYPE Operation against a key")
	s.countError("ERR one")
	s.countError("ERR two")
	s.countError("BARE")
	require.Equal(t, map[string]uint64{"WRONGTYPE": 1, "ERR": 2, "BARE": 1}, s.errorCodes)
	for i := range 2 * maxErrorCodes {
		s.countError(fmt.Sprintf("CODE%d made up", i))
	}
	s.countError("ERR three")
	require.Len(t, s.errorCodes, maxErrorCodes)
	require.EqualValues(t, 3, s.errorCodes["ERR"], "codes already known go on being counted")
	require.EqualValues(t, 5+2*maxErrorCodes, s.errorReplies)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.countError(errWrongType) }))
	s.reset()
	require.Empty(t, s.errorCodes)
	require.Zero(t, s.errorReplies)
}
