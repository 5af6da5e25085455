package store

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// heap is what is live on the Go heap, in bytes.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestUsedIsTrue compares what Used says with what the arena and the Go heap have grown by, for each form of value.
func TestUsedIsTrue(t *testing.T) {
	const keys, members = 20, 4000
	name := func(prefix string, n int) []byte { return fmt.Appendf(nil, "%s%015d", prefix, n*7919) }
	tests := []struct {
		what string
		fill func(ks *Keyspace, k Key)
	}{
		{"big strings", func(ks *Keyspace, k Key) { ks.DB(0).SetString(k, []byte(strings.Repeat("x", 300_000)), 0) }},
		{"strings that grew", func(ks *Keyspace, k Key) {
			for range members {
				_, err := ks.DB(0).AppendTo(k, 0, name("v", 1))
				require.NoError(t, err)
			}
		}},
		{"hashes", func(ks *Keyspace, k Key) {
			h, err := ks.DB(0).HashCreate(k, 0)
			require.NoError(t, err)
			for i := range members {
				h.Set(name("f", i), name("v", i*100))
			}
			for i := range members / 2 {
				h.Set(name("f", i), []byte(strings.Repeat("y", i%100)))
				h.Delete(name("f", i*2))
			}
		}},
		{"sorted sets in random order", func(ks *Keyspace, k Key) {
			z, err := ks.DB(0).ZSetCreate(k, 0)
			require.NoError(t, err)
			for i := range members {
				z.Add(float64(i*7919%members), name("m", i))
			}
		}},
		{"sorted sets in order", func(ks *Keyspace, k Key) {
			z, err := ks.DB(0).ZSetCreate(k, 0)
			require.NoError(t, err)
			for i := range members {
				z.Add(float64(i), name("m", i))
			}
		}},
		{"sliding logs", func(ks *Keyspace, k Key) {
			z, err := ks.DB(0).ZSetCreate(k, 0)
			require.NoError(t, err)
			for i := range 20 * members {
				at := int64(1_700_000_000_000 + i*37)
				z.Add(float64(at), fmt.Append(nil, at))
			}
		}},
		{"lists", func(ks *Keyspace, k Key) {
			l, _, err := ks.DB(0).List(k, 0)
			require.NoError(t, err)
			for i := range 5 * members {
				l.Push(i%3 == 0, name("e", i))
			}
			for range 2 * members {
				l.Cut(0, 1)
			}
		}},
		{"sets", func(ks *Keyspace, k Key) {
			s, _, err := ks.DB(0).Set(k, 0)
			require.NoError(t, err)
			for i := range members {
				s.Add(name("m", i))
			}
			for i := range members / 3 {
				s.Remove(name("m", i*2))
			}
		}},
		{"sets of long names", func(ks *Keyspace, k Key) {
			s, _, err := ks.DB(0).Set(k, 0)
			require.NoError(t, err)
			for i := range members {
				s.Add([]byte(strings.Repeat(fmt.Sprint(i), 20)))
			}
		}},
		{"streams", func(ks *Keyspace, k Key) {
			s, _, err := ks.DB(0).Stream(k, 0)
			require.NoError(t, err)
			for i := range 3 * members {
				s.Add(StreamID{uint64(1000 + i), 0}, [][]byte{[]byte("field"), name("v", i)})
			}
		}},
		{"streams with groups", func(ks *Keyspace, k Key) {
			s, _, err := ks.DB(0).Stream(k, 0)
			require.NoError(t, err)
			s.Create()
			s.CreateGroup([]byte("group"), StreamID{}, 0)
			g := s.Group([]byte("group"))
			c, _ := s.See(g, []byte("consumer"), 1)
			for i := range members {
				id := StreamID{uint64(1000 + i), 0}
				s.Add(id, [][]byte{[]byte("f"), []byte("v")})
				s.Assign(g, c, id, 1, 1)
			}
		}},
		{"small values of every kind", func(ks *Keyspace, k Key) {
			for i := range members {
				k := ks.Key(fmt.Appendf(nil, "%s:%d", k.Name, i))
				h, err := ks.DB(0).HashCreate(k, 0)
				require.NoError(t, err)
				for f := range i % 9 {
					h.Set(name("f", f), name("v", f))
				}
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			ks := New(Options{})
			defer ks.Close()
			ks.DB(0).SetInt(ks.Key([]byte("first")), 1, 0) // which sets up the arena's books
			ks.Stats()
			heapBefore, arenaBefore, usedBefore := heap(), int(ks.arenas.used), int(ks.Used())
			for n := range keys {
				test.fill(ks, ks.Key(fmt.Appendf(nil, "key%d", n)))
			}
			ks.Stats()
			truth := heap() - heapBefore + int(ks.arenas.used) - arenaBefore
			told := int(ks.Used()) - usedBefore
			t.Logf("%d bytes, told as %d: %+.1f %%", truth, told, 100*float64(told-truth)/float64(truth))
			require.InEpsilon(t, truth, told, 0.10)
			db := ks.DB(0)
			for i := range keys {
				db.DeleteAll(ks, i)
			}
			ks.Stats()
			require.InDelta(t, usedBefore, ks.Used(), 64<<10, "when all is gone")
			runtime.KeepAlive(ks)
		})
	}
}

// DeleteAll deletes the keys of one number.
func (db *DB) DeleteAll(ks *Keyspace, n int) {
	var names []string
	db.Each(0, func(e *Entry) bool {
		if strings.HasPrefix(string(e.Name()), fmt.Sprintf("key%d", n)) {
			names = append(names, string(e.Name()))
		}
		return true
	})
	for _, name := range names {
		if e, ok := db.Peek(ks.Key([]byte(name))); ok {
			e.Delete()
		}
	}
}
