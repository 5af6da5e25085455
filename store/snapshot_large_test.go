package store

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var largeRounds = flag.Int("snapshot.rounds", 6, "snapshots of large values that change meanwhile")

// largeKinds are the ways in which a value may be large, by the name of its keys.
var largeKinds = []string{"string", "hash", "zset", "log", "list", "set", "ints", "stream"}

// TestSnapshotOfLargeValues changes a few large values of each kind while a snapshot emits them in small steps, so that each is
// changed many times when it has been seen by half, and compares with a copy of the moment. Some are deleted, renamed, copied or
// replaced meanwhile.
func TestSnapshotOfLargeValues(t *testing.T) {
	const copies, elements = 2, 6000
	rnd := newRand(t)
	changed := map[string]int{} // while they were being seen
	for round := range *largeRounds {
		ks := New(Options{Databases: 2})
		m := &snapshotModel{ks: ks, rnd: rnd, now: 1_000_000, filling: elements}
		db := ks.DB(0)
		// key returns one of a kind's keys. The model makes logs and sets of whole numbers by the key's hash.
		key := func(kind string, i int) Key {
			for n := 0; ; n++ {
				k := ks.Key(fmt.Appendf(nil, "%s:%d:%d", kind, i, n))
				if even := k.Hash%2 == 0; even == (kind == "log" || kind == "set") || kind != "log" && kind != "zset" && kind != "set" && kind != "ints" {
					return k
				}
			}
		}
		write := func(kind string, k Key) {
			switch kind {
			case "string":
				switch rnd.IntN(3) {
				case 0:
					_, _ = db.AppendTo(k, m.now, m.text(400))
				case 1:
					_, _ = db.SetRange(k, m.now, rnd.IntN(200_000), m.text(100))
				default:
					if e, err := db.GrowString(k, m.now, 1+rnd.IntN(200_000)); err == nil {
						e.WritableBytes()[rnd.IntN(100)]++
					}
				}
			case "hash":
				m.writeHash(db, k)
			case "zset", "log":
				m.writeZSet(db, k)
			case "list":
				m.writeList(db, k)
			case "set", "ints":
				m.writeSet(db, k)
			case "stream":
				m.writeStream(db, k)
			}
		}
		for _, kind := range largeKinds {
			for i := range copies {
				write(kind, key(kind, i))
			}
		}
		for i := range copies { // the model trims streams as it fills them
			stream, _, err := db.Stream(key("stream", i), m.now)
			require.NoError(t, err)
			for range elements {
				stream.Add(StreamID{stream.Info().Last.MS + 1, 0}, [][]byte{[]byte("field"), m.text(40)})
			}
		}
		m.filling = 0
		want, seen := contentsNow(t, ks), newSeenKeys(t)
		s := ks.Snapshot(seen, 1<<(10+rnd.IntN(14)))
		for writes, more := 0, true; more; {
			more = s.Step(1 << (6 + rnd.IntN(6)))
			for range rnd.IntN(6) {
				if writes++; writes > 20_000 {
					break // the snapshot comes to its end, whatever is asked of it
				}
				kind := largeKinds[rnd.IntN(len(largeKinds))]
				k := key(kind, rnd.IntN(copies))
				if seen.open && rnd.IntN(2) == 0 {
					kind, _, _ = strings.Cut(seen.name[len("0/"):], ":")
					k = ks.Key([]byte(seen.name[len("0/"):]))
					changed[kind]++
				}
				switch rnd.IntN(1500) {
				case 0:
					if e, ok := db.Find(k, m.now); ok {
						e.Delete()
					}
				case 1:
					db.Copy(k, ks.DB(1), key(kind, rnd.IntN(copies)), true, m.now)
				case 2:
					db.Rename(k, ks.Key([]byte("renamed:"+kind)), m.now)
				case 3:
					db.SetString(k, m.text(100), 0)
				case 4:
					ks.Swap(0, 1, m.now)
					ks.Swap(0, 1, m.now)
				default:
					write(kind, k)
				}
			}
		}
		require.True(t, s.seen())
		requireSameKeys(t, want, seen.keys)
		require.Zero(t, s.Extra(), "round %d", round)
		ks.Close()
	}
	for _, kind := range largeKinds {
		require.Positive(t, changed[kind], "a %s was changed while it was being seen", kind)
	}
	t.Logf("changes of what was seen by half: %v", changed)
}

// TestSnapshotOfFieldMovedAndChanged: a field that a removal has moved is changed, while a snapshot has put it aside under its old
// position: its old value must not be written over.
func TestSnapshotOfFieldMovedAndChanged(t *testing.T) {
	ks := New(Options{Databases: 1})
	t.Cleanup(ks.Close)
	h, err := ks.DB(0).HashCreate(ks.Key([]byte("h")), 1)
	require.NoError(t, err)
	field := func(i int) []byte { return fmt.Appendf(nil, "f%d", i) }
	const fields = 2000
	for i := range fields {
		h.Set(field(i), []byte("before"))
	}
	want, seen := contentsNow(t, ks), newSeenKeys(t)
	s := ks.Snapshot(seen, 1<<20)
	for !seen.open {
		s.Step(64)
	}
	for i := range fields / 3 {
		h.Delete(field(i)) // which moves the last field here
		h.Set(field(fields-1-i), []byte("after."))
	}
	for s.Step(1000) {
	}
	requireSameKeys(t, want, seen.keys)
}
