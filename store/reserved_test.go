package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// firstWord labels names such as rl:b:… and rl:o:… by the letter.
func firstWord(dst, name []byte) []byte {
	if rest := name[len("rl:"):]; len(rest) > 2 && (rest[0] == 'b' || rest[0] == 'o') && rest[1] == ':' {
		return append(dst, rest[0])
	}
	return dst
}

// recounted is what every database's tally must be, by looking at all keys.
func recounted(ks *Keyspace) (labels []map[string]int) {
	for i := range ks.Databases() {
		found := map[string]int{}
		ks.DB(i).Each(0, func(e *Entry) bool {
			if bytes.HasPrefix(e.Name(), []byte("rl:")) {
				if label := firstWord(nil, e.Name()); len(label) > 0 {
					found[string(label)]++
				}
			}
			return true
		})
		labels = append(labels, found)
	}
	return labels
}

func tallied(ks *Keyspace) (labels []map[string]int) {
	for i := range ks.Databases() {
		found := map[string]int{}
		ks.DB(i).ReservedLabels(func(label string, n int) { found[label] = n })
		labels = append(labels, found)
	}
	return labels
}

// TestReservedKeysAreCounted: whatever is done with keys, each database knows how many reserved ones it has of each label, and its version tells whether
// labels have come or gone.
func TestReservedKeysAreCounted(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	ks := New(Options{Databases: 3, Random: rnd})
	defer ks.Close()
	ks.Reserve([]string{"rl:b:", "rl:o:"}, firstWord)
	now := int64(1000)
	name := func() Key {
		return testKey(ks, "%s%d", []string{"rl:b:", "rl:o:", "rl:", "rl:x:", "user:", "r"}[rnd.IntN(6)], rnd.IntN(4))
	}
	labelsOf := map[uint64]string{0: "map[]"}
	check := func(what string) {
		require.Equal(t, recounted(ks), tallied(ks), what)
		for i := range ks.Databases() {
			labels := map[string]bool{}
			ks.DB(i).ReservedLabels(func(label string, n int) {
				labels[label] = true
				require.Equal(t, n, ks.DB(i).Reserved([]byte(label)))
			})
			version, text := ks.DB(i).ReservedVersion(), fmt.Sprint(labels)
			if known, found := labelsOf[version]; found {
				require.Equal(t, known, text, what)
			}
			labelsOf[version] = text
		}
	}
	for range 20_000 {
		db := ks.DB(rnd.IntN(3))
		var what string
		switch n := rnd.IntN(100); {
		case n < 45:
			what = "set"
			db.SetInt(name(), 1, []int64{0, now + 1 + rnd.Int64N(20)}[rnd.IntN(2)])
		case n < 65:
			what = "delete"
			if e, found := db.Find(name(), now); found {
				e.Delete()
			}
		case n < 75:
			what = "rename"
			db.Rename(name(), name(), now)
		case n < 82:
			what = "move"
			db.Move(name(), ks.DB(rnd.IntN(3)), now)
		case n < 90:
			what = "pass"
			now += rnd.Int64N(30)
			ks.ExpireSlice(now, 0, 1000)
		case n < 94:
			what = "swap"
			ks.Swap(rnd.IntN(3), rnd.IntN(3), now)
		case n < 96:
			what = "flush"
			db.Flush()
		case n < 97:
			what = "adopt"
			other := ks.Beside()
			for range rnd.IntN(10) {
				other.DB(rnd.IntN(3)).SetInt(name(), 1, 0)
			}
			ks.Adopt(other)
			other.Close()
		default:
			what = "evict"
			ks.Evict(Eviction{By: EvictBy(rnd.IntN(4)), Samples: 5}, now, func(*DB, []byte) {})
		}
		check(what)
	}
}
