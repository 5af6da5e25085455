package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence"
	"headgate/server/config"
)

// failingFS fails its n-th operation, counted from 1; 0 fails none.
type failingFS struct {
	persistence.OS
	failAt, done int
}

var errDisk = errors.New("no space left on device")

func (f *failingFS) step() error {
	if f.done++; f.done == f.failAt {
		return errDisk
	}
	return nil
}

func (f *failingFS) CreateLarge(name string, perm fs.FileMode) (persistence.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.OS.CreateLarge(name, perm)
	return &failingFile{file, f}, err
}

func (f *failingFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.OS.Rename(from, to)
}

type failingFile struct {
	persistence.File
	fs *failingFS
}

func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.fs.step(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	return f.File.Sync()
}

// newSaver is a server with save points on a disk that can fail.
func newSaver(t *testing.T, dir string, disk *failingFS) *workerClient {
	cfg := config.Default()
	cfg.Dir = dir
	return newWorkerClientOf(t, New(config.NewLive(cfg), Options{FS: disk}))
}

// TestSavingWithEachFileOperationFailing: whatever fails, the old file stays, writes are refused until a snapshot succeeds, and reads
// go on.
func TestSavingWithEachFileOperationFailing(t *testing.T) {
	for failAt := 1; ; failAt++ {
		dir := t.TempDir()
		name := filepath.Join(dir, "dump.rdb")
		disk := &failingFS{}
		w := newSaver(t, dir, disk)
		w.run(encodeCommand("SET", "a", "1"))
		require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SAVE"))))
		old, err := os.ReadFile(name)
		require.NoError(t, err)
		w.run(encodeCommand("SET", "a", "2"))
		for i := range 3000 {
			w.run(encodeCommand("SET", fmt.Sprint("key:", i), fmt.Sprint("a value that is long enough for several writes ", i)))
		}
		*disk = failingFS{failAt: failAt}
		require.Equal(t, "+Background saving started\r\n", string(w.run(encodeCommand("BGSAVE"))))
		w.srv.Lock()
		w.srv.finishSnapshot()
		w.srv.Unlock()
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		if disk.done < failAt {
			require.False(t, w.srv.saving.failed)
			require.Greater(t, failAt, 5, "operations of a snapshot")
			return
		}
		what := fmt.Sprintf("operation %d fails", failAt)
		require.True(t, w.srv.saving.failed, what)
		require.True(t, bytes.Equal(old, got), what)
		_, err = os.Stat(name + persistence.TempSuffix)
		require.ErrorIs(t, err, fs.ErrNotExist, what)
		require.Contains(t, string(w.run(encodeCommand("SET", "b", "1"))), "-MISCONF ")
		require.Contains(t, string(w.run(encodeCommand("PING"))), "-MISCONF ")
		require.Equal(t, "$1\r\n2\r\n", string(w.run(encodeCommand("GET", "a"))))
		require.Contains(t, string(w.run(encodeCommand("EVAL", "return redis.call('SET', 'b', 1)", "0"))), "MISCONF")
		require.Contains(t, string(w.run(encodeCommand("INFO", "persistence"))), "rdb_last_bgsave_status:err")
		require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SAVE"))))
		require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SET", "b", "1"))))
		require.Contains(t, string(w.run(encodeCommand("INFO", "persistence"))), "rdb_last_bgsave_status:ok")
	}
}

// TestSaveThatFails tells who asked, and has no writes refused.
func TestSaveThatFails(t *testing.T) {
	w := newSaver(t, t.TempDir(), &failingFS{failAt: 2})
	require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SET", "a", "1"))))
	require.Equal(t, "-ERR\r\n", string(w.run(encodeCommand("SAVE"))))
	require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SET", "a", "2"))))
	require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SAVE"))))
}

// brokenReader gives some bytes and then fails.
type brokenReader struct{ io.Reader }

func (r brokenReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		err = errDisk
	}
	return n, err
}

