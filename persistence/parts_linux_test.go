package persistence

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWriteParts: parts stand behind each other in the file, empty ones too; where the system takes only the beginning, wherever that
// ends, what is told is what is in the file, and why there is no more.
func TestWriteParts(t *testing.T) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limit := func(bytes uint64) {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: before.Max}))
	}
	defer limit(before.Cur)

	parts := [][]byte{[]byte("#TS:1\r\n"), nil, []byte(strings.Repeat("effects ", 3)), []byte("#CRC:1\r\n")}
	whole := "begun" + string(parts[0]) + string(parts[2]) + string(parts[3])
	for room := len("begun"); room <= len(whole); room++ {
		name := filepath.Join(t.TempDir(), "log")
		f, _, err := OS{}.Append(name, 0o600)
		require.NoError(t, err)
		_, err = f.Write([]byte("begun"))
		require.NoError(t, err)
		limit(uint64(room))
		n, err := f.WriteParts(parts...)
		limit(before.Cur)
		require.NoError(t, f.Close())
		if room < len(whole) {
			require.ErrorIs(t, err, syscall.EFBIG, "room for %d", room)
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, room-len("begun"), n)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, whole[:room], string(got))
	}
}
