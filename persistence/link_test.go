package persistence

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksOfOthersAreNotFollowed: a link in the data directory under a name that this package writes to had its target cut to nothing.
func TestLinksOfOthersAreNotFollowed(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	dir := t.TempDir()
	for _, name := range []string{"headgate.probe.tmp", "dump.rdb.tmp", "manifest.tmp", lockNote} {
		require.NoError(t, os.Symlink(victim, filepath.Join(dir, name)))
	}
	require.NoError(t, CheckWritable(OS{}, dir))
	_, err := ReplaceLarge(OS{}, filepath.Join(dir, "dump.rdb"), 0o600)
	require.Error(t, err)
	require.Error(t, ReplaceFile(OS{}, filepath.Join(dir, "manifest"), []byte("x"), 0o600))
	lock, err := OS{}.Lock(dir)
	require.NoError(t, err)
	_ = lock.Tell("somebody")
	require.NoError(t, lock.Close())
	left, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(left))
	names, err := OS{}.List(dir)
	require.NoError(t, err)
	require.NotContains(t, names, lockNote)
	require.Len(t, names, 3, "the probe is gone")
}
