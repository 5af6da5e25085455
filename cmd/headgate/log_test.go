package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/config"
)

// TestLogFormats: JSON unless a terminal or the configuration asks for text, with the same keys.
func TestLogFormats(t *testing.T) {
	terminal, err := os.Open(os.DevNull) // a character device, as a terminal is
	require.NoError(t, err)
	defer terminal.Close()
	for _, tt := range []struct {
		format config.LogFormat
		out    any // nil: a buffer
		path   string
		json   bool
	}{
		{format: config.LogAuto, json: true},
		{format: config.LogText},
		{format: config.LogJSON, json: true},
		{format: config.LogAuto, out: terminal},
		{format: config.LogAuto, out: terminal, path: "file", json: true},
		{format: config.LogJSON, out: terminal, json: true},
	} {
		o := &logOutput{path: tt.path, out: &bytes.Buffer{}}
		if tt.out != nil {
			o.out = terminal
		}
		_, isJSON := o.handler(tt.format).(*slog.JSONHandler)
		require.Equal(t, tt.json, isJSON, "%+v", tt)
	}
	var buf bytes.Buffer
	o := &logOutput{out: &buf}
	slog.New(o.handler(config.LogJSON)).Warn("a <key>", "addr", "1.2.3.4:5", "unsent", 7)
	var line map[string]any
	require.NoError(t, json.Unmarshal(buf.Bytes(), &line))
	require.Equal(t, "a <key>", line["msg"])
	require.Equal(t, "WARN", line["level"])
	require.EqualValues(t, 7, line["unsent"])
	require.Contains(t, line, "time")
}

// TestDurationsInJSONHaveNoUnit: a snapshot was said to have taken 1500000000.
func TestDurationsInJSONHaveNoUnit(t *testing.T) {
	for _, format := range []config.LogFormat{config.LogJSON, config.LogText} {
		var buf bytes.Buffer
		o := &logOutput{out: &buf}
		slog.New(o.handler(format)).Info("done", "took", 1500*time.Millisecond, slog.Group("of which", "waiting", 2*time.Microsecond))
		require.Contains(t, buf.String(), "1.5s")
		require.Contains(t, buf.String(), "2µs")
		require.NotContains(t, buf.String(), "1500000000")
	}
}
