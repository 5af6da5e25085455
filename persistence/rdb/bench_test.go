package rdb

import (
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
