package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// pile is a leftover of as many entries, each of three bytes.
type pile struct{ entries int }

// TakeOut implements leftover.
func (p *pile) TakeOut(n int) int {
	n = min(n, p.entries)
	p.entries -= n
	return n
}

// Bytes implements leftover.
func (p *pile) Bytes() int { return 3 * p.entries }

// TestRemains: what is small goes at once as long as there is nothing before it and not too much has gone so since the last slice; the
// rest goes in its order, and its bytes are counted until then.
func TestRemains(t *testing.T) {
	var r remains
	small := func() *pile { return &pile{remainsPerClient - 1} }
	r.letGo(small())
	require.Equal(t, remains{}, r, "few entries always go at once")
	r.spared = remainsAtOnce
	r.letGo(&pile{remainsAtOnce - 100})
	require.Empty(t, r.queue)
	require.Equal(t, 100, r.spared)

	big := &pile{1000}
	r.letGo(big)
	require.Equal(t, 900, big.entries, "as many as are spared go at once")
	require.Zero(t, r.spared)
	last := small()
	r.letGo(last)
	require.Len(t, r.queue, 2, "what comes later waits")
	require.Equal(t, 3*(900+remainsPerClient-1), r.bytes)

	r.help()
	require.Equal(t, 900-remainsPerNew, big.entries)
	require.Equal(t, big.Bytes()+last.Bytes(), r.bytes)
	r.takeOut(big.entries + 5)
	require.Equal(t, remainsPerClient-1-5, last.entries)
	require.Equal(t, last.Bytes(), r.bytes)
	require.Equal(t, []leftover{last}, r.queue)
	r.letGo(&pile{0})
	require.False(t, r.slice(), "a slice is long enough for so few")
	require.Equal(t, remains{spared: remainsAtOnce}, r)
	r.help()
}
