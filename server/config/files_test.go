package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence"
)

// TestReadRegular: errors name the file, and are of a kind from which the cause can be taken.
func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	data, err := ReadRegular(path, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(data))
	var system *os.PathError
	_, err = ReadRegular(path, 4)
	require.ErrorAs(t, err, &system)
	require.EqualError(t, err, "read "+path+": longer than 4 bytes")
	_, err = ReadRegular(dir, 5)
	require.ErrorAs(t, err, &system)
	require.ErrorIs(t, err, persistence.ErrNotRegular)
	_, err = ReadRegular(filepath.Join(dir, "absent"), 5)
	require.ErrorAs(t, err, &system)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
