package server

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// TestLatencyOfTheLog: a slow disk is told of by the names that Redis has for it.
func TestLatencyOfTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		disk := &slowFS{FS: crashfs.New("/data"), takes: func() time.Duration { return 50 * time.Millisecond }, writes: 3 * time.Millisecond}
		now := time.Now().UnixNano()
		w, err := startAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		defer w.kill()
		latest := func() (shown string) {
			t.Helper()
			list := w.srv.eventsSeen()
			for _, event := range list {
				shown += fmt.Sprintf("%s %d ", latencyEventTexts[event].name, w.srv.latency[event].max)
			}
			require.Equal(t, fmt.Sprintf(":%d\r\n", len(list)), w.words("LATENCY", "RESET"))
			return strings.TrimSpace(shown)
		}
		w.words("SET", "key", "1")
		require.Empty(t, latest(), "nothing is watched yet")
		time.Sleep(2 * time.Second)
		w.words("CONFIG", "SET", "latency-monitor-threshold", "3")
		w.words("SET", "key", "2")
		require.Equal(t, "aof-write 3 aof-write-alone 3", latest())
		time.Sleep(time.Second + 20*time.Millisecond)
		w.words("SET", "key", "3")
		require.Equal(t, "aof-write 3 aof-write-pending-fsync 3", latest(), "the sync has begun and not ended")
		time.Sleep(2 * time.Second)
		w.words("BGSAVE")
		w.words("SET", "key", "4")
		require.Equal(t, "aof-write 3 aof-write-active-child 3", latest())
		for w.srv.snapshot != nil {
			time.Sleep(time.Second)
			w.pass(time.Second)
			require.False(t, w.tick())
		}
		w.words("CONFIG", "SET", "appendfsync", "always")
		w.words("SET", "key", "5")
		require.Equal(t, "aof-fsync-always 50 aof-write 3 aof-write-alone 3", latest())
		w.words("CONFIG", "SET", "latency-monitor-threshold", "4")
		w.words("SET", "key", "6")
		require.Equal(t, "aof-fsync-always 50", latest())
	})
}

// TestLatencyOfSlices: what the loop does between requests is told of.
func TestLatencyOfSlices(t *testing.T) {
	cfg := config.Default()
	cfg.LatencyMonitorThreshold = 2
	s := New(config.NewLive(cfg), Options{})
	s.Lock()
	defer s.Unlock()
	begun := time.Now().Add(-2 * time.Millisecond)
	s.watchLatencySince(eventExpireCycle, time.Now())
	require.Empty(t, s.eventsSeen(), "it has not taken long")
	s.watchLatencySince(eventExpireCycle, begun)
	require.Equal(t, []latencyEvent{eventExpireCycle}, s.eventsSeen())
}

// latencyMarkdown lists the events.
func latencyMarkdown() string {
	var b strings.Builder
	b.WriteString("| event | what took long | what to do |\n|---|---|---|\n")
	for _, texts := range latencyEventTexts {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", texts.name, texts.what, texts.advice)
	}
	return b.String()
}

// TestLatencyDocumented fails when docs/operations.md does not list the events; go generate mends it.
func TestLatencyDocumented(t *testing.T) {
	const path = "../docs/operations.md"
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	want := replaceBetween(t, string(document), "latency", latencyMarkdown())
	if *writeDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server")
}
