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

// ClockClient is a worker's client on a server whose clock stands where the test puts it.
type ClockClient struct {
	*WorkerClient
	Now int64 // ns
}

// clockStart is where a clockClient's clock begins: a Saturday, 2026-11-21 13:45:10.000 UTC.
const clockStart = 1_795_268_710_000 * 1e6

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

// Call is ask for words between spaces; ~ stands for a space within a word.
func (w *ClockClient) Call(line string) string {
	words := strings.Fields(line)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "~", " ")
	}
	return w.Ask(words...)
}

// PlainReply renders the first reply of some RESP, and returns what follows it.
func PlainReply(wire string) (text, rest string) {
	line, rest, _ := strings.Cut(wire, "\r\n")
	switch line[0] {
	case '$':
		if line == "$-1" {
			return "nil", rest
		}
		var n int
		_, _ = fmt.Sscan(line[1:], &n)
		return rest[:n], rest[n+2:]
	case '*':
		if line == "*-1" {
			return "nil", rest
		}
		var n int
		_, _ = fmt.Sscan(line[1:], &n)
		items := make([]string, n)
		for i := range items {
			items[i], rest = PlainReply(rest)
		}
		return "[" + strings.Join(items, " ") + "]", rest
	case '-':
		return line[1:], rest
	}
	return line[1:], rest
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

// Converse makes the calls, one a line, and compares the replies.
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

// HandStart is when the clocks that tests move begin, in ns.
const HandStart = int64(1_790_000_000) * int64(time.Second)

// handClock is a time that tests move.
type handClock struct{ Ns int64 }

func (h *handClock) clock() *command.Clock {
	h.Ns = HandStart
	return command.NewClock(func() (int64, int64) { return h.Ns, h.Ns })
}

// TopClient returns a client of a server whose clock is moved by hand.
func TopClient(t *testing.T, cfg *config.Config) (*WorkerClient, *handClock) {
	h := &handClock{}
	return NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{Clock: h.clock()})), h
}

// fullClient is a client of a server that may take up a little more memory than it does without keys.
type fullClient struct {
	*ClockClient
	Max uint64
}

const EvictionRoom = 2 << 20

func NewFullClient(t *testing.T, policy string) *fullClient {
	w := &fullClient{ClockClient: NewClockClient(t)}
	w.Call("SET first v")
	w.Call("DEL first")
	w.Srv.WatchMemory()
	w.Max = w.Srv.UsedMemory() + EvictionRoom
	require.Equal(t, "OK", w.Call(fmt.Sprintf("CONFIG SET maxmemory %d maxmemory-policy %s maxmemory-eviction-tenacity 100", w.Max, policy)))
	return w
}

// Set sets a key to 100 bytes, and requires that memory is kept within bounds.
func (w *fullClient) Set(key string, more ...string) string {
	reply := w.Ask(append([]string{"SET", key, strings.Repeat("x", 100)}, more...)...)
	require.LessOrEqual(w.T, w.Srv.UsedMemory(), w.Max+64<<10)
	return reply
}

func (w *fullClient) Evicted() uint64 { return w.Srv.Keys.Stats().Evicted }

const WireOOM = "OOM command not allowed when used memory > 'maxmemory'."

// SetShort has no memory be left, or enough.
func (w *ClockClient) SetShort(short bool) {
	m := &w.Srv.Memory
	m.Max, m.Evict, m.Slice = 0, false, exec.Tenacity(exec.FullTenacity)
	w.Srv.Gate.Set(command.GateMemory, short)
	w.Srv.Gate.Set(command.GateShort, false)
	if short {
		m.Max = 1
	}
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
