package server_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/servertest"
)

// TestStartTellsOfAllPorts: the log named only those of Redis's protocol.
func TestStartTellsOfAllPorts(t *testing.T) {
	cfg := servertest.Unsaved()
	dir := t.TempDir()
	cfg.Dir, cfg.Port, cfg.UnixSocket, cfg.HTTPUnixSocket = dir, 0, filepath.Join(dir, "s"), filepath.Join(dir, "h")
	var log bytes.Buffer
	loaded := make(chan struct{})
	s := server.New(config.NewLive(cfg), server.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Ready: func() { close(loaded) }})
	require.NoError(t, s.Listen())
	s.Load()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run()
	}()
	<-loaded
	s.Stop()
	<-ended
	require.Contains(t, log.String(), "http-unixsocket="+cfg.HTTPUnixSocket)
}
