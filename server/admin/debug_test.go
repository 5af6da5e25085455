package admin_test

import (
	"fmt"
	"testing"
	"time"

	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestDebugObjectShowsTheClock: lru is when the key was last used, in Redis's 24 bits, and beside a counter of uses the minute and that.
func TestDebugObjectShowsTheClock(t *testing.T) {
	w := servertest.NewClockClient(t)
	cfg := *w.Srv.Config.Get()
	cfg.EnableDebugCommand = config.AccessYes
	w.Srv.Config = config.NewLive(&cfg)
	w.Ask("SET", "k", "v")
	used := w.Now / int64(time.Second)
	w.Now += 100 * int64(time.Second)
	w.Srv.Cron()
	require.Contains(t, w.Ask("DEBUG", "OBJECT", "k"), fmt.Sprintf(" lru:%d lru_seconds_idle:100", used&0xffffff))
	w.Srv.CountsUses = true
	require.Contains(t, w.Ask("DEBUG", "OBJECT", "k"), fmt.Sprintf(" lru:%d ", (w.Now/int64(time.Minute)&0xffff)<<8|int64(w.Uses("k"))))
}
