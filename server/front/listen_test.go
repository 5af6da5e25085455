package front

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListenMistakes: the error names what is to be corrected.
func TestListenMistakes(t *testing.T) {
	for flag, bind := range map[string]string{"--port": "--bind", "--tls-port": "--bind", "--http-port": "--http-bind", "--rls-port": "--rls-bind"} {
		_, err := ListenOn([]string{"256.0.0.1"}, 1, flag) // no address, and no name that anybody could have
		require.ErrorContains(t, err, "; correct "+bind+" or "+flag)
	}
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("kept"), 0o600))
	_, err := ListenUnix(path, 0, "http-unixsocket")
	require.EqualError(t, err, path+" exists and is not a socket: remove it, or choose another path with --http-unixsocket")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
}
