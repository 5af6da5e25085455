package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSamplesComeFromAllKeys: among the keys that are compared each one comes about as often as any other, wherever it lies.
func TestSamplesComeFromAllKeys(t *testing.T) {
	const keys, samples, each = 5000, 5, 200
	rnd := newRand(t)
	ks := New(Options{Random: rnd})
	defer ks.Close()
	db := ks.DB(0)
	for i := range keys {
		db.SetInt(testKey(ks, "key:%d", i), int64(i), 0)
	}
	times := map[ref]int{}
	for range keys * each / samples {
		left := samples
		db.eachFrom(db.randomPlace(), false, func(r ref, _ *record) bool {
			times[r]++
			left--
			return left > 0
		})
	}
	require.Equal(t, keys, len(times), "keys that have come")
	least, most := each, each
	for _, n := range times {
		least, most = min(least, n), max(most, n)
	}
	t.Logf("%d times in the mean, %d at least, %d at most", each, least, most)
	require.Greater(t, least, each/20)
	require.Less(t, most, each*6)
}
