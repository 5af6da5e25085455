package server

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/store"
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

func TestKeyRange(t *testing.T) {
	tests := []struct {
		name              string
		keys              []KeySpec
		first, last, step int
	}{
		{"none", nil, 0, 0, 0},
		{"one", keys("RO", 1, 1, 1), 1, 1, 1},
		{"to the end", keys("RO", 1, -1, 2), 1, -1, 2},
		{"two in a row", append(keys("OW", 1, 1, 1), keys("RO", 2, 2, 1)...), 1, 2, 1},
		{"one before a counted list", append(keys("OW", 1, 1, 1), KeySpec{Access: "RO", Begin: 2, Step: 1, KeyNum: true}), 1, 1, 1},
		{"a counted list only", []KeySpec{{Access: "RO", Begin: 1, Step: 1, KeyNum: true}}, 0, 0, 0},
	}
	for _, test := range tests {
		first, last, step := (&Command{Keys: test.keys}).keyRange()
		require.Equal(t, []int{test.first, test.last, test.step}, []int{first, last, step}, test.name)
	}
}
