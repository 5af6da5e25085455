package replication

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSilenceIsNeverBelowZero: whoever asks at the moment when something comes is not told that there is no link.
func TestSilenceIsNeverBelowZero(t *testing.T) {
	c := NewConn(nil, time.Second)
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !over.Load() {
			c.heard.Store(mono())
		}
	}()
	least := time.Duration(0)
	for started := time.Now(); time.Since(started) < 100*time.Millisecond; {
		least = min(least, c.silence())
	}
	over.Store(true)
	<-ended
	require.Zero(t, least)
}
