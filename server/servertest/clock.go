package servertest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/netpoll"
	"headgate/store"

	"github.com/stretchr/testify/require"
)

// ClockClient is a worker's client on a server whose clock stands where the test puts it. Its replies are in one line.
type ClockClient struct {
	*WorkerClient
	Now int64 // ns
}

// clockStart is where a ClockClient's clock begins: a Saturday, 2026-11-21 13:45:10.000 UTC.
const clockStart = 1_795_268_710_000 * 1e6

// NewClockClient returns a client of a server with the usual configuration, whose clock begins on 2026-11-21.
func NewClockClient(t testing.TB) *ClockClient {
	w := &ClockClient{Now: clockStart}
	s := server.New(config.NewLive(Unsaved()), server.Options{Clock: command.NewClock(func() (wall, mono int64) { return w.Now, w.Now })})
	conn := &netpoll.Conn{Remote: "127.0.0.1:1", Local: "127.0.0.1:2"}
	w.WorkerClient = &WorkerClient{T: t, Srv: s, Worker: s.NewWorker(), Conn: conn, Ready: []*netpoll.Conn{conn}}
	w.Worker.Opened(conn)
	t.Cleanup(func() {
		w.Worker.Closed(conn)
		s.Keys.Close()
	})
	return w
}

// Ask runs a command and returns its reply in one line: an array's elements between brackets, nil for null.
func (w *ClockClient) Ask(words ...string) string {
	text, rest := PlainReply(string(w.Run(EncodeCommand(words...))))
	require.Empty(w.T, rest, "%q", words)
	return text
}

// Call is Ask for words between spaces; ~ stands for a space within a word.
func (w *ClockClient) Call(line string) string {
	words := strings.Fields(line)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "~", " ")
	}
	return w.Ask(words...)
}

// Converse makes the calls, one a line, and compares the replies: "call | reply", where +n before the call lets n ms pass.
func Converse(t *testing.T, w *ClockClient, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		call, want, found := strings.Cut(line, "|")
		require.True(t, found, line)
		if call[0] == '+' {
			var ms float64
			_, err := fmt.Sscan(call[1:], &ms)
			require.NoError(t, err)
			w.Now += int64(ms * 1e6)
			_, call, _ = strings.Cut(call, " ")
		}
		require.Equal(t, strings.TrimSpace(want), w.Call(call), line)
	}
}

// Contents lists all keys with their values and expiry times.
func (w *ClockClient) Contents() []string {
	var list []string
	for _, name := range strings.Fields(strings.Trim(w.Call("KEYS *"), "[]")) {
		read := map[string]string{"string": "GET " + name, "hash": "HGETALL " + name, "zset": "ZRANGE " + name + " 0 -1 WITHSCORES"}[w.Call("TYPE "+name)]
		list = append(list, name+" "+w.Call(read)+" "+w.Call("PEXPIRETIME "+name))
	}
	slices.Sort(list)
	return list
}

// Elements is how many entries a key has, 0 for none.
func (w *ClockClient) Elements(key string) (n int) {
	e, found := w.Srv.Keys.DB(0).Look(w.Srv.Keys.Key([]byte(key)), w.Now/1e6)
	if !found {
		return 0
	}
	switch e.Kind() {
	case store.KindHash:
		n, _ = strconv.Atoi(w.Call("HLEN " + key))
	case store.KindZSet:
		n, _ = strconv.Atoi(w.Call("ZCARD " + key))
	default:
		n = 1
	}
	return n
}

// Uses is the logarithmic counter of a key's uses, which maxmemory-policy's LFU goes by.
func (w *ClockClient) Uses(name string) int {
	e, ok := w.Srv.Keys.DB(0).Peek(w.Srv.Keys.Key([]byte(name)))
	require.True(w.T, ok)
	return e.Uses()
}

// SetShort has no memory be left, as maxmemory has it, or enough.
func (w *ClockClient) SetShort(short bool) {
	m := &w.Srv.Memory
	m.Max, m.Evict, m.Slice = 0, false, exec.Tenacity(exec.FullTenacity)
	w.Srv.Gate.Set(command.GateMemory, short)
	w.Srv.Gate.Set(command.GateShort, false)
	if short {
		m.Max = 1
	}
}

// HandClock is a time that tests move: ns since the Unix epoch.
type HandClock struct{ Ns int64 }

// HandStart is when a HandClock begins, in ns since the Unix epoch.
const HandStart = int64(1_790_000_000) * int64(time.Second)

// NewHandClockClient returns a client of a server with this configuration, and the clock of both. Replies are as they are sent.
func NewHandClockClient(t *testing.T, cfg *config.Config) (*WorkerClient, *HandClock) {
	h := &HandClock{}
	return NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{Clock: h.clock()})), h
}

func (h *HandClock) clock() *command.Clock {
	h.Ns = HandStart
	return command.NewClock(func() (int64, int64) { return h.Ns, h.Ns })
}
