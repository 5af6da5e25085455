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
		w.Srv.Lock()
		w.Srv.Gate.Set(command.GatePaused, true)
		w.Srv.Unlock()
		asked, wants := 0, true // the executor's lock guards both
		replaced := make(chan error, 1)
		go func() {
			replaced <- w.Srv.Replace(loaded, func() bool { asked++; return wants }, func() {})
		}()
		require.Eventually(t, func() bool {
			w.Srv.Lock()
			defer w.Srv.Unlock()
			return asked > 5 // so it waits, and looks again and again
		}, servertest.WaitLong, servertest.WaitStep)
		require.Empty(t, replaced)
		w.Srv.Lock()
		if wants = wanted; wanted {
			w.Srv.Gate.Set(command.GatePaused, false)
		}
		w.Srv.Unlock()
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
