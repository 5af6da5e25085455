package persistence

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLockOfWhatIsNoDirectory: a lock that could not be taken is an error, and never a lock that is none.
func TestLockOfWhatIsNoDirectory(t *testing.T) {
	lock, err := OS{}.Lock(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Nil(t, lock)
}

// TestLockIsHeldOnce: the second lock of a directory is refused, says who holds it, and can be had once the first is closed.
func TestLockIsHeldOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := OS{}.Lock(dir)
	require.NoError(t, err)
	require.NoError(t, first.Tell("process 7"))
	_, err = OS{}.Lock(dir)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, HeldError{Dir: dir, Holder: "process 7"}, *held)
	require.EqualError(t, held, "the data directory "+dir+" is in use by process 7")
	require.NoError(t, first.Close())
	again, err := OS{}.Lock(dir)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}
