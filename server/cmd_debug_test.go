package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
)

// TestDebugObjectShowsTheClock: lru is when the key was last used, in Redis's 24 bits, and beside a counter of uses the minute and that.
func TestDebugObjectShowsTheClock(t *testing.T) {
	w := newClockClient(t)
	cfg := *w.srv.config.Get()
	cfg.EnableDebugCommand = config.AccessYes
	w.srv.config = config.NewLive(&cfg)
	w.ask("SET", "k", "v")
	used := w.now / int64(time.Second)
	w.now += 100 * int64(time.Second)
	w.srv.cron()
	require.Contains(t, w.ask("DEBUG", "OBJECT", "k"), fmt.Sprintf(" lru:%d lru_seconds_idle:100", used&0xffffff))
	w.srv.countsUses = true
	require.Contains(t, w.ask("DEBUG", "OBJECT", "k"), fmt.Sprintf(" lru:%d ", (w.now/int64(time.Minute)&0xffff)<<8|int64(w.uses("k"))))
}
