package journal_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate/persistence"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestSavingWithEachFileOperationFailing: whatever fails, the old file stays, writes are refused until a snapshot succeeds, and reads
// go on.
func TestSavingWithEachFileOperationFailing(t *testing.T) {
	for failAt := 1; ; failAt++ {
		dir := t.TempDir()
		name := filepath.Join(dir, "dump.rdb")
		disk := &servertest.FailingFS{}
		w := servertest.NewSaver(t, dir, disk)
		w.Run(servertest.EncodeCommand("SET", "a", "1"))
		require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SAVE"))))
		old, err := os.ReadFile(name)
		require.NoError(t, err)
		w.Run(servertest.EncodeCommand("SET", "a", "2"))
		for i := range 3000 {
			w.Run(servertest.EncodeCommand("SET", fmt.Sprint("key:", i), fmt.Sprint("a value that is long enough for several writes ", i)))
		}
		*disk = servertest.FailingFS{FailAt: failAt}
		require.Equal(t, "+Background saving started\r\n", string(w.Run(servertest.EncodeCommand("BGSAVE"))))
		w.Srv.Lock()
		w.Srv.FinishSnapshot()
		w.Srv.Unlock()
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		if disk.Done < failAt {
			require.False(t, w.Srv.Saving.Failed)
			require.Greater(t, failAt, 5, "operations of a snapshot")
			return
		}
		what := fmt.Sprintf("operation %d fails", failAt)
		require.True(t, w.Srv.Saving.Failed, what)
		require.True(t, bytes.Equal(old, got), what)
		_, err = os.Stat(name + persistence.TempSuffix)
		require.ErrorIs(t, err, fs.ErrNotExist, what)
		require.Contains(t, string(w.Run(servertest.EncodeCommand("SET", "b", "1"))), "-MISCONF ")
		require.Contains(t, string(w.Run(servertest.EncodeCommand("PING"))), "-MISCONF ")
		require.Equal(t, "$1\r\n2\r\n", string(w.Run(servertest.EncodeCommand("GET", "a"))))
		require.Contains(t, string(w.Run(servertest.EncodeCommand("EVAL", "return redis.call('SET', 'b', 1)", "0"))), "MISCONF")
		require.Contains(t, string(w.Run(servertest.EncodeCommand("INFO", "persistence"))), "rdb_last_bgsave_status:err")
		require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SAVE"))))
		require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SET", "b", "1"))))
		require.Contains(t, string(w.Run(servertest.EncodeCommand("INFO", "persistence"))), "rdb_last_bgsave_status:ok")
	}
}

// TestSaveThatFails tells who asked, and has no writes refused.
func TestSaveThatFails(t *testing.T) {
	w := servertest.NewSaver(t, t.TempDir(), &servertest.FailingFS{FailAt: 2})
	require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SET", "a", "1"))))
	require.Equal(t, "-ERR\r\n", string(w.Run(servertest.EncodeCommand("SAVE"))))
	require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SET", "a", "2"))))
	require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SAVE"))))
}

// TestShutdownSaysWhyItFails: the error said only that the file could not be written.
func TestShutdownSaysWhyItFails(t *testing.T) {
	for at := 1; at <= 4; at++ {
		w := servertest.NewSaver(t, t.TempDir(), &servertest.FailingFS{FailAt: at})
		require.ErrorIs(t, w.Srv.Shutdown(0), servertest.ErrDisk, at)
	}
}

// brokenReader gives some bytes and then fails.
type brokenReader struct{ io.Reader }

func (r brokenReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		err = servertest.ErrDisk
	}
	return n, err
}

