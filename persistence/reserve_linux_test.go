package persistence

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReserve: what is reserved takes up room on the disk and is no part of the file; it goes when the file is cut to its size.
func TestReserve(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, size, err := OS{}.Append(name, 0o600)
	require.NoError(t, err)
	defer f.Close()
	require.Zero(t, size)
	_, err = f.Write([]byte("begun"))
	require.NoError(t, err)
	const room = 1 << 20
	if err := f.Reserve(5, room); err != nil {
		t.Skipf("the file system of %s reserves nothing: %v", name, err)
	}
	blocks := func() (size, used int64) {
		info, err := os.Stat(name)
		require.NoError(t, err)
		return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	size, used := blocks()
	require.EqualValues(t, 5, size)
	require.GreaterOrEqual(t, used, int64(room))
	_, err = f.Write([]byte(" and gone on"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(17))
	size, used = blocks()
	require.EqualValues(t, 17, size)
	require.Less(t, used, int64(room))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "begun and gone on", string(text))
}
