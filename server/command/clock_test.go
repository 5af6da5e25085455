package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestDurationsOfAStartThatJumpsAhead: the data were written when the wall said a hundred days later. The server's clock goes on from there,
// and loading was said to have taken a hundred days, as was the server's age, and that of clients who had come before. They would have been
// closed for having been idle so long, and a save point would have been due.
func TestDurationsOfAStartThatJumpsAhead(t *testing.T) {
	const ahead = 100 * 24 * time.Hour
	cfg := config.Default()
	cfg.Dir, cfg.AppendOnly, cfg.Timeout, cfg.TopKeys = t.TempDir(), true, time.Hour, 10
	mono := int64(time.Hour)
	start := func(wall int64, log *bytes.Buffer) *servertest.WorkerClient {
		clock := command.NewClock(func() (int64, int64) { return wall + mono, mono })
		s := server.New(config.NewLive(cfg), server.Options{Clock: clock, Log: slog.New(slog.NewJSONHandler(log, nil))})
		w := servertest.NewWorkerClientOf(t, s)
		s.Lock()
		s.BeginLoading()
		s.Unlock()
		require.NoError(t, s.LoadAOF())
		s.Lock()
		s.EndLoading()
		s.Unlock()
		return w
	}
	first := start(servertest.WallAtStart+int64(ahead), &bytes.Buffer{})
	first.Run(servertest.EncodeCommand("SET", "k", "v"))
	first.Srv.CloseLog()
	first.Srv.Dirs.Release()

	var log bytes.Buffer
	w := start(servertest.WallAtStart, &log)
	defer w.Srv.CloseLog()
	s := w.Srv
	require.GreaterOrEqual(t, s.Clock.Read(), servertest.WallAtStart+int64(ahead), "it has jumped")
	const passed = 7 * time.Second
	mono += int64(passed)
	for line := range bytes.Lines(log.Bytes()) {
		var entry struct{ Took time.Duration }
		require.NoError(t, json.Unmarshal(line, &entry))
		require.Less(t, entry.Took, time.Hour, "%s", line)
	}
	require.Equal(t, 7, numberAfter(t, string(w.Run(servertest.EncodeCommand("INFO", "server"))), "uptime_in_seconds:"), "not by a clock that runs at half speed")
	require.Equal(t, 7, numberAfter(t, string(w.Run(servertest.EncodeCommand("CLIENT", "LIST"))), " age="))
	require.Equal(t, 7, numberAfter(t, string(w.Run(servertest.EncodeCommand("INFO", "limiters"))), "top_seconds:"))

	w.Run(servertest.EncodeCommand("SET", "k", "w"))
	s.Lock()
	defer s.Unlock()
	s.SavePoints(s.Clock.Mono())
	require.Nil(t, s.Snapshot, "a change of this moment is in no hurry")
	s.ClientsSlice(s.Clock.Read())
	require.False(t, w.Conn.Closing())
	require.Zero(t, s.Stats.TimedOut)
}

// numberAfter is the number behind a text.
func numberAfter(t *testing.T, in, text string) (n int) {
	_, rest, found := strings.Cut(in, text)
	require.True(t, found, "%q is not in %q", text, in)
	_, err := fmt.Sscan(rest, &n)
	require.NoError(t, err)
	return n
}
