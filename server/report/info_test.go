package report

import (
	"fmt"
	"math"
	"testing"

	"headgate/store"

	"github.com/stretchr/testify/require"
)

func TestHumanBytes(t *testing.T) {
	tests := []struct {
		n    uint64
		want string
	}{
		{0, "0B"}, {1, "1B"}, {1023, "1023B"}, {1024, "1.00K"}, {1536, "1.50K"}, {1<<20 - 1, "1024.00K"},
		{1 << 20, "1.00M"}, {1 << 30, "1.00G"}, {5 << 40, "5.00T"}, {1 << 50, "1.00P"}, {math.MaxUint64, "16384.00P"},
	}
	for _, test := range tests {
		require.Equal(t, test.want, humanBytes(test.n), "%d", test.n)
	}
}

func TestAverageTTL(t *testing.T) {
	const now, keys, lowest, highest = 1_000_000, 10_000, 50_000, 150_000
	ks := store.New(store.Options{})
	defer ks.Close()
	db := ks.DB(0)
	require.Zero(t, averageTTL(db, now), "no keys")
	db.SetInt(ks.Key([]byte("for ever")), 1, 0)
	require.Zero(t, averageTTL(db, now), "no key with a TTL")
	for i := range keys {
		ttl := int64(lowest + i*(highest-lowest)/keys)
		db.SetInt(ks.Key(fmt.Appendf(nil, "k%d", i)), 1, now+ttl)
	}
	require.InDelta(t, (lowest+highest)/2, averageTTL(db, now), (highest-lowest)/4)
	require.Zero(t, averageTTL(db, now+highest+1), "all of them past their time, and not yet removed")
}
