package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// pile is a Leftover of as many entries, each of three bytes.
type pile struct{ entries int }

// TakeOut implements Leftover.
func (p *pile) TakeOut(n int) int {
	n = min(n, p.entries)
	p.entries -= n
	return n
}

// Bytes implements Leftover.
func (p *pile) Bytes() int { return 3 * p.entries }

// TestRemains: what is small goes at once as long as there is nothing before it and not too much has gone so since the last slice; the
// rest goes in its order, and its bytes are counted until then.
func TestRemains(t *testing.T) {
	var r Remains
	small := func() *pile { return &pile{RemainsPerClient - 1} }
	r.LetGo(small())
	require.Equal(t, Remains{}, r, "few entries always go at once")
	r.Spared = RemainsAtOnce
	r.LetGo(&pile{RemainsAtOnce - 100})
	require.Empty(t, r.Queue)
	require.Equal(t, 100, r.Spared)

	big := &pile{1000}
	r.LetGo(big)
	require.Equal(t, 900, big.entries, "as many as are spared go at once")
	require.Zero(t, r.Spared)
	last := small()
	r.LetGo(last)
	require.Len(t, r.Queue, 2, "what comes later waits")
	require.Equal(t, 3*(900+RemainsPerClient-1), r.Bytes)

	r.Help()
	require.Equal(t, 900-RemainsPerNew, big.entries)
	require.Equal(t, big.Bytes()+last.Bytes(), r.Bytes)
	r.TakeOut(big.entries + 5)
	require.Equal(t, RemainsPerClient-1-5, last.entries)
	require.Equal(t, last.Bytes(), r.Bytes)
	require.Equal(t, []Leftover{last}, r.Queue)
	r.LetGo(&pile{0})
	for r.Slice() { // a slice ends by the clock
	}
	require.Equal(t, Remains{Spared: RemainsAtOnce}, r)
	r.Help()
}
