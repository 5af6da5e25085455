package exec_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

func TestPolicies(t *testing.T) {
	const keys = 30_000
	for _, policy := range []string{
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "noeviction",
	} {
		t.Run(policy, func(t *testing.T) {
			w := servertest.NewFullClient(t, policy)
			refused, keeps := 0, 0
			for n := range keys {
				w.Now += 1e6
				reply := ""
				switch {
				case n%10 == 0 && n < keys/4:
					keeps++
					reply = w.Set(fmt.Sprint("keep:", n))
				default:
					reply = w.Set(fmt.Sprint("key:", n), "EX", strconv.Itoa(1000+n%500))
				}
				if reply != "OK" {
					require.Contains(t, reply, servertest.WireOOM)
					refused++
				}
			}
			kept := len(strings.Fields(w.Call("KEYS keep:*")))
			switch {
			case policy == "noeviction":
				require.Zero(t, w.Evicted())
				require.Greater(t, refused, keys/4)
				require.Contains(t, w.Call("INCR first"), servertest.WireOOM)
				require.Equal(t, "nil", w.Call("GET nosuch"))
				require.Equal(t, "OK", w.Call("FLUSHALL"))
				require.Equal(t, "1", w.Call("INCR first"))
				return
			case strings.HasPrefix(policy, "volatile"):
				require.Equal(t, keeps, kept, "keys without TTL stay")
			default:
				require.Less(t, kept, keeps)
			}
			require.Zero(t, refused)
			require.Greater(t, w.Evicted(), uint64(keys/3))
			require.Contains(t, w.Ask("INFO", "stats"), fmt.Sprintf("evicted_keys:%d\r\n", w.Evicted()))
			if strings.HasPrefix(policy, "volatile") {
				for n := 0; refused == 0; n++ {
					if reply := w.Set(fmt.Sprint("forever:", n)); reply != "OK" {
						refused++
					}
				}
				require.Zero(t, w.Srv.Keys.DB(0).Expires(), "none is refused while a key may go")
			}
		})
	}
}

// TestSoonestGoFirst fills memory with keys of several times to live. Those that go are among those that expire soonest.
func TestSoonestGoFirst(t *testing.T) {
	w := servertest.NewFullClient(t, "volatile-ttl")
	for n := 0; w.Evicted() < 20_000; n++ {
		w.Set(fmt.Sprint("key:", n), "EX", strconv.Itoa(1000+n*7919%10_000))
	}
	sooner, later := 0, 0
	for _, key := range strings.Fields(strings.Trim(w.Call("KEYS *"), "[]")) {
		ttl, err := strconv.Atoi(w.Call("TTL " + key))
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
			w := servertest.NewFullClient(t, policy)
			half := 0
			for ; w.Srv.UsedMemory() < w.Max-servertest.EvictionRoom/10; half++ {
				w.Set(fmt.Sprint("live:", half), "EX", "1000")
				w.Set(fmt.Sprint("dead:", half), "PX", "10")
			}
			w.Now += 1e9
			for n := range half / 2 {
				require.Equal(t, "OK", w.Set(fmt.Sprint("new:", n)))
			}
			require.Zero(t, w.Evicted())
			require.Len(t, strings.Fields(w.Call("KEYS live:*")), half)
		})
	}
}

// TestReachingMaxmemoryIsLogged once an hour, whether keys go or writes are refused.
func TestReachingMaxmemoryIsLogged(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "noeviction"} {
		w := servertest.NewFullClient(t, policy)
		var text strings.Builder
		w.Srv.Logger = slog.New(slog.NewTextHandler(&text, nil))
		fill := func() {
			for n := range 40_000 {
				w.Set(fmt.Sprint("key:", n))
			}
		}
		lines := func() int { return strings.Count(text.String(), "more memory is in use than maxmemory allows") }
		fill()
		fill()
		require.Equal(t, 1, lines(), policy)
		require.Equal(t, "OK", w.Call("FLUSHALL"))
		w.Call("PING")
		w.Now += int64(time.Hour)
		fill()
		require.Equal(t, 2, lines(), policy)
	}
}

