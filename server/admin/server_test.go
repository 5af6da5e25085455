package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestLazilyFreedAreCounted: lazyfreed_objects counts what Redis counts.
func TestLazilyFreedAreCounted(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c := p.Session()
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " m%d v", i)
		}
		return b.String()
	}
	for _, tc := range []struct {
		before, does string
		counts       uint64
	}{
		{"SET a 1", "UNLINK a", 0},
		{"HSET h" + members(600), "UNLINK h", 1},
		{"HSET h" + members(500), "UNLINK h", 0},
		{"SADD s" + members(300), "UNLINK s other", 1},
		{"HSET h" + members(600), "DEL h", 0},
		{"RPUSH l" + members(300), "UNLINK l", 0},
		{"MSET a 1 b 2", "FLUSHALL ASYNC", 2},
		{"MSET a 1 b 2", "FLUSHDB ASYNC", 2},
		{"MSET a 1 b 2", "FLUSHALL", 0},
		{"MSET a 1 b 2", "FLUSHDB SYNC", 0},
	} {
		c.Send("FLUSHALL|CONFIG RESETSTAT|" + tc.before + "|" + tc.does)
		servertest.ReadLines(t, c.R, 4)
		p.Srv.Lock()
		require.Equal(t, tc.counts, p.Srv.Stats.LazyFreed, "%.40s | %s", tc.before, tc.does)
		p.Srv.Unlock()
	}
}
