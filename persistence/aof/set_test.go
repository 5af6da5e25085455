package aof

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence"
	"headgate/persistence/crashfs"
)

// openFiles is a file system that knows which of its files are open.
type openFiles struct {
	*crashfs.FS
	open map[string]int
}

// Create implements persistence.FS.
func (o openFiles) Create(name string, perm fs.FileMode) (persistence.File, error) {
	f, err := o.FS.Create(name, perm)
	return openFile{f, o.opened(name, err)}, err
}

// CreateLarge implements persistence.FS.
func (o openFiles) CreateLarge(name string, perm fs.FileMode) (persistence.File, error) {
	return o.Create(name, perm)
}

// Append implements persistence.FS.
func (o openFiles) Append(name string, perm fs.FileMode) (persistence.AppendFile, int64, error) {
	f, size, err := o.FS.Append(name, perm)
	return openAppendFile{f, o.opened(name, err)}, size, err
}

// Open implements persistence.FS.
func (o openFiles) Open(name string) (persistence.ReadFile, error) {
	f, err := o.FS.Open(name)
	return openReadFile{f, o.opened(name, err)}, err
}

// opened counts a file that has been opened, unless there was an error, and returns what is to be called when it is closed.
func (o openFiles) opened(name string, err error) (closed func()) {
	if err == nil {
		o.open[name]++
	}
	return func() {
		if o.open[name]--; o.open[name] == 0 {
			delete(o.open, name)
		}
	}
}

type openFile struct {
	persistence.File
	closed func()
}

func (f openFile) Close() error {
	f.closed()
	return f.File.Close()
}

type openAppendFile struct {
	persistence.AppendFile
	closed func()
}

func (f openAppendFile) Close() error {
	f.closed()
	return f.AppendFile.Close()
}

type openReadFile struct {
	persistence.ReadFile
	closed func()
}

func (f openReadFile) Close() error {
	f.closed()
	return f.ReadFile.Close()
}

// TestFilesAreClosed: a set has no file open but the one that its log writes to, through a first start, a rewrite, an end, and another start.
func TestFilesAreClosed(t *testing.T) {
	disk := openFiles{crashfs.New("/data"), map[string]int{}}
	requireOpen := func(names ...string) {
		t.Helper()
		want := map[string]int{}
		for _, name := range names {
			want[name] = 1
		}
		require.Equal(t, want, disk.open)
	}
	o := Options{FS: disk, Dir: "/data/aof", Name: "log"}
	ping := []byte("*1\r\n$4\r\nPING\r\n")
	for range 2 {
		set, err := Open(o)
		require.NoError(t, err)
		requireOpen()
		log, err := set.Append()
		require.NoError(t, err)
		requireOpen(log.Name())
		require.NoError(t, log.Write(ping, 1))
		require.NoError(t, log.Seal(disk, 0))
		requireOpen(log.Name())
		rewriteWhole(t, set, log)
		requireOpen(log.Name())
		given, err := set.Rewrite(false)
		require.NoError(t, err)
		given.Discard()
		requireOpen(log.Name())
		require.NoError(t, log.Close())
		requireOpen()
	}
}

