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

// TestWhatCannotBeMadeIsTold: a directory in which no file can be made is neither writable nor has it room, and the cause is told.
func TestWhatCannotBeMadeIsTold(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	require.ErrorIs(t, CheckWritable(OS{}, absent), fs.ErrNotExist)
	require.ErrorIs(t, CheckRoom(OS{}, absent, 1), fs.ErrNotExist)
}

// TestChecksLeaveNothing: where files can be made, those that were made to see that are gone.
func TestChecksLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, CheckWritable(OS{}, dir))
	require.NoError(t, CheckRoom(OS{}, dir, 1))
	left, err := OS{}.List(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
