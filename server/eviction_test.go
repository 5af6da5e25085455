package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullClient is a client of a server that may take up a little more memory than it does without keys.
type fullClient struct {
	*clockClient
	max uint64
}

const evictionRoom = 2 << 20

func newFullClient(t *testing.T, policy string) *fullClient {
	w := &fullClient{clockClient: newClockClient(t)}
	w.call("SET first v")
	w.call("DEL first")
	w.srv.watchMemory()
	w.max = w.srv.usedMemory() + evictionRoom
	require.Equal(t, "OK", w.call(fmt.Sprintf("CONFIG SET maxmemory %d maxmemory-policy %s maxmemory-eviction-tenacity 100", w.max, policy)))
	return w
}

// set sets a key to 100 bytes, and requires that memory is kept within bounds.
func (w *fullClient) set(key string, more ...string) string {
	reply := w.ask(append([]string{"SET", key, strings.Repeat("x", 100)}, more...)...)
	require.LessOrEqual(w.t, w.srv.usedMemory(), w.max+64<<10)
	return reply
}

func (w *fullClient) evicted() uint64 { return w.srv.keys.Stats().Evicted }

const wireOOM = "OOM command not allowed when used memory > 'maxmemory'."

func TestPolicies(t *testing.T) {
	const keys = 30_000
	for _, policy := range []string{
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "noeviction",
	} {
		t.Run(policy, func(t *testing.T) {
			w := newFullClient(t, policy)
			refused, keeps := 0, 0
			for n := range keys {
				w.now += 1e6
				reply := ""
				switch {
				case n%10 == 0 && n < keys/4:
					keeps++
					reply = w.set(fmt.Sprint("keep:", n))
				default:
					reply = w.set(fmt.Sprint("key:", n), "EX", strconv.Itoa(1000+n%500))
				}
				if reply != "OK" {
					require.Contains(t, reply, wireOOM)
					refused++
				}
			}
			kept := len(strings.Fields(w.call("KEYS keep:*")))
			switch {
			case policy == "noeviction":
				require.Zero(t, w.evicted())
				require.Greater(t, refused, keys/4)
				require.Contains(t, w.call("INCR first"), wireOOM)
				require.Equal(t, "nil", w.call("GET nosuch"))
				require.Equal(t, "OK", w.call("FLUSHALL"))
				require.Equal(t, "1", w.call("INCR first"))
				return
			case strings.HasPrefix(policy, "volatile"):
				require.Equal(t, keeps, kept, "keys without TTL stay")
			default:
				require.Less(t, kept, keeps)
			}
			require.Zero(t, refused)
			require.Greater(t, w.evicted(), uint64(keys/3))
			require.Contains(t, w.ask("INFO", "stats"), fmt.Sprintf("evicted_keys:%d\r\n", w.evicted()))
			if strings.HasPrefix(policy, "volatile") {
				for n := 0; refused == 0; n++ {
					if reply := w.set(fmt.Sprint("forever:", n)); reply != "OK" {
						refused++
					}
				}
				require.Zero(t, w.srv.keys.DB(0).Expires(), "none is refused while a key may go")
			}
		})
	}
}

// TestSoonestGoFirst fills memory with keys of several times to live. Those that go are among those that expire soonest.
func TestSoonestGoFirst(t *testing.T) {
	w := newFullClient(t, "volatile-ttl")
	for n := 0; w.evicted() < 20_000; n++ {
		w.set(fmt.Sprint("key:", n), "EX", strconv.Itoa(1000+n*7919%10_000))
	}
	sooner, later := 0, 0
	for _, key := range strings.Fields(strings.Trim(w.call("KEYS *"), "[]")) {
		ttl, err := strconv.Atoi(w.call("TTL " + key))
		require.NoError(t, err)
		if ttl < 2000 {
			sooner++
		} else if ttl > 9000 {
			later++
		}
	}
	require.Less(t, sooner*10, later)
}

