package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// longNames are the arguments of an MSET with so many names that need addresses of their own.
func longNames(n int) []string {
	words := []string{"MSET"}
	for i := range n {
		words = append(words, longName(i), "v")
	}
	return words
}

func longName(i int) string { return strings.Repeat("k", 33_000) + fmt.Sprint(i) }

// ask is WorkerClient.Ask for a command of any length.
func ask(w *servertest.WorkerClient, words ...string) string {
	_, _, replies := w.DrainTurns(servertest.EncodeCommand(words...))
	return string(replies)
}

// keptBack is more than what the store keeps back of its addresses.
const keptBack = 70

// TestAddressesRunOut has little room for names that need a whole address: what would need more is refused, at once and whole.
func TestAddressesRunOut(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	db := w.Srv.Keys.DB(0)
	oom := "-" + servertest.WireOOM
	ask(w, "SET", "small", "v")
	ask(w, "SADD", "set", "a", "b")
	db.TakeAddresses(keptBack + 250)
	require.Equal(t, "+OK\r\n", ask(w, longNames(20)...))
	require.Contains(t, ask(w, longNames(300)...), oom)
	require.Equal(t, ":22\r\n", ask(w, "DBSIZE"))

	ask(w, "MULTI")
	for i := range 300 {
		ask(w, "SET", longName(i), "v")
	}
	require.Contains(t, ask(w, "EXEC"), "-EXECABORT Transaction discarded because of: "+servertest.WireOOM)
	require.Equal(t, ":22\r\n", ask(w, "DBSIZE"))

	require.Contains(t, ask(w, "EVAL", "for i = 1, 400 do redis.call('SET', string.rep('k', 33000) .. i, 'v') end", "0"), oom)
	for i := range 300 { // until the last of them
		ask(w, "SET", longName(1000+i), "v")
	}
	for _, words := range [][]string{
		{"SET", longName(500), "v"}, {"RENAME", "small", longName(500)}, {"RENAMENX", "small", longName(500)},
		{"SMOVE", "set", longName(500), "a"}, {"COPY", "small", longName(500)}, {"MOVE", longName(2), "1"}, {"LPUSH", longName(500), "a"},
		{"RESTORE", longName(500), "0", "\x00\x01v\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"CL.THROTTLE", longName(500), "1", "2", "60"}, {"EVAL", "return redis.call('CL.THROTTLE', KEYS[1], 1, 2, 60)", "1", longName(500)},
	} {
		require.Contains(t, ask(w, words...), servertest.WireOOM, "%.20s", words)
	}
	require.Equal(t, "$1\r\nv\r\n", ask(w, "GET", "small"))
	require.Equal(t, ":1\r\n", ask(w, "SREM", "set", "a"))
	require.Equal(t, ":2\r\n", ask(w, "DEL", longName(2), longName(3)))
	require.Equal(t, "+OK\r\n", ask(w, "SET", longName(500), "v"))
	require.Equal(t, "+OK\r\n", ask(w, "FLUSHALL"))
	require.Equal(t, "+OK\r\n", ask(w, longNames(300)...))
}

// TestManyAddressesAtOnce: a command that alone may need more than there are is refused though nothing was scarce before.
func TestManyAddressesAtOnce(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Srv.Keys.DB(0).TakeAddresses(5000)
	require.False(t, w.Srv.Keys.Crowded())
	name := []byte(longName(1))
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
	c := command.Ctx{
		Core: w.Srv.Core, Turn: &command.Turn{}, Client: &command.Client{Conn: conn}, Cmd: w.Srv.Commands.Lookup([]byte("MSET")),
		DB: w.Srv.Keys.DB(0), Cfg: w.Srv.Config.Get(), Reply: &conn.Out, Args: [][]byte{[]byte("MSET")},
	}
	for range 5000 { // different names would be as long
		c.Args = append(c.Args, name, []byte("v"))
	}
	w.Srv.Lock()
	w.Srv.Executor.Run(&c, false)
	w.Srv.Unlock()
	require.Contains(t, string(conn.Out.Bytes()), servertest.WireOOM)
	require.Equal(t, ":0\r\n", ask(w, "DBSIZE"))
}

// TestAddressesRunOutInALog: a command that is replayed says why it cannot be.
func TestAddressesRunOutInALog(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Srv.Keys.DB(0).TakeAddresses(keptBack + 2)
	why := map[int]string{}
	r := w.Srv.NewReplay()
	w.Srv.Lock()
	defer w.Srv.Unlock()
	for i := range 10 {
		r.Add([][]byte{[]byte("SET"), []byte(longName(i)), []byte("v")})
	}
	require.NoError(t, r.Run(1, func(u exec.Unreplayed) error {
		why[u.Index] = u.Why
		return nil
	}))
	require.NotContains(t, why, 0)
	require.Contains(t, why[9], servertest.WireOOM)
}

// TestAddressesRunOutOfAPrimary: what cannot be kept is refused to a primary, too.
func TestAddressesRunOutOfAPrimary(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Srv.Keys.DB(0).TakeAddresses(keptBack + 2)
	w.Srv.Lock()
	f := w.Srv.NewFollower("primary", "here", 0, 0)
	w.Srv.Unlock()
	defer f.Release()
	for _, input := range [][]byte{servertest.EncodeCommand(longNames(40)...), servertest.EncodeCommand("SET", "k", "v")} {
		for len(input) > 0 {
			n := copy(f.Space(), input)
			f.Take(n)
			input = input[n:]
			hold, err := f.Run()
			require.NoError(t, err)
			require.Equal(t, exec.HoldNone, hold)
		}
	}
	require.Contains(t, ask(w, "INFO", "errorstats"), "errorstat_OOM:count=1")
	require.Equal(t, ":1\r\n", ask(w, "DBSIZE"))
}
