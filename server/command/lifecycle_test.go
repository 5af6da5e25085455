package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResponds: a server is alive that has come round since it was asked last, or that nobody holds; one whose executor is held is not.
func TestResponds(t *testing.T) {
	core := &Core{}
	last, alive := core.Responds(0)
	require.True(t, alive, "nobody holds it")

	core.Lock()
	last, alive = core.Responds(last)
	require.False(t, alive, "it is held, and has not come round")
	core.Rounds.Add(1)
	last, alive = core.Responds(last)
	require.True(t, alive, "it is held, and has come round")
	_, alive = core.Responds(last)
	require.False(t, alive)
	core.Unlock()
	_, alive = core.Responds(last)
	require.True(t, alive)
}
