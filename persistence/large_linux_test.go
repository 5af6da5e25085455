package persistence

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// askew is a directFile whose writes cannot be direct, because its block begins at an odd address. A file system
// without direct writes has no such file, and gives the common one.
func askew(t *testing.T, name string) File {
	f, err := createLarge(name, 0o600)
	require.NoError(t, err)
	if direct, ok := f.(*directFile); ok {
		direct.block = direct.block[1 : 1 : cap(direct.block)-1]
	}
	return f
}

// TestLargeFile writes files of lengths around the borders of blocks, in pieces of random length.
func TestLargeFile(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	name := filepath.Join(t.TempDir(), "file")
	opened := map[string]func(t *testing.T) File{
		"as the file system can": func(t *testing.T) File {
			f, err := OS{}.CreateLarge(name, 0o600)
			require.NoError(t, err)
			return f
		},
		"not direct after all": func(t *testing.T) File { return askew(t, name) },
	}
	for how, open := range opened {
		t.Run(how, func(t *testing.T) {
			for _, size := range []int{0, 1, directAlign, directBlock - 1, directBlock, directBlock + 1, 2*directBlock - 1, 3*directBlock + rnd.IntN(directBlock)} {
				want := make([]byte, size)
				for i := range want {
					want[i] = byte(rnd.Uint32())
				}
				f := open(t)
				for rest := want; len(rest) > 0; {
					n := min(1+rnd.IntN(200_000), len(rest))
					if rnd.IntN(4) == 0 {
						n = min(rnd.IntN(2*directBlock), len(rest))
					}
					done, err := f.Write(rest[:n])
					require.NoError(t, err)
					require.Equal(t, n, done)
					rest = rest[n:]
				}
				require.NoError(t, f.Sync())
				_, err := f.Write([]byte("and more"))
				require.NoError(t, err)
				require.NoError(t, f.Sync())
				require.NoError(t, f.Close())
				got, err := os.ReadFile(name)
				require.NoError(t, err)
				require.True(t, bytes.Equal(append(want, "and more"...), got), "%d bytes", size)
			}
		})
	}
}

// TestLargeFileReplaced begins a file again that was longer.
func TestLargeFileReplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{2*directBlock + 10, 5} {
		f, err := OS{}.CreateLarge(name, 0o600)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, size))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.EqualValues(t, size, info.Size())
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

func TestLargeFileOnAFullDisk(t *testing.T) {
	f, err := OS{}.CreateLarge("/dev/full", 0o600)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 2*directBlock))
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = OS{}.CreateLarge(filepath.Join(t.TempDir(), "missing", "file"), 0o600)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestLargeFileSparesTheCache asks the kernel which pages of a file are in its cache.
func TestLargeFileSparesTheCache(t *testing.T) {
	const size = 8 * directBlock
	cached := func(create func(string, fs.FileMode) (File, error)) (pages int) {
		name := filepath.Join(t.TempDir(), "file")
		f, err := create(name, 0o600)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, size))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		r, err := os.Open(name)
		require.NoError(t, err)
		defer r.Close()
		mapped, err := unix.Mmap(int(r.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
		require.NoError(t, err)
		defer unix.Munmap(mapped)
		in := make([]byte, size/os.Getpagesize())
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), size, uintptr(unsafe.Pointer(&in[0])))
		require.Zero(t, errno)
		for _, p := range in {
			pages += int(p & 1)
		}
		return pages
	}
	common := cached(OS{}.Create)
	require.NotZero(t, common)
	large := cached(OS{}.CreateLarge)
	var system unix.Statfs_t
	require.NoError(t, unix.Statfs(t.TempDir(), &system))
	switch system.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC:
		require.Zero(t, large)
	default: // a tmpfs takes direct writes, but is a cache itself
		require.LessOrEqual(t, large, common)
	}
}

// BenchmarkLargeFile shows what processor time a file takes, in the cache and past it.
func BenchmarkLargeFile(b *testing.B) {
	chunk := make([]byte, 64<<10)
	for _, how := range []struct {
		name   string
		create func(string, fs.FileMode) (File, error)
	}{
		{"large", OS{}.CreateLarge},
		{"common", func(name string, perm fs.FileMode) (File, error) {
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
			return &partedFile{osFile: osFile{f}}, err
		}},
	} {
		b.Run(how.name, func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "file")
			began, written := processorTime(b), 0
			for b.Loop() {
				f, err := how.create(fmt.Sprint(name, written%2), 0o600)
				require.NoError(b, err)
				for range 1024 {
					_, err := f.Write(chunk)
					require.NoError(b, err)
				}
				require.NoError(b, f.Sync())
				require.NoError(b, f.Close())
				written++
			}
			b.SetBytes(1024 * int64(len(chunk)))
			b.ReportMetric(float64(processorTime(b)-began)/float64(written)/1e6, "cpu-ms/op")
		})
	}
}

// processorTime is what the process has used.
func processorTime(b *testing.B) time.Duration {
	var used unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
