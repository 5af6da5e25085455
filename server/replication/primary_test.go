package replication_test

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate/persistence/rdb"
	"headgate/server/replication"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// fakePrimary sends what a test has it send, whatever it is asked, and closes the connection.
type fakePrimary struct {
	t       *testing.T
	ln      net.Listener
	address replication.Address
}

func newFakePrimary(t *testing.T) *fakePrimary {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return &fakePrimary{t, ln, replication.Address{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port}}
}

// serve sends bytes over the next connection, and returns what the replica has sent when that has ended.
func (p *fakePrimary) serve(script []byte) <-chan string {
	heard := make(chan string, 1)
	go func() {
		conn, err := p.ln.Accept()
		if err != nil {
			heard <- err.Error()
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = conn.Write(script)
		_ = conn.(*net.TCPConn).CloseWrite()
		all, _ := io.ReadAll(bufio.NewReader(conn))
		heard <- string(all)
	}()
	return heard
}

// attempt follows the primary over one connection on which it sends a script.
func (p *fakePrimary) attempt(w *servertest.WorkerClient, script string) (heard string, err error) {
	answer := p.serve([]byte(script))
	err = w.Srv.Replica.Attempt(p.address)
	return <-answer, err
}

// id is a history's name.
var id = strings.Repeat("0123456789abcdef", 3)[:40]

// handshake is how a primary answers up to PSYNC.
const handshake = "+PONG\r\n+OK\r\n+OK\r\n"

// snapshot is one of two databases.
func snapshot(t *testing.T) []byte {
	e := rdb.NewEncoder(false)
	e.Begin()
	e.Aux("redis-ver", "7.0.15")
	e.Aux("repl-stream-db", "2")
	e.Database(0)
	for _, name := range []string{"a", "b", "c"} {
		e.Key([]byte(name), 0)
		e.Text([]byte("value of " + name))
	}
	e.Database(2)
	e.Key([]byte("expired"), 1)
	e.Int(7)
	e.EndFile()
	require.NoError(t, e.Err())
	body := e.Take(nil)
	return rdb.AppendTrailer(body, rdb.UpdateCRC(0, body))
}

// command is one as a primary sends it.
func command(words ...string) string { return string(servertest.EncodeCommand(words...)) }

// keys is what a server holds in the databases that these tests use.
func keys(w *servertest.WorkerClient) map[string]string {
	all := map[string]string{}
	for _, db := range []string{"0", "2"} {
		w.Ask("SELECT", db)
		names, _ := servertest.PlainReply(w.Ask("KEYS", "*"))
		for _, name := range strings.Fields(strings.Trim(names, "[]")) {
			all[db+"/"+name], _ = servertest.PlainReply(w.Ask("GET", name))
		}
	}
	w.Ask("SELECT", "0")
	return all
}

// asked finds the offset from which a replica has asked for the stream.
var asked = regexp.MustCompile(`PSYNC\r\n\$\d+\r\n([^\r]+)\r\n\$\d+\r\n(-?\d+)\r\n`)