// TestEvictionIsTold checks who hears of a key that goes: the log, WATCH, clients that track, and listeners for events.
func TestEvictionIsTold(t *testing.T) {
	w := servertest.NewFullClient(t, "allkeys-lru")
	w.Call("SET watched v")
	w.Call("WATCH watched")
	w.Call("CONFIG SET notify-keyspace-events Ee")
	w.Srv.Effects.Enable(1 << 30)
	w.Now += 1e9
	for n := 0; w.Call("EXISTS watched") == "1"; n++ {
		w.Set(fmt.Sprint("key:", n))
	}
	require.Contains(t, string(w.Srv.Effects.Buf), "*2\r\n$3\r\nDEL\r\n$7\r\nwatched\r\n")
	w.Srv.Effects.Disable()
	w.Call("MULTI")
	w.Call("PING")
	require.Equal(t, "nil", w.Call("EXEC"))
}

// TestOnlyResetItselfIsLetThrough: RESET ends a transaction and so needs no memory, but sub-commands of that name are queued in it.
func TestOnlyResetItselfIsLetThrough(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.SetShort(true)
	for _, line := range []string{"SLOWLOG RESET", "LATENCY RESET", "CLUSTER RESET", "SCRIPT KILL"} {
		require.Equal(t, "OK", w.Call("MULTI"))
		require.Equal(t, servertest.WireOOM, w.Call(line), line)
		require.Contains(t, w.Call("EXEC"), "EXECABORT")
	}
	for line, reply := range map[string]string{"DISCARD": "OK", "EXEC": "[]", "RESET": "RESET"} {
		require.Equal(t, "OK", w.Call("MULTI"))
		require.Equal(t, reply, w.Call(line), line)
	}
}

// TestPoliciesStay keeps the hash of policies, which has no TTL and is the server's own.
func TestPoliciesStay(t *testing.T) {
	w := servertest.NewFullClient(t, "allkeys-random")
	require.Equal(t, "OK", w.Call("RL.POLICY SET login LOG 5 60s"))
	for n := range 40_000 {
		w.Set(fmt.Sprint("key:", n))
	}
	require.Equal(t, "LOG 5 60s", w.Call("RL.POLICY GET login"))
}

// TestEvictionInSlices lowers maxmemory far below what is in use, and has commands served meanwhile.
func TestEvictionInSlices(t *testing.T) {
	w := servertest.NewFullClient(t, "allkeys-lru")
	for n := range 10_000 {
		w.Set(fmt.Sprint("key:", n))
	}
	require.Equal(t, "OK", w.Call(fmt.Sprintf("CONFIG SET maxmemory-eviction-tenacity 0 maxmemory %d", w.Max-servertest.EvictionRoom*3/4)))
	require.True(t, w.Srv.Memory.Evicting)
	before := w.Evicted()
	require.Equal(t, "OK", w.Call("SET another v"))
	require.Less(t, w.Evicted()-before, uint64(100), "a command is not kept waiting for all of it")
	for range 10_000 {
		w.Srv.Cron()
	}
	require.False(t, w.Srv.Memory.Evicting)
	require.LessOrEqual(t, w.Srv.UsedMemory(), w.Srv.Memory.Max)
	w.Now += 5e9
	require.Contains(t, w.Ask("INFO", "stats"), "current_eviction_exceeded_time:0\r\n")
}

// TestEvictionEndsWithItsReason: keys stop going as soon as nothing asks for it any more, however much more memory was in use than was allowed.
func TestEvictionEndsWithItsReason(t *testing.T) {
	for _, end := range []string{"CONFIG SET maxmemory 0", "CONFIG SET maxmemory-policy noeviction"} {
		t.Run(end, func(t *testing.T) {
			w := servertest.NewFullClient(t, "allkeys-lru")
			for n := range 10_000 {
				w.Set(fmt.Sprint("key:", n))
			}
			w.Call(fmt.Sprintf("CONFIG SET maxmemory-eviction-tenacity 0 maxmemory %d", w.Max-servertest.EvictionRoom*3/4))
			require.True(t, w.Srv.Memory.Evicting)
			require.Equal(t, "OK", w.Call(end))
			evicted := w.Evicted()
			for range 1000 {
				w.Srv.Cron()
			}
			require.Equal(t, evicted, w.Evicted())
			require.Positive(t, w.Srv.Cron(), "the background work rests")
		})
	}
}