// TestExpiredGoFirst has half of all keys past their time when memory runs out.
func TestExpiredGoFirst(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl", "noeviction"} {
		t.Run(policy, func(t *testing.T) {
			w := newFullClient(t, policy)
			half := 0
			for ; w.srv.usedMemory() < w.max-evictionRoom/10; half++ {
				w.set(fmt.Sprint("live:", half), "EX", "1000")
				w.set(fmt.Sprint("dead:", half), "PX", "10")
			}
			w.now += 1e9
			for n := range half / 2 {
				require.Equal(t, "OK", w.set(fmt.Sprint("new:", n)))
			}
			require.Zero(t, w.evicted())
			require.Len(t, strings.Fields(w.call("KEYS live:*")), half)
		})
	}
}

// TestEvictionIsTold checks who hears of a key that goes: the log, WATCH, clients that track, and listeners for events.
func TestEvictionIsTold(t *testing.T) {
	w := newFullClient(t, "allkeys-lru")
	w.call("SET watched v")
	w.call("WATCH watched")
	w.call("CONFIG SET notify-keyspace-events Ee")
	w.srv.effects.on = true
	w.now += 1e9
	for n := 0; w.call("EXISTS watched") == "1"; n++ {
		w.set(fmt.Sprint("key:", n))
	}
	require.Contains(t, string(w.srv.effects.buf), "*2\r\n$3\r\nDEL\r\n$7\r\nwatched\r\n")
	w.srv.effects.on = false
	w.call("MULTI")
	w.call("PING")
	require.Equal(t, "nil", w.call("EXEC"))
}

// TestOnlyResetItselfIsLetThrough: RESET ends a transaction and so needs no memory, but sub-commands of that name are queued in it.
func TestOnlyResetItselfIsLetThrough(t *testing.T) {
	w := newClockClient(t)
	w.setShort(true)
	for _, line := range []string{"SLOWLOG RESET", "LATENCY RESET", "CLUSTER RESET", "SCRIPT KILL"} {
		require.Equal(t, "OK", w.call("MULTI"))
		require.Equal(t, wireOOM, w.call(line), line)
		require.Contains(t, w.call("EXEC"), "EXECABORT")
	}
	for line, reply := range map[string]string{"DISCARD": "OK", "EXEC": "[]", "RESET": "RESET"} {
		require.Equal(t, "OK", w.call("MULTI"))
		require.Equal(t, reply, w.call(line), line)
	}
}

// TestPoliciesStay keeps the hash of policies, which has no TTL and is the server's own.
func TestPoliciesStay(t *testing.T) {
	w := newFullClient(t, "allkeys-random")
	require.Equal(t, "OK", w.call("RL.POLICY SET login LOG 5 60s"))
	for n := range 40_000 {
		w.set(fmt.Sprint("key:", n))
	}
	require.Equal(t, "LOG 5 60s", w.call("RL.POLICY GET login"))
}

// TestEvictionInSlices lowers maxmemory far below what is in use, and has commands served meanwhile.
func TestEvictionInSlices(t *testing.T) {
	w := newFullClient(t, "allkeys-lru")
	for n := range 10_000 {
		w.set(fmt.Sprint("key:", n))
	}
	require.Equal(t, "OK", w.call(fmt.Sprintf("CONFIG SET maxmemory-eviction-tenacity 0 maxmemory %d", w.max-evictionRoom*3/4)))
	require.True(t, w.srv.memory.evicting)
	before := w.evicted()
	require.Equal(t, "OK", w.call("SET another v"))
	require.Less(t, w.evicted()-before, uint64(100), "a command is not kept waiting for all of it")
	for range 10_000 {
		w.srv.cron()
	}
	require.False(t, w.srv.memory.evicting)
	require.LessOrEqual(t, w.srv.usedMemory(), w.srv.memory.max)
	w.now += 5e9
	require.Contains(t, w.ask("INFO", "stats"), "current_eviction_exceeded_time:0\r\n")
}

func TestHeapLimit(t *testing.T) {
	w := newClockClient(t)
	var told int64
	m := &w.srv.memory
	m.machine, m.setHeapLimit = 1<<30, func(bytes int64) { told = bytes }
	w.srv.limitMemory(w.srv.config.Get())
	require.EqualValues(t, share(1<<30, containerShare), m.max)
	require.InDelta(t, share(1<<30, heapShare), told, 1<<20)
	w.srv.limitHeap(500 << 20)
	require.InDelta(t, share(1<<30, heapShare)-500<<20, told, 1<<20)
	w.srv.limitHeap(2 << 30)
	require.EqualValues(t, leastHeap, told)
	w.call("CONFIG SET maxmemory 50%")
	require.EqualValues(t, share(1<<30, 50), m.max)
	require.Equal(t, "[maxmemory 50%]", w.call("CONFIG GET maxmemory"))
}

