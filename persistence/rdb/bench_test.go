package rdb

import (
	"bytes"
	"testing"
	"time"
)

// BenchmarkEncodeInt tells keys as those of limiters are: a name, a TTL and a time in ns.
func BenchmarkEncodeInt(b *testing.B) {
	e := NewEncoder(true)
	name := []byte("rl:user:000000123456")
	now := time.Now().UnixNano()
	for b.Loop() {
		e.Key(name, now/1e6)
		e.Int(now)
		if e.Len() > 64<<10 {
			e.Take(e.Take(nil))
		}
	}
}

// BenchmarkPacked writes and reads small hashes, each one listpack.
func BenchmarkPacked(b *testing.B) {
	tell := func(e *Encoder) {
		e.Key([]byte("user:1234567"), 0)
		e.Hash(8, true)
		for _, value := range []string{"1234567", "a name", "1700000000000", "", "-5", "somebody@example.com", "0.25", "a text of more than 63 bytes, whose length therefore takes two bytes and not one"} {
			e.Pair([]byte("field"), []byte(value))
		}
		e.End()
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		e := NewEncoder(false)
		for b.Loop() {
			tell(e)
			if e.Len() > 64<<10 {
				e.Take(e.Take(nil))
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		const values = 1000
		e := NewEncoder(false)
		e.Begin()
		for range values {
			tell(e)
		}
		file := e.file()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%values == 0 {
				must(NewReader(bytes.NewReader(file), Options{}).Read(nothing{}))
			}
		}
	})
}
