package upstream

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestANewPrimaryIsLogged, once, with the one whose place it takes. That the first ones are found is no change.
func TestANewPrimaryIsLogged(t *testing.T) {
	nodes := fakeCluster(t, 3)
	serve := func(primaries ...*fakeNode) {
		for _, node := range nodes {
			node.answer(clustered(slotsOf(primaries...), nil))
		}
	}
	var log logged
	u := New(Config{Addrs: []string{nodes[0].addr}}, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(u.Close)
	f := u.fleet.Load()
	const changed = "the primaries have changed"
	serve(nodes[0], nodes[1])
	require.NoError(t, f.look(t.Context()))
	require.NotContains(t, log.String(), changed)
	serve(nodes[2], nodes[0])
	for range 2 {
		require.NoError(t, f.look(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), changed), log.String())
		require.Contains(t, log.String(), "former=["+nodes[1].addr+"] new=["+nodes[2].addr+"]")
	}
}