// TestLostManifest: without its manifest a set was taken for none, and its files were overwritten.
func TestLostManifest(t *testing.T) {
	for _, name := range []string{"a.1.incr.aof", "a.7.base.rdb", "a.2.base.aof"} {
		fsys := crashfs.New("/data")
		o := Options{FS: fsys, Dir: "/data/aof", Name: "a"}
		require.NoError(t, fsys.Mkdir(o.Dir, dirPerm))
		f, _, err := fsys.Append(o.Dir+"/"+name, filePerm)
		require.NoError(t, err)
		_, err = Open(o)
		require.NoError(t, err, "a crash has left it, and it has no data")
		_, err = f.Write([]byte("data"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		text := "persistence: /data/aof/" + name + " holds 4 bytes, and there is no manifest /data/aof/a.manifest that names it: " +
			"put the manifest back, from a backup for example, or move the file away"
		_, err = Open(o)
		require.EqualError(t, err, text)
		_, err = Paths(o)
		require.EqualError(t, err, text)
		o.Name = "b"
		_, err = Open(o)
		require.NoError(t, err, "it is another set's")
	}
}

func TestPartOf(t *testing.T) {
	for name, of := range map[string]string{
		"a.aof.1.incr.aof": "a.aof", "a.12.base.rdb": "a", "a.b.3.base.aof": "a.b", "a.aof": "", "a.incr.aof": "", "a.x.incr.aof": "", "a.-1.incr.aof": "",
		"a.1.incr.rdb": "", "temp-a.1.base.rdb": "temp-a", "1.incr.aof": "",
	} {
		got, ok := PartOf(name)
		require.Equal(t, of != "", ok, name)
		if ok {
			require.Equal(t, of, got, name)
		}
	}
}

// TestFirstSetInTheMaking: until it is whole, what a crash leaves of it is in nobody's way.
func TestFirstSetInTheMaking(t *testing.T) {
	fsys := crashfs.New("/data")
	o := Options{FS: fsys, Dir: "/data/aof", Name: "a"}
	s, err := Open(o)
	require.NoError(t, err)
	r, err := s.Rewrite(false)
	require.NoError(t, err)
	_, err = s.NewLog(r).file.Write([]byte("data"))
	require.NoError(t, err)
	again, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, again.Clean())
	names, err := fsys.List(o.Dir)
	require.NoError(t, err)
	require.Empty(t, names)

	r, err = again.Rewrite(false)
	require.NoError(t, err)
	_, err = again.NewLog(r).file.Write([]byte("data"))
	require.NoError(t, err)
	require.NoError(t, r.End())
	_, err = r.Commit()
	require.NoError(t, err)
	paths, err := Paths(o)
	require.NoError(t, err)
	require.Equal(t, []string{"/data/aof/a.1.base.rdb", "/data/aof/a.1.incr.aof"}, paths)
	f, err := fsys.Open(paths[1])
	require.NoError(t, err)
	require.EqualValues(t, 4, f.Size())
}

// TestFirstSetIsFinished: whichever operation fails when a first set becomes part of the data, or comes before a crash, the next attempt and
// the next start are not refused, and a start has all of the set or nothing of it.
func TestFirstSetIsFinished(t *testing.T) {
	o := Options{Dir: "/data/aof", Name: "a"}
	begin := func(fsys *crashfs.FS) *Rewrite {
		o.FS = fsys
		s, err := Open(o)
		require.NoError(t, err)
		r, err := s.Rewrite(false)
		require.NoError(t, err)
		_, err = r.Write([]byte("base"))
		require.NoError(t, err)
		require.NoError(t, r.End())
		return r
	}
	for n, failed := 0, true; failed; n++ {
		fsys, first, operations := crashfs.New("/data"), 0, 0
		r := begin(fsys)
		failed = false
		fsys.SetFault(func(op crashfs.Op) error {
			if first == 0 {
				first = op.Number
			}
			operations++
			if op.Number == first+n {
				failed = true
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := r.Commit()
		fsys.SetFault(nil)
		require.Equal(t, failed, err != nil)
		if failed {
			r.Discard()
		} else {
			require.Greater(t, operations, 5)
		}
		for name, left := range map[string]*crashfs.FS{"it goes on": fsys, "it is killed": fsys.Clone()} {
			o.FS = left
			s, err := Open(o)
			require.NoError(t, err, "operation %d failed, %s", n, name)
			require.NoError(t, s.Clean())
			paths, err := Paths(o)
			require.NoError(t, err)
			if len(paths) > 0 {
				require.Equal(t, []string{"/data/aof/a.1.base.rdb", "/data/aof/a.1.incr.aof"}, paths)
				f, err := left.Open(paths[0])
				require.NoError(t, err)
				require.EqualValues(t, len("base"), f.Size())
			} else {
				require.True(t, failed)
			}
			_, err = begin(left).Commit()
			require.NoError(t, err)
			paths, err = Paths(o)
			require.NoError(t, err)
			require.Len(t, paths, 2)
		}
	}
}

// TestLostManifestOfAnOldFile: a file of an older server that lies in the directory is of a set whose manifest is lost.
func TestLostManifestOfAnOldFile(t *testing.T) {
	fsys := crashfs.New("/data")
	require.NoError(t, fsys.Mkdir("/data/aof", dirPerm))
	f, _, err := fsys.Append("/data/aof/a", filePerm)
	require.NoError(t, err)
	_, err = f.Write([]byte("data"))
	require.NoError(t, err)
	_, err = Open(Options{FS: fsys, Dir: "/data/aof", Name: "a"})
	require.ErrorContains(t, err, "there is no manifest")
}

// TestRewritesThatFailLeaveNoMore: each rewrite that failed had listed an increment, so that the manifest grew until no start could read it.
func TestRewritesThatFailLeaveNoMore(t *testing.T) {
	disk := crashfs.New("/data")
	o := Options{FS: disk, Dir: "/data/aof", Name: "log"}
	set, err := Open(o)
	require.NoError(t, err)
	log, err := set.Append()
	require.NoError(t, err)
	ping := []byte("*1\r\n$4\r\nPING\r\n")
	for range 3 {
		rewrite, err := set.Rewrite(true)
		require.NoError(t, err)
		rewrite.Discard()
		require.Len(t, set.Files(), 2, "one that was not needed, which the next takes")
	}
	disk.SetFault(func(op crashfs.Op) error {
		if strings.HasSuffix(op.Path, ".base.rdb") {
			return syscall.ENOSPC
		}
		return nil
	})
	for range 3 {
		_, err = set.Rewrite(true)
		require.Error(t, err)
		require.Len(t, set.Files(), 2)
	}
	disk.SetFault(nil)
	for n := 2; n < 5; n++ { // what the log has gone on in stays, even if nothing has been written to it
		rewrite, err := set.Rewrite(true)
		require.NoError(t, err)
		require.NoError(t, log.Switch(rewrite)())
		rewrite.Discard()
		require.Len(t, set.Files(), n)
		require.NotContains(t, log.Name(), "log.1.")
	}
	require.NoError(t, log.Write(ping, 1))
	rewriteWhole(t, set, log)
	require.Len(t, set.Files(), 2)
	require.NoError(t, log.Close())
}

// TestUnreadableManifestIsNotWritten: a manifest that no start would read does not take the place of one that can be read.
func TestUnreadableManifestIsNotWritten(t *testing.T) {
	disk := crashfs.New("/data")
	set, err := Open(Options{FS: disk, Dir: "/data/aof", Name: "log"})
	require.NoError(t, err)
	log, err := set.Append()
	require.NoError(t, err)
	require.NoError(t, log.Close())
	m := set.manifest.clone()
	for seq := int64(2); len(m.Encode()) <= maxManifest; seq++ {
		for range 1000 {
			m.History = append(m.History, Entry{Name: set.incrName(seq), Seq: seq, Kind: History})
		}
	}
	require.ErrorIs(t, set.replace(m), errManifestTooLong)
	require.ErrorIs(t, set.replace(&Manifest{}), errManifestEmpty)
	again, err := Open(set.o)
	require.NoError(t, err)
	require.Len(t, again.Files(), 1)
}

// TestUnnamedFiles: what is called like a part and is none is listed, and deleted with what was being made.
func TestUnnamedFiles(t *testing.T) {
	fsys := crashfs.New("/data")
	set, err := Open(Options{FS: fsys, Dir: "/data/aof", Name: "a"})
	require.NoError(t, err)
	log, err := set.Append()
	require.NoError(t, err)
	rewriteWhole(t, set, log)
	named := set.Files()
	for _, name := range []string{"a.7.base.rdb", "a.8.incr.aof", "b.8.incr.aof", "temp-a.9.base.rdb", "notes"} {
		f, err := fsys.Create(set.Path(name), filePerm)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.ElementsMatch(t, []string{"a.7.base.rdb", "a.8.incr.aof"}, set.Unnamed())
	require.NoError(t, set.Clean())
	require.Empty(t, set.Unnamed())
	left, err := fsys.List(set.o.Dir)
	require.NoError(t, err)
	require.Subset(t, left, []string{"b.8.incr.aof", "notes"})
	require.NotContains(t, left, "temp-a.9.base.rdb")
	require.Equal(t, named, set.Files())
}

// rewriteWhole has a new base take the place of what there is.
func rewriteWhole(t *testing.T, set *Set, log *Log) {
	t.Helper()
	rewrite, err := set.Rewrite(true)
	require.NoError(t, err)
	require.NoError(t, log.Switch(rewrite)())
	require.NoError(t, rewrite.End())
	_, err = rewrite.Commit()
	require.NoError(t, err)
	require.NoError(t, set.Clean())
}