// TestEvictionOfManyTables has so many keys that looking for those past their time takes several slices.
func TestEvictionOfManyTables(t *testing.T) {
	const keys = 1_300_000
	w := newFullClient(t, "allkeys-lru")
	w.call("CONFIG SET maxmemory 0 maxmemory-eviction-tenacity 10")
	for n := range keys {
		w.srv.keys.DB(0).SetInt(w.srv.keys.Key(fmt.Append(nil, n)), 1, w.now/1e6+1e6)
	}
	require.Greater(t, w.srv.keys.Stats().Tables, sweepVisits)
	w.srv.watchMemory()
	w.max = w.srv.usedMemory()
	w.call(fmt.Sprintf("CONFIG SET maxmemory %d", w.max))
	for n := range 10_000 {
		w.now += 1e6
		require.Equal(t, "OK", w.set(fmt.Sprint("key:", n)))
	}
	require.Greater(t, w.evicted(), uint64(10_000))
}

// TestPausedWritesEvictNothing: while writes are paused no key goes for want of memory, as in redis-server, and commands that may run do.
func TestPausedWritesEvictNothing(t *testing.T) {
	w := newFullClient(t, "allkeys-lru")
	for n := range 1000 {
		w.set(fmt.Sprint("key:", n))
	}
	require.Equal(t, "OK", w.call("CLIENT PAUSE 100000 WRITE"))
	require.Equal(t, "OK", w.call("CONFIG SET maxmemory 1"))
	require.Equal(t, strings.Repeat("x", 100), w.call("GET key:0"))
	w.srv.cron()
	require.Equal(t, "1000", w.call("DBSIZE"))
	require.Equal(t, "OK", w.call("CLIENT UNPAUSE"))
	w.call("GET key:0")
	require.NotEqual(t, "1000", w.call("DBSIZE"))
}

// TestClientsAreEvicted has the largest clients closed, but for those that do not want that.
func TestClientsAreEvicted(t *testing.T) {
	p := newPipeServer(t)
	queue := func(first string) (net.Conn, *bufio.Reader) {
		conn, in := p.dial()
		_, err := conn.Write([]byte(first + "MULTI\r\n"))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("+OK\r\n", 1+strings.Count(first, "\n")), readLines(t, in, 1+strings.Count(first, "\n")))
		for range 30 {
			_, err := conn.Write(encodeCommand("SET", "k", strings.Repeat("x", 5000)))
			require.NoError(t, err)
			require.Equal(t, "+QUEUED\r\n", readLines(t, in, 1))
		}
		return conn, in
	}
	kept, in := queue("CLIENT NO-EVICT ON\r\n")
	_, victim := queue("")
	small, answers := p.dial()
	_, err := small.Write([]byte("CONFIG SET maxmemory-clients 200kb\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, answers, 1))
	_, err = victim.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	_, err = small.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", readLines(t, answers, 1))
	_, err = kept.Write([]byte("DISCARD\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, in, 1))
	for _, conn := range []net.Conn{kept, small} {
		require.NoError(t, conn.Close())
	}
}

// TestUnfinishedInputCounts has a client send the half of a long command.
func TestUnfinishedInputCounts(t *testing.T) {
	w := newClockClient(t)
	half := encodeCommand("SET", "k", strings.Repeat("x", 10*32<<10))
	for len(half) > 5*32<<10 {
		n := copy(w.conn.In.Space(&w.pool), half[:min(len(half), 4096)])
		w.conn.In.Received(n)
		half = half[n:]
		for more := true; more; more = w.conn.TakePostponed() {
			w.worker.Batch(w.ready)
		}
	}
	require.Greater(t, w.srv.clientMemory(), 4*32<<10)
}

func TestTenacity(t *testing.T) {
	for n, want := range map[int]string{0: "0s", 1: "50µs", 10: "500µs", 11: "575µs"} {
		require.Equal(t, want, tenacity(n).String())
	}
	require.Greater(t, tenacity(99).Minutes(), 2.0)
	require.Greater(t, tenacity(100), tenacity(99))
}
