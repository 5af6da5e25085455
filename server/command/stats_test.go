package command

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorCodesAreCountedAndBounded(t *testing.T) {
	var s Statistics
	s.CountError("WRONGTYPE Operation against a key")
	s.CountError("ERR one")
	s.CountError("ERR two")
	s.CountError("BARE")
	require.Equal(t, map[string]uint64{"WRONGTYPE": 1, "ERR": 2, "BARE": 1}, s.ErrorCodes)
	for i := range 2 * maxErrorCodes {
		s.CountError(fmt.Sprintf("CODE%d made up", i))
	}
	s.CountError("ERR three")
	require.Len(t, s.ErrorCodes, maxErrorCodes)
	require.EqualValues(t, 3, s.ErrorCodes["ERR"], "codes already known go on being counted")
	require.EqualValues(t, 5+2*maxErrorCodes, s.ErrorReplies)
	require.Zero(t, testing.AllocsPerRun(100, func() { s.CountError(ErrWrongType) }))
	s.Reset()
	require.Empty(t, s.ErrorCodes)
	require.Zero(t, s.ErrorReplies)
}
