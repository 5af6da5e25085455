package httpcheck

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/local"
)

// TestChecksWaitForRoom: a check for which there is no room waits until there is, and no longer than a check may take.
func TestChecksWaitForRoom(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler)}, new(Counts))
	for range maxChecks {
		require.True(t, s.begin(context.Background()))
	}
	short := local.Patience{Context: context.Background(), Limit: time.Millisecond}
	defer short.End()
	require.False(t, s.begin(&short))

	long := local.Patience{Context: context.Background(), Limit: time.Minute}
	defer long.End()
	begun := make(chan bool)
	go func() { begun <- s.begin(&long) }()
	<-s.checks
	require.True(t, <-begun)
}
