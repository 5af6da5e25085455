package exec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestJobsOfParts: a job of a part above the executor is done once in its period, and its wish to be called again is heard.
func TestJobsOfParts(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	done, again := 0, int64(0)
	w.Srv.SetJobs(
		exec.Every(time.Hour, func(int64) { done++ }),
		func(int64) int64 { return again },
	)
	require.Positive(t, w.Srv.Cron())
	require.Positive(t, w.Srv.Cron())
	require.Equal(t, 1, done)
	again = 1
	require.Zero(t, w.Srv.Cron(), "it is due")
}

// TestEveryOutlivesAClockThatIsSetBack: work goes on when time has gone back by more than its period.
func TestEveryOutlivesAClockThatIsSetBack(t *testing.T) {
	var at []int64
	j := exec.Every(10, func(now int64) { at = append(at, now) })
	for _, now := range []int64{1000, 1009, 1010, 500, 509, 510} {
		next := j(now)
		require.Greater(t, next, now)
		require.LessOrEqual(t, next, now+10)
	}
	require.Equal(t, []int64{1000, 1010, 500, 510}, at)
}

// TestExpiryThatTakesTooLongIsCounted: a slice that leaves keys to the next one, since its time is over.
func TestExpiryThatTakesTooLongIsCounted(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Srv.Lock()
	defer w.Srv.Unlock()
	require.False(t, w.Srv.ExpireSlice(1000))
	require.Zero(t, w.Srv.Stats.ExpireCaps)
	db := w.Srv.Keys.DB(0)
	for i := range 50_000 {
		db.SetText(w.Srv.Keys.Key(fmt.Appendf(nil, "key:%d", i)), []byte("x"), 1000)
	}
	for w.Srv.ExpireSlice(2000) {
	}
	require.Positive(t, w.Srv.Stats.ExpireCaps)
}

// TestPeakOfMemoryIsSampled: background work sees what there was, although nobody has asked.
func TestPeakOfMemoryIsSampled(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("SET", "k", strings.Repeat("v", 10_000))
	require.Zero(t, w.Srv.Stats.PeakMemory)
	w.Srv.Cron()
	w.Ask("DEL", "k")
	require.Greater(t, w.Srv.Stats.PeakMemory, w.Srv.UsedMemory())
}
