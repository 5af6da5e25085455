package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSignalsThatRepeat end a server that is saving its data only if somebody at a keyboard insists.
func TestSignalsThatRepeat(t *testing.T) {
	const term, interrupt = syscall.SIGTERM, syscall.SIGINT
	type event struct {
		after time.Duration // since the event before
		sig   os.Signal     // nil: the shutdown fails
		want  step
	}
	for _, tt := range []struct {
		name   string
		events []event
	}{
		{"SIGTERM to the process and to its group", []event{{0, term, stepShutDown}, {time.Millisecond, term, stepNone}}},
		{"SIGINT to the process and to its group", []event{{0, interrupt, stepShutDown}, {time.Millisecond, interrupt, stepNone}}},
		{"a supervisor that repeats itself", []event{{0, term, stepShutDown}, {time.Minute, term, stepNone}}},
		{"somebody who insists", []event{{0, interrupt, stepShutDown}, {repeatGrace, interrupt, stepAtOnce}}},
		{"somebody who insists after SIGTERM", []event{{0, term, stepShutDown}, {time.Millisecond, interrupt, stepNone}, {repeatGrace, interrupt, stepAtOnce}}},
		{"a shutdown that fails", []event{{0, term, stepShutDown}, {0, nil, 0}, {time.Millisecond, term, stepNone}, {repeatGrace, term, stepInsist},
			{time.Millisecond, term, stepNone}, {repeatGrace, interrupt, stepAtOnce}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var e ending
			now := time.Unix(1e9, 0)
			for i, event := range tt.events {
				now = now.Add(event.after)
				if event.sig == nil {
					e.hasFailed()
					continue
				}
				require.Equal(t, event.want, e.signal(event.sig, now), "event %d", i)
			}
		})
	}
}
