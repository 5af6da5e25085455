package observe_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/config"
	"headgate/server/observe"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

//go:generate go test -run Documented$ -write .

// TestLatencyOfTheLog: a slow disk is told of by the names that Redis has for it.
func TestLatencyOfTheLog(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk := &servertest.SlowFS{FS: crashfs.New("/data"), Takes: func() time.Duration { return 50 * time.Millisecond }, Writes: 3 * time.Millisecond}
		now := time.Now().UnixNano()
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		defer w.Kill()
		latest := func() (shown string) {
			t.Helper()
			list := w.Srv.EventsSeen()
			for _, event := range list {
				shown += fmt.Sprintf("%s %d ", observe.LatencyEventTexts[event].Name, w.Srv.Latency[event].Max)
			}
			require.Equal(t, fmt.Sprintf(":%d\r\n", len(list)), w.Words("LATENCY", "RESET"))
			return strings.TrimSpace(shown)
		}
		w.Words("SET", "key", "1")
		require.Empty(t, latest(), "nothing is watched yet")
		time.Sleep(2 * time.Second)
		w.Words("CONFIG", "SET", "latency-monitor-threshold", "3")
		w.Words("SET", "key", "2")
		require.Equal(t, "aof-write 3 aof-write-alone 3", latest())
		time.Sleep(time.Second + 20*time.Millisecond)
		w.Words("SET", "key", "3")
		require.Equal(t, "aof-write 3 aof-write-pending-fsync 3", latest(), "the sync has begun and not ended")
		time.Sleep(2 * time.Second)
		w.Words("BGSAVE")
		w.Words("SET", "key", "4")
		require.Equal(t, "aof-write 3 aof-write-active-child 3", latest())
		for w.Srv.Snapshot != nil {
			time.Sleep(time.Second)
			w.Pass(time.Second)
			require.False(t, w.Tick())
		}
		w.Words("CONFIG", "SET", "appendfsync", "always")
		w.Words("SET", "key", "5")
		require.Equal(t, "aof-fsync-always 50 aof-write 3 aof-write-alone 3", latest())
		w.Words("CONFIG", "SET", "latency-monitor-threshold", "4")
		w.Words("SET", "key", "6")
		require.Equal(t, "aof-fsync-always 50", latest())
	})
}

// TestLatencyOfSlices: what the loop does between requests is told of.
func TestLatencyOfSlices(t *testing.T) {
	cfg := config.Default()
	cfg.LatencyMonitorThreshold = 2
	s := server.New(config.NewLive(cfg), server.Options{})
	s.Lock()
	defer s.Unlock()
	begun := time.Now().Add(-2 * time.Millisecond)
	s.WatchLatencySince(observe.EventExpireCycle, time.Now())
	require.Empty(t, s.EventsSeen(), "it has not taken long")
	s.WatchLatencySince(observe.EventExpireCycle, begun)
	require.Equal(t, []observe.LatencyEvent{observe.EventExpireCycle}, s.EventsSeen())
}

// latencyMarkdown lists the events.
func latencyMarkdown() string {
	var b strings.Builder
	b.WriteString("| event | what took long | what to do |\n|---|---|---|\n")
	for _, texts := range observe.LatencyEventTexts {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", texts.Name, texts.What, texts.Advice)
	}
	return b.String()
}

// TestLatencyDocumented fails when docs/operations.md does not list the events; go generate mends it.
func TestLatencyDocumented(t *testing.T) {
	const path = "../../docs/operations.md"
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	want := servertest.ReplaceBetween(t, string(document), "latency", latencyMarkdown())
	if *servertest.WriteDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server/observe")
}
