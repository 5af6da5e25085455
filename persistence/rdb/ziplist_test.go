package rdb

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestZiplistThatCountsOtherwise: a ziplist says how many elements it has, or that it has too many to say so.
func TestZiplistThatCountsOtherwise(t *testing.T) {
	for said, fits := range map[uint16]bool{2: true, math.MaxUint16: true, 0: false, 1: false, 3: false} {
		b := ziplistOf("a", "b")
		binary.LittleEndian.PutUint16(b[8:], said)
		r, err := openZiplist(b)
		require.NoError(t, err)
		for r.More() {
			_, err := r.Next()
			require.NoError(t, err)
		}
		if err := r.Close(); fits {
			require.NoError(t, err, "%d", said)
		} else {
			require.ErrorIs(t, err, errZiplist, "%d", said)
		}
	}
}
