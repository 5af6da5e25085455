package report

import (
	"fmt"
	"testing"

	"headgate/store"

	"github.com/stretchr/testify/require"
)

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
