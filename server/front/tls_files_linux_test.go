package front

import (
	"os"
	"path/filepath"
	"testing"

	"headgate/server/config"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestFilesThatHang: a file system that does not answer holds up nobody else, and what it says at last is for nobody if the settings have changed.
func TestFilesThatHang(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cert")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	f := &tlsFront{settings: &config.Config{TLSPort: 1, TLSCertFile: name, TLSKeyFile: "none"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.refresh()
	}()
	certificate, err := os.OpenFile(name, os.O_WRONLY, 0) // when refresh has opened it as well
	require.NoError(t, err)
	require.True(t, f.mu.TryLock())
	f.settings = &config.Config{}
	f.mu.Unlock()
	require.NoError(t, certificate.Close())
	<-done
	require.Empty(t, f.broken)
	require.Zero(t, f.BadReloads.Load())
}
