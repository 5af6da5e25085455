package store

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMemoryUsage checks the estimate against what a value must hold at least, and against twice that and a fixed part.
func TestMemoryUsage(t *testing.T) {
	const members, long = 5000, 100
	name := func(i int) []byte { return fmt.Appendf(nil, "%0*d", long, i) }
	tests := []struct {
		what string
		fill func(db *DB, k Key)
		data int // bytes of names and values
	}{
		{"integer", func(db *DB, k Key) { db.SetInt(k, 7, 0) }, 8},
		{"string", func(db *DB, k Key) { db.SetString(k, []byte(strings.Repeat("x", 3000)), 0) }, 3000},
		{"big string", func(db *DB, k Key) { db.SetString(k, []byte(strings.Repeat("x", 1<<20)), 0) }, 1 << 20},
		{"hash", func(db *DB, k Key) {
			h, err := db.HashCreate(k, 0)
			require.NoError(t, err)
			for i := range members {
				h.Set(name(i), name(i))
			}
		}, members * 2 * long},
		{"sorted set", func(db *DB, k Key) {
			z, err := db.ZSetCreate(k, 0)
			require.NoError(t, err)
			for i := range members {
				z.Add(float64(i), name(i))
			}
		}, members * (long + 8)},
		{"list", func(db *DB, k Key) {
			l, _, err := db.List(k, 0)
			require.NoError(t, err)
			for i := range members {
				l.Push(i%2 == 0, name(i))
			}
		}, members * long},
		{"set", func(db *DB, k Key) {
			s, _, err := db.Set(k, 0)
			require.NoError(t, err)
			for i := range members {
				s.Add(name(i))
			}
		}, members * long},
		{"set of numbers", func(db *DB, k Key) {
			s, _, err := db.Set(k, 0)
			require.NoError(t, err)
			for i := range 500 {
				s.Add(strconv.AppendInt(nil, int64(i), 10))
			}
		}, 500 * 2},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			ks := New(Options{})
			defer ks.Close()
			db, k := ks.DB(0), ks.Key([]byte("key"))
			test.fill(db, k)
			e, ok := db.Find(k, 0)
			require.True(t, ok)
			usage := e.MemoryUsage()
			require.GreaterOrEqual(t, usage, test.data)
			require.Less(t, usage, 2*test.data+100)
		})
	}
}
