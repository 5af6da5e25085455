package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
)

// TestDurationsOfAStartThatJumpsAhead: the data were written when the wall said a hundred days later. The server's clock goes on from there,
// and loading was said to have taken a hundred days, as was the server's age, and that of clients who had come before. They would have been
// closed for having been idle so long, and a save point would have been due.
func TestDurationsOfAStartThatJumpsAhead(t *testing.T) {
	const ahead = 100 * 24 * time.Hour
	cfg := config.Default()
	cfg.Dir, cfg.AppendOnly, cfg.Timeout, cfg.TopKeys = t.TempDir(), true, time.Hour, 10
	mono := int64(time.Hour)
	start := func(wall int64, log *bytes.Buffer) *workerClient {
		clock := NewClock(func() (int64, int64) { return wall + mono, mono })
		s := New(config.NewLive(cfg), Options{Clock: clock, Log: slog.New(slog.NewJSONHandler(log, nil))})
		w := newWorkerClientOf(t, s)
		s.Lock()
		s.beginLoading()
		s.Unlock()
		require.NoError(t, s.load())
		s.Lock()
		s.endLoading()
		s.Unlock()
		return w
	}
	first := start(wallAtStart+int64(ahead), &bytes.Buffer{})
	first.run(encodeCommand("SET", "k", "v"))
	first.srv.closeLog()
	first.srv.dirs.release()

	var log bytes.Buffer
	w := start(wallAtStart, &log)
	defer w.srv.closeLog()
	s := w.srv
	require.GreaterOrEqual(t, s.clock.Read(), wallAtStart+int64(ahead), "it has jumped")
	const passed = 7 * time.Second
	mono += int64(passed)
	for line := range bytes.Lines(log.Bytes()) {
		var entry struct{ Took time.Duration }
		require.NoError(t, json.Unmarshal(line, &entry))
		require.Less(t, entry.Took, time.Hour, "%s", line)
	}
	require.Equal(t, 7, numberAfter(t, string(w.run(encodeCommand("INFO", "server"))), "uptime_in_seconds:"), "not by a clock that runs at half speed")
	require.Equal(t, 7, numberAfter(t, string(w.run(encodeCommand("CLIENT", "LIST"))), " age="))
	require.Equal(t, 7, numberAfter(t, string(w.run(encodeCommand("INFO", "limiters"))), "top_seconds:"))

	w.run(encodeCommand("SET", "k", "w"))
	s.Lock()
	defer s.Unlock()
	s.savePoints(s.clock.Mono())
	require.Nil(t, s.snapshot, "a change of this moment is in no hurry")
	s.clientsSlice(s.clock.Read())
	require.False(t, w.conn.Closing())
	require.Zero(t, s.stats.timedOut)
}

// numberAfter is the number behind a text.
func numberAfter(t *testing.T, in, text string) (n int) {
	_, rest, found := strings.Cut(in, text)
	require.True(t, found, "%q is not in %q", text, in)
	_, err := fmt.Sscan(rest, &n)
	require.NoError(t, err)
	return n
}
