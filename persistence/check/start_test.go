package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence"
	"headgate/persistence/aof"
	"headgate/persistence/crashfs"
)

// busyFS is a directory that a server uses, which does something when a file is opened.
type busyFS struct {
	*crashfs.FS
	opened func(name string)
}

func (f *busyFS) Lock(dir string) (persistence.Lock, error) {
	return nil, &persistence.HeldError{Dir: dir}
}

func (f *busyFS) Open(name string) (persistence.ReadFile, error) {
	f.opened(name)
	return f.FS.Open(name)
}

// TestStartWhileAServerRewrites: a file that a rewrite deletes while its directory is looked at, at whatever moment, is not missing.
func TestStartWhileAServerRewrites(t *testing.T) {
	const old, next = "/data/log/a.aof.1.incr.aof", "/data/log/a.aof.2.incr.aof"
	for moment := 1; ; moment++ {
		disk := &busyFS{FS: crashfs.New("/data")}
		require.NoError(t, disk.Mkdir("/data/log", 0o700))
		require.NoError(t, disk.WriteFile("/data/log/a.aof.manifest", []byte("file a.aof.1.incr.aof seq 1 type i\n")))
		require.NoError(t, disk.WriteFile(old, nil))
		opened := 0
		disk.opened = func(name string) {
			if name != old {
				return
			}
			if opened++; opened == moment {
				require.NoError(t, disk.WriteFile(next, []byte("*1\r\n$4\r\nPI"))) // and is being written
				require.NoError(t, disk.WriteFile("/data/log/a.aof.manifest", []byte("file a.aof.2.incr.aof seq 2 type i\n")))
				require.NoError(t, disk.Remove(old))
			}
		}
		c := Checker{FS: disk, Say: t.Logf}
		what, warnings, err := c.Start(Start{AppendOnly: true, Log: aof.Options{FS: disk, Dir: "/data/log", Name: "a.aof"}, Snapshot: "/data/dump.rdb"})
		require.NoError(t, err, "moment %d", moment)
		require.Empty(t, warnings)
		if opened < moment {
			require.Equal(t, old, what)
			require.Greater(t, moment, 4)
			return
		}
		require.Contains(t, []string{old, next}, what)
	}
}