// TestFullServerRests: where no key may go, the background work looks for those past their time and then rests, though there is no less memory in
// use.
func TestFullServerRests(t *testing.T) {
	for _, policy := range []string{"noeviction", "volatile-lru"} {
		t.Run(policy, func(t *testing.T) {
			w := servertest.NewFullClient(t, policy)
			w.Call("CONFIG SET maxmemory-eviction-tenacity 0")
			for n := 0; w.Set(fmt.Sprint("key:", n)) == "OK"; n++ {
			}
			for range 1000 {
				w.Srv.Cron()
			}
			require.Positive(t, w.Srv.Cron())
		})
	}
}

// TestShortageIsTimed: INFO tells for how long more memory was in use than was allowed, whatever has ended that.
func TestShortageIsTimed(t *testing.T) {
	fill := func(w *servertest.FullClient) {
		for n := 0; w.Set(fmt.Sprint("key:", n)) == "OK"; n++ {
		}
		w.Now += 5e9
		require.Contains(t, w.Ask("INFO", "stats"), "total_eviction_exceeded_time:5000\r\ncurrent_eviction_exceeded_time:5000\r\n")
	}
	for _, end := range []string{"FLUSHALL", "CONFIG SET maxmemory 1gb", "CONFIG SET maxmemory 0"} {
		t.Run(end, func(t *testing.T) {
			w := servertest.NewFullClient(t, "noeviction")
			fill(w)
			require.Equal(t, "OK", w.Call(end))
			w.Call("PING")
			w.Now += 60e9
			require.Contains(t, w.Ask("INFO", "stats"), "total_eviction_exceeded_time:5000\r\ncurrent_eviction_exceeded_time:0\r\n")
		})
	}
	for name, tc := range map[string]struct{ policy, px string }{"keys past their time go": {"noeviction", "10"}, "keys are evicted": {"allkeys-lru", "1000000"}} {
		t.Run(name, func(t *testing.T) {
			w := servertest.NewFullClient(t, tc.policy)
			for n := 0; w.Srv.UsedMemory() <= w.Max; n++ {
				require.Equal(t, "OK", w.Ask("SET", fmt.Sprint("key:", n), strings.Repeat("x", 100), "PX", tc.px))
			}
			w.Now += 1e9
			require.Equal(t, "OK", w.Call("SET k v"))
			w.Now += 60e9 // in which nobody calls
			require.Contains(t, w.Ask("INFO", "stats"), "total_eviction_exceeded_time:0\r\ncurrent_eviction_exceeded_time:0\r\n")
		})
	}
}

func TestHeapLimit(t *testing.T) {
	w := servertest.NewClockClient(t)
	var told int64
	m := &w.Srv.Memory
	m.Machine, m.SetHeapLimit = 1<<30, func(bytes int64) { told = bytes }
	w.Srv.LimitMemory(w.Srv.Config.Get())
	require.EqualValues(t, exec.Share(1<<30, exec.ContainerShare), m.Max)
	require.InDelta(t, exec.Share(1<<30, exec.HeapShare), told, 1<<20)
	w.Srv.LimitHeap(500 << 20)
	require.InDelta(t, exec.Share(1<<30, exec.HeapShare)-500<<20, told, 1<<20)
	w.Srv.LimitHeap(2 << 30)
	require.EqualValues(t, exec.LeastHeap, told)
	w.Call("CONFIG SET maxmemory 50%")
	require.EqualValues(t, exec.Share(1<<30, 50), m.Max)
	require.Equal(t, "[maxmemory 50%]", w.Call("CONFIG GET maxmemory"))
}

