package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestMostMutantsCompile: of a package of several files with generic functions, too, whose other files have no bodies any more.
func TestMostMutantsCompile(t *testing.T) {
	const tried = 40
	root := harness.Root(t)
	all, err := collect(root, []string{"internal/shrinkmap/*.go", "throttle/*.go"})
	require.NoError(t, err)
	shuffle(all, 1)
	c, err := newCompiler(root, all)
	require.NoError(t, err)
	compile := 0
	for i := range all[:tried] {
		ok, err := c.compiles(&all[i])
		require.NoError(t, err)
		if ok {
			compile++
		} else {
			t.Log(all[i])
		}
	}
	require.Greater(t, compile, tried*8/10)
}
