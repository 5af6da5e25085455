package journal_test

import (
	"bytes"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// startReplacing starts a server with an append-only file, in which k is old, and loads a snapshot beside its data, in which k is new.
func startReplacing(t *testing.T) (*servertest.AOFServer, *crashfs.FS, *journal.Replacement) {
	t.Helper()
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "new"))
	require.Equal(t, "+OK\r\n", w.Words("SAVE"))
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "old"))
	snapshot, err := disk.ReadFile("/data/dump.rdb")
	require.NoError(t, err)
	loaded, err := w.Srv.LoadBeside(bytes.NewReader(snapshot), nil)
	require.NoError(t, err)
	return w, disk, loaded
}

// TestReplacedDataAreLogged: the append-only file is begun anew with the new data at once, though no background work asks for it.
func TestReplacedDataAreLogged(t *testing.T) {
	w, disk, loaded := startReplacing(t)
	require.NoError(t, w.Srv.Replace(loaded, func() bool { return true }, func() {}))
	loaded.Discard()
	require.Eventually(t, w.Logging, servertest.WaitLong, servertest.WaitStep)
	require.Equal(t, "$3\r\nnew\r\n", w.Words("GET", "k"))
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "v"))
	w.Settle(t)
	state := servertest.Digest(w.Srv)
	w.Kill()
	now := int64(servertest.WallAtStart)
	again, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer again.Kill()
	require.Equal(t, state, servertest.Digest(again.Srv))
}

// TestReplaceWaits: data are not replaced while nothing may change keys, as during CLIENT PAUSE or a long script, but as soon as that is over;
// unless they are not wanted any more.
func TestReplaceWaits(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		w, _, loaded := startReplacing(t)
		replaced, stop := waitsToReplace(t, w, loaded)
		if wanted {
			w.Srv.Lock()
			w.Srv.Gate.Set(command.GatePaused, false)
			w.Srv.Unlock()
		} else {
			stop()
		}
		err := <-replaced
		loaded.Discard()
		w.Srv.Lock()
		w.Srv.Gate.Set(command.GatePaused, false)
		w.Srv.Unlock()
		want := "$3\r\nnew\r\n"
		if wanted {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, journal.ErrReplaced)
			want = "$3\r\nold\r\n"
		}
		require.Equal(t, want, w.Words("GET", "k"))
		w.Settle(t)
		w.Kill()
	}
}

// waitsToReplace begins to replace data while commands are paused, and returns when that waits. stop has it be wanted no more.
func waitsToReplace(t *testing.T, w *servertest.AOFServer, loaded *journal.Replacement) (replaced chan error, stop func()) {
	t.Helper()
	w.Srv.Lock()
	w.Srv.Gate.Set(command.GatePaused, true)
	w.Srv.Unlock()
	return triesToReplace(t, w, loaded)
}

// triesToReplace has Replace try again and again. stop makes it give up.
func triesToReplace(t *testing.T, w *servertest.AOFServer, loaded *journal.Replacement) (replaced chan error, stop func()) {
	t.Helper()
	asked, wants := 0, true // the executor's lock guards both
	replaced = make(chan error, 1)
	go func() {
		replaced <- w.Srv.Replace(loaded, func() bool { asked++; return wants }, func() {})
	}()
	require.Eventually(t, func() bool {
		w.Srv.Lock()
		defer w.Srv.Unlock()
		return asked > 5 // so it waits, and looks again and again
	}, servertest.WaitLong, servertest.WaitStep)
	require.Empty(t, replaced)
	return replaced, func() {
		w.Srv.Lock()
		defer w.Srv.Unlock()
		wants = false
	}
}

// TestEndWhileReplaceWaits: a server that was told to end while data waited to be replaced went on, as it had closed its append-only file for them.
func TestEndWhileReplaceWaits(t *testing.T) {
	w, disk, loaded := startReplacing(t)
	defer loaded.Discard()
	replaced, stop := waitsToReplace(t, w, loaded)
	require.True(t, w.Logging())
	require.NoError(t, w.Srv.Shutdown(0))
	require.True(t, w.Srv.IsStopping())
	stop() // as a replica does for a server that ends
	require.ErrorIs(t, <-replaced, journal.ErrReplaced)
	requireRestart(t, w, disk)
}

// TestReplaceDoesNotWaitForARewrite that has begun behind its back: it asks whether it is still wanted all the while.
func TestReplaceDoesNotWaitForARewrite(t *testing.T) {
	w, disk, loaded := startReplacing(t)
	defer loaded.Discard()
	defer w.Srv.WorkOnFiles()()
	replaced, stop := triesToReplace(t, w, loaded)
	require.True(t, w.Logging())
	stop()
	require.ErrorIs(t, <-replaced, journal.ErrReplaced)
	requireRestart(t, w, disk)
}

// TestDataThatCannotReplace, since a library of functions among them does not load, leave the append-only file as it is.
func TestDataThatCannotReplace(t *testing.T) {
	w, disk, loaded := startReplacing(t)
	defer loaded.Discard()
	loaded.AddLibrary("no library")
	require.ErrorContains(t, w.Srv.Replace(loaded, func() bool { return true }, func() {}), "the functions stay as they were")
	require.True(t, w.Logging())
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "v"))
	require.Zero(t, w.Srv.AOF.Rewriter.Rewrites)
	requireRestart(t, w, disk)
}

// TestReplaceWhileTheFileBegins: data that are replaced again, while the file of the first is only being begun, have a file that is no failed one:
// commands that write were refused, and so a primary's stream waited, until all of the next base was written.
func TestReplaceWhileTheFileBegins(t *testing.T) {
	w, disk, loaded := startReplacing(t)
	snapshot, err := disk.ReadFile("/data/dump.rdb")
	require.NoError(t, err)
	wanted := func() bool { return true }
	require.NoError(t, w.Srv.Replace(loaded, wanted, func() {}))
	loaded.Discard()
	require.Eventually(t, w.Logging, servertest.WaitLong, servertest.WaitStep)
	again, err := w.Srv.LoadBeside(bytes.NewReader(snapshot), nil)
	require.NoError(t, err)
	require.NoError(t, w.Srv.Replace(again, wanted, func() {}))
	again.Discard()
	require.Eventually(t, w.Logging, servertest.WaitLong, servertest.WaitStep)
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "v"))
	w.Settle(t)
	require.NoError(t, w.Srv.AOF.Rewriter.Err)
	requireRestart(t, w, disk)
}

// TestDataThatCannotReplaceWhileTheFileBegins have it begun once more: for their sake it was given up.
func TestDataThatCannotReplaceWhileTheFileBegins(t *testing.T) {
	w, disk := startUnlogged(t)
	require.Equal(t, "+OK\r\n", w.Words("SAVE"))
	beginFile(t, w)
	snapshot, err := disk.ReadFile("/data/dump.rdb")
	require.NoError(t, err)
	loaded, err := w.Srv.LoadBeside(bytes.NewReader(snapshot), nil)
	require.NoError(t, err)
	defer loaded.Discard()
	loaded.AddLibrary("no library")
	require.Error(t, w.Srv.Replace(loaded, func() bool { return true }, func() {}))
	require.Eventually(t, w.Logging, servertest.WaitLong, servertest.WaitStep)
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "v"))
	w.Settle(t)
	requireRestart(t, w, disk)
}
