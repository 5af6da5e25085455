package replication_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"headgate/persistence/rdb"
	"headgate/server"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// startOn returns a server that has loaded a snapshot, which says where in a history of changes it is.
func startOn(t *testing.T, dir string, change func(*config.Config)) *servertest.WorkerClient {
	cfg := servertest.Unsaved()
	cfg.Dir = dir
	if change != nil {
		change(cfg)
	}
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{}))
	w.Srv.Lock()
	w.Srv.BeginLoading()
	w.Srv.Unlock()
	require.NoError(t, w.Srv.LoadSnapshot())
	w.Srv.Lock()
	w.Srv.EndLoading()
	w.Srv.Unlock()
	return w
}

// historyFile is a snapshot without keys, which is at an offset of a history.
func historyFile(t *testing.T, offset int) []byte {
	e := rdb.NewEncoder(false)
	e.Begin()
	e.Aux("repl-stream-db", "0")
	e.Aux("repl-id", id)
	e.Aux("repl-offset", strconv.Itoa(offset))
	e.EndFile()
	require.NoError(t, e.Err())
	body := e.Take(nil)
	return rdb.AppendTrailer(body, rdb.UpdateCRC(0, body))
}

// TestPrimaryThatComesBackAsAReplica: what a killed primary asks for is the stream behind its snapshot, in which nothing said for which
// database it is if clients had used that one before; it ran in database 0.
func TestPrimaryThatComesBackAsAReplica(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "dump.rdb")
	require.NoError(t, os.WriteFile(name, historyFile(t, 1000), 0o600))
	primary := startOn(t, dir, nil)
	primary.Ask("SELECT", "2")
	require.Equal(t, "+OK\r\n", primary.Ask("SET", "a", "1"))
	require.Equal(t, "+OK\r\n", primary.Ask("SAVE"))
	offset := primary.Srv.Replica.Primary.Status().To
	require.Equal(t, ":2\r\n", primary.Ask("INCR", "a"))
	require.Equal(t, "+OK\r\n", primary.Ask("SET", "b", "1"))
	stream := primary.Srv.Replica.Primary.Behind(offset)
	require.Contains(t, stream, command("INCR", "a"))

	next := newFakePrimary(t)
	back := startOn(t, dir, func(cfg *config.Config) { cfg.ReplicaOf = config.Address(next.address) })
	heard, err := next.attempt(back, handshake+"+CONTINUE\r\n"+stream)
	require.Error(t, err)
	require.Equal(t, strconv.FormatInt(offset+1, 10), asked.FindStringSubmatch(heard)[2])
	require.Equal(t, map[string]string{"2/a": "2", "2/b": "1"}, keys(back))
}

// TestChangeInNoStream: what a transaction has changed before it made the server a replica is in no stream, so that no replica goes on
// behind it when the server is a primary again.
func TestChangeInNoStream(t *testing.T) {
	for _, within := range []bool{true, false} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "dump.rdb"), historyFile(t, 1000), 0o600))
		w := startOn(t, dir, nil)
		require.Equal(t, "+OK\r\n", w.Ask("SET", "a", "1"))
		before := w.Srv.Replica.Status()
		if within {
			require.Equal(t, "+OK\r\n", w.Ask("MULTI"))
			require.Equal(t, "+QUEUED\r\n", w.Ask("SET", "k", "v"))
			require.Equal(t, "+QUEUED\r\n", w.Ask("REPLICAOF", "127.0.0.1", "1"))
			require.Equal(t, "*2\r\n+OK\r\n+OK\r\n", w.Ask("EXEC"))
		} else {
			require.Equal(t, "+OK\r\n", w.Ask("SET", "k", "v"))
			require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "127.0.0.1", "1"))
		}
		require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "NO", "ONE"))
		after := w.Srv.Replica.Status()
		require.NotEqual(t, before.ID, after.ID)
		require.Equal(t, !within, after.ID2 == before.ID)
		require.Equal(t, !within, w.Srv.Replica.Primary.Status().Active)
		require.Equal(t, "$1\r\nv\r\n", w.Ask("GET", "k"))
	}
}
