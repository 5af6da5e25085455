package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoAllocation runs what commands do on keys that are there, and expects the Go heap untouched.
func TestNoAllocation(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	for i := range 5000 {
		db.SetInt(testKey(ks, "key:%d", i), int64(i), 0)
	}
	name, text, digits := []byte("key:17"), []byte("some text of a few bytes"), []byte("123456")
	missing := []byte("missing")
	db.SetString(testKey(ks, "text"), text, 0)
	scratch := make([]byte, 0, 64)
	n := int64(0)
	var sum uint64
	for _, tc := range []struct {
		name string
		run  func()
	}{
		{"Find", func() {
			e, ok := db.Find(ks.Key(name), 1)
			require.True(t, ok)
			scratch = e.AppendString(scratch[:0])
		}},
		{"Find of a missing key", func() {
			if _, ok := db.Find(ks.Key(missing), 1); ok {
				t.Fail()
			}
		}},
		{"Bytes", func() {
			e, _ := db.Find(ks.Key(name), 1)
			_ = e.Bytes(scratch)
		}},
		{"INCR", func() {
			e, _ := db.Find(ks.Key(name), 1)
			v, _ := e.Int()
			e.SetInt(v + 1)
		}},
		{"SetInt", func() { n++; db.SetInt(ks.Key(name), n, 0) }},
		{"SetInt with an expiry", func() { n++; db.SetInt(ks.Key(name), n, 1000+n) }},
		{"SetExpireAt", func() {
			n++
			e, _ := db.Find(ks.Key(name), 1)
			e.SetExpireAt(1000 + n)
		}},
		{"SetString", func() { db.SetString(ks.Key(name), text, 0) }},
		{"SetString of digits", func() { db.SetString(ks.Key(name), digits, 0) }},
		{"SetString over a number and back", func() {
			db.SetString(ks.Key(name), text, 0)
			db.SetInt(ks.Key(name), 1, 0)
		}},
		{"a new key and its removal", func() {
			db.SetInt(ks.Key(missing), 1, 50)
			e, _ := db.Find(ks.Key(missing), 1)
			e.Delete()
		}},
		{"a number past its time, renewed", func() {
			n++
			e, _ := db.FindToSet(ks.Key(name), 1000+n)
			if !e.IsZero() {
				e.Lapse()
				e.Renew(n, 999+n)
			}
		}},
		{"touching", func() {
			k := ks.Key(name)
			sum += db.TouchBucket(k.Hash) + db.TouchRecord(k.Hash)
		}},
		{"ExpireSlice", func() { n++; ks.ExpireSlice(n, 0, 100) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Zero(t, testing.AllocsPerRun(200, tc.run))
		})
	}
}