// TestPartialDataAreNotSaved: after a snapshot was loaded in part, nothing may replace the file.
func TestPartialDataAreNotSaved(t *testing.T) {
	dir := t.TempDir()
	w := servertest.NewSaver(t, dir, &servertest.FailingFS{})
	w.Run(servertest.EncodeCommand("SET", "a", "1"))
	require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SAVE"))))
	file, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	other := servertest.NewSaver(t, dir, &servertest.FailingFS{})
	err = other.Srv.LoadRDB(brokenReader{bytes.NewReader(file[:len(file)-9])}, nil)
	require.ErrorIs(t, err, servertest.ErrDisk)
	require.Equal(t, "-"+journal.ErrNotWhole+"\r\n", string(other.Run(servertest.EncodeCommand("SAVE"))))
	require.Equal(t, "-"+journal.ErrNotWhole+"\r\n", string(other.Run(servertest.EncodeCommand("BGSAVE"))))
	require.NoError(t, other.Srv.Shutdown(0))
	other.Srv.EndSaving()
	now, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	require.Equal(t, file, now)
}

// TestConfigSetWhileASnapshotIsLoaded: what is set meanwhile holds afterwards.
func TestConfigSetWhileASnapshotIsLoaded(t *testing.T) {
	dir := t.TempDir()
	w := servertest.NewSaver(t, dir, &servertest.FailingFS{})
	for i := range 30_000 {
		w.Run(servertest.EncodeCommand("SET", fmt.Sprint("key:", i), fmt.Sprint("value ", i)))
	}
	require.Equal(t, "+OK\r\n", string(w.Run(servertest.EncodeCommand("SAVE"))))
	file, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	s := servertest.NewSaver(t, dir, &servertest.FailingFS{}).Srv
	told := false
	err = s.LoadRDB(bytes.NewReader(file), func(int64) {
		told = true
		require.NoError(t, s.Config.Set([]config.Pair{{Name: "slowlog-log-slower-than", Value: "5"}}, true))
	})
	require.NoError(t, err)
	require.True(t, told)
	require.EqualValues(t, 5*time.Microsecond, s.Slowlog.From)
}

// TestSavePointsWaitForTheData: no save point has a snapshot made of the part of the append-only file that has been loaded so far.
func TestSavePointsWaitForTheData(t *testing.T) {
	w := servertest.NewSaver(t, t.TempDir(), &servertest.FailingFS{})
	s := w.Srv
	w.Run(servertest.EncodeCommand("SET", "a", "1"))
	s.Lock()
	defer s.Unlock()
	due := s.Saving.LastMono + int64(24*time.Hour)
	s.Gate.Refuse(command.GateLoading, journal.ErrLoading)
	s.SavePoints(due)
	require.Nil(t, s.Snapshot)
	s.Gate.Refuse(command.GateLoading, "")
	s.SavePoints(due)
	require.NotNil(t, s.Snapshot)
	s.FinishSnapshot()
}

// TestUnfinishedSnapshotIsDeleted: what a killed server leaves of a snapshot is in nobody's way.
func TestUnfinishedSnapshotIsDeleted(t *testing.T) {
	dir := t.TempDir()
	w := servertest.NewSaver(t, dir, &servertest.FailingFS{})
	names := []string{"dump.rdb", "replicas.rdb"}
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+persistence.TempSuffix), []byte("REDIS"), 0o600))
	}
	w.Srv.RemoveUnfinished()
	for _, name := range names {
		require.NoFileExists(t, filepath.Join(dir, name+persistence.TempSuffix))
	}
	w.Srv.RemoveUnfinished()
}

// TestOneSavePointIsEnoughToSaveAtTheEnd, and without any nothing is saved.
func TestOneSavePointIsEnoughToSaveAtTheEnd(t *testing.T) {
	for points := range 2 {
		cfg := config.Default()
		cfg.Dir = t.TempDir()
		cfg.Save = cfg.Save[:points]
		w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{}))
		w.Ask("SET", "k", "v")
		require.NoError(t, w.Srv.Shutdown(0))
		_, err := os.Stat(filepath.Join(cfg.Dir, cfg.DBFilename))
		require.Equal(t, points > 0, err == nil)
	}
}