// TestPartialDataAreNotSaved: after a snapshot was loaded in part, nothing may replace the file.
func TestPartialDataAreNotSaved(t *testing.T) {
	dir := t.TempDir()
	w := newSaver(t, dir, &failingFS{})
	w.run(encodeCommand("SET", "a", "1"))
	require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SAVE"))))
	file, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	other := newSaver(t, dir, &failingFS{})
	_, err = other.srv.loadRDB(brokenReader{bytes.NewReader(file[:len(file)-9])}, loadOptions{})
	require.ErrorIs(t, err, errDisk)
	require.Equal(t, "-"+errNotWhole+"\r\n", string(other.run(encodeCommand("SAVE"))))
	require.Equal(t, "-"+errNotWhole+"\r\n", string(other.run(encodeCommand("BGSAVE"))))
	require.NoError(t, other.srv.Shutdown(0))
	other.srv.endSaving()
	now, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	require.Equal(t, file, now)
}

// TestConfigSetWhileASnapshotIsLoaded: what is set meanwhile holds afterwards.
func TestConfigSetWhileASnapshotIsLoaded(t *testing.T) {
	dir := t.TempDir()
	w := newSaver(t, dir, &failingFS{})
	for i := range 30_000 {
		w.run(encodeCommand("SET", fmt.Sprint("key:", i), fmt.Sprint("value ", i)))
	}
	require.Equal(t, "+OK\r\n", string(w.run(encodeCommand("SAVE"))))
	file, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	s := newSaver(t, dir, &failingFS{}).srv
	told := false
	_, err = s.loadRDB(bytes.NewReader(file), loadOptions{progress: func(int64) {
		told = true
		require.NoError(t, s.config.Set([]config.Pair{{Name: "slowlog-log-slower-than", Value: "5"}}, true))
	}})
	require.NoError(t, err)
	require.True(t, told)
	require.EqualValues(t, 5*time.Microsecond, s.slowlog.from)
}

// TestSavePointsWaitForTheData: no save point has a snapshot made of the part of the append-only file that has been loaded so far.
func TestSavePointsWaitForTheData(t *testing.T) {
	w := newSaver(t, t.TempDir(), &failingFS{})
	s := w.srv
	w.run(encodeCommand("SET", "a", "1"))
	s.Lock()
	defer s.Unlock()
	due := s.saving.lastMono + int64(24*time.Hour)
	s.gate.refuse(gateLoading, errLoading)
	s.savePoints(due)
	require.Nil(t, s.snapshot)
	s.gate.refuse(gateLoading, "")
	s.savePoints(due)
	require.NotNil(t, s.snapshot)
	s.finishSnapshot()
}

// TestUnfinishedSnapshotIsDeleted: what a killed server leaves of a snapshot is in nobody's way.
func TestUnfinishedSnapshotIsDeleted(t *testing.T) {
	dir := t.TempDir()
	w := newSaver(t, dir, &failingFS{})
	unfinished := filepath.Join(dir, "dump.rdb"+persistence.TempSuffix)
	require.NoError(t, os.WriteFile(unfinished, []byte("REDIS"), 0o600))
	w.srv.removeUnfinished()
	require.NoFileExists(t, unfinished)
	w.srv.removeUnfinished()
}

// TestSnapshotPace asks at made-up times whether a slice may begin.
func TestSnapshotPace(t *testing.T) {
	var p snapshotPace
	at, served := time.Unix(1000, 0), uint64(1)
	expect := func(what string, after time.Duration, commands uint64, ok bool, again time.Duration) {
		t.Helper()
		at, served = at.Add(after), served+commands
		gotOK, gotAgain := p.ask(served, at)
		require.Equal(t, ok, gotOK, what)
		require.Equal(t, again, gotAgain, what)
	}
	expect("the first slice does not wait", 0, 1, true, snapshotPause)
	expect("in the pause, even with nobody there", snapshotPause/4, 0, false, snapshotPause*3/4)
	expect("after it clients come first", snapshotPause*3/4, 5, false, 0)
	expect("until a moment without any", time.Microsecond, 0, true, snapshotPause)
	expect("clients come first", snapshotPause+snapshotPatience/2, 5, false, 0)
	expect("for so long", snapshotPatience/2, 5, true, snapshotPause)
	expect("a pause", snapshotPause/2, 0, false, snapshotPause/2)
	expect("everybody has gone", snapshotCalm, 0, true, 0)
	expect("so there are no pauses", 0, 0, true, 0)
	expect("until somebody comes", 0, 1, true, snapshotPause)
	expect("and then there are", time.Microsecond, 0, false, snapshotPause-time.Microsecond)
}