// TestEvictionOfManyTables has so many keys that looking for those past their time takes several slices.
func TestEvictionOfManyTables(t *testing.T) {
	const keys = 1_300_000
	w := servertest.NewFullClient(t, "allkeys-lru")
	w.Call("CONFIG SET maxmemory 0 maxmemory-eviction-tenacity 10")
	for n := range keys {
		w.Srv.Keys.DB(0).SetInt(w.Srv.Keys.Key(fmt.Append(nil, n)), 1, w.Now/1e6+1e6)
	}
	require.Greater(t, w.Srv.Keys.Stats().Tables, exec.SweepVisits)
	w.Srv.WatchMemory()
	w.Max = w.Srv.UsedMemory()
	w.Call(fmt.Sprintf("CONFIG SET maxmemory %d", w.Max))
	for n := range 10_000 {
		w.Now += 1e6
		require.Equal(t, "OK", w.Set(fmt.Sprint("key:", n)))
	}
	require.Greater(t, w.Evicted(), uint64(10_000))
}

// TestPausedWritesEvictNothing: while writes are paused no key goes for want of memory, as in redis-server, and commands that may run do.
func TestPausedWritesEvictNothing(t *testing.T) {
	w := servertest.NewFullClient(t, "allkeys-lru")
	for n := range 1000 {
		w.Set(fmt.Sprint("key:", n))
	}
	require.Equal(t, "OK", w.Call("CLIENT PAUSE 100000 WRITE"))
	require.Equal(t, "OK", w.Call("CONFIG SET maxmemory 1"))
	require.Equal(t, strings.Repeat("x", 100), w.Call("GET key:0"))
	w.Srv.Cron()
	require.Equal(t, "1000", w.Call("DBSIZE"))
	require.Equal(t, "OK", w.Call("CLIENT UNPAUSE"))
	w.Call("GET key:0")
	require.NotEqual(t, "1000", w.Call("DBSIZE"))
}

// TestClientsAreEvicted has the largest clients closed, but for those that do not want that.
func TestClientsAreEvicted(t *testing.T) {
	p := servertest.NewPipeServer(t)
	queue := func(first string) (net.Conn, *bufio.Reader) {
		conn, in := p.Dial()
		_, err := conn.Write([]byte(first + "MULTI\r\n"))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("+OK\r\n", 1+strings.Count(first, "\n")), servertest.ReadLines(t, in, 1+strings.Count(first, "\n")))
		for range 30 {
			_, err := conn.Write(servertest.EncodeCommand("SET", "k", strings.Repeat("x", 5000)))
			require.NoError(t, err)
			require.Equal(t, "+QUEUED\r\n", servertest.ReadLines(t, in, 1))
		}
		return conn, in
	}
	kept, in := queue("CLIENT NO-EVICT ON\r\n")
	_, victim := queue("")
	small, answers := p.Dial()
	_, err := small.Write([]byte("CONFIG SET maxmemory-clients 200kb\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, answers, 1))
	_, err = victim.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	_, err = small.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", servertest.ReadLines(t, answers, 1))
	_, err = kept.Write([]byte("DISCARD\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, in, 1))
	for _, conn := range []net.Conn{kept, small} {
		require.NoError(t, conn.Close())
	}
}

// TestUnfinishedInputCounts has a client send the half of a long command.
func TestUnfinishedInputCounts(t *testing.T) {
	w := servertest.NewClockClient(t)
	half := servertest.EncodeCommand("SET", "k", strings.Repeat("x", 10*32<<10))
	for len(half) > 5*32<<10 {
		n := copy(w.Conn.In.Space(&w.Pool), half[:min(len(half), 4096)])
		w.Conn.In.Received(n)
		half = half[n:]
		for more := true; more; more = w.Conn.TakePostponed() {
			w.Worker.Batch(w.Ready)
		}
	}
	require.Greater(t, w.Srv.ClientMemory(), 4*32<<10)
}

func TestTenacity(t *testing.T) {
	for n, want := range map[int]string{0: "0s", 1: "50µs", 10: "500µs", 11: "575µs"} {
		require.Equal(t, want, exec.Tenacity(n).String())
	}
	require.Greater(t, exec.Tenacity(99).Minutes(), 2.0)
	require.Greater(t, exec.Tenacity(100), exec.Tenacity(99))
}
