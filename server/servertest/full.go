package servertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FullClient is a client of a server that may take up EvictionRoom more memory than it does without keys.
type FullClient struct {
	*ClockClient
	Max uint64 // maxmemory, in bytes
}

// EvictionRoom is how many bytes of keys a FullClient's server may have.
const EvictionRoom = 2 << 20

// NewFullClient returns a client of a server that evicts by this maxmemory-policy.
func NewFullClient(t *testing.T, policy string) *FullClient {
	w := &FullClient{ClockClient: NewClockClient(t)}
	w.Call("SET first v")
	w.Call("DEL first")
	w.Srv.WatchMemory()
	w.Max = w.Srv.UsedMemory() + EvictionRoom
	require.Equal(t, "OK", w.Call(fmt.Sprintf("CONFIG SET maxmemory %d maxmemory-policy %s maxmemory-eviction-tenacity 100", w.Max, policy)))
	return w
}

// Set sets a key to 100 bytes, and requires that memory is kept within bounds.
func (w *FullClient) Set(key string, more ...string) string {
	reply := w.Ask(append([]string{"SET", key, strings.Repeat("x", 100)}, more...)...)
	require.LessOrEqual(w.T, w.Srv.UsedMemory(), w.Max+64<<10)
	return reply
}

// Evicted is how many keys have been evicted so far.
func (w *FullClient) Evicted() uint64 { return w.Srv.Keys.Stats().Evicted }
