package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// limiterCases are those of servertest.LimiterCases that decide before they are refused for memory: all but INCREX, which keeps Redis's flags.
func limiterCases() (list []servertest.LimiterCase) {
	for _, tc := range servertest.LimiterCases {
		if !strings.HasPrefix(tc.Name, "INCREX") {
			list = append(list, tc)
		}
	}
	return list
}

// TestStrangersFillMemory has a stranger make up keys until no memory is left. Whoever is limited stays limited, and can be looked at;
// only a key that would be new is refused. The same holds in scripts and transactions.
func TestStrangersFillMemory(t *testing.T) {
	w := servertest.NewFullClient(t, "noeviction")
	on := func(call, key string) []string { return strings.Fields(strings.ReplaceAll(call, "KEY", key)) }
	script := func(words []string) []string {
		return append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, words...)
	}
	inMulti := func(words []string) string {
		require.Equal(t, "OK", w.Call("MULTI"))
		require.Equal(t, "QUEUED", w.Ask(words...))
		return w.Call("EXEC")
	}
	require.Equal(t, "OK", w.Call("RL.POLICY SET p GCRA 1 1 1000s"))
	for i, tc := range limiterCases() {
		require.NotContains(t, w.Ask(on(tc.Call, fmt.Sprint("used:", i))...), "ERR", tc.Name)
	}
	strangers := 0
	for ; w.Ask("CL.THROTTLE", fmt.Sprint("stranger:", strangers), "5", "1", "1000") != servertest.WireOOM; strangers++ {
		require.Less(t, strangers, 100_000)
	}
	require.Greater(t, strangers, 1000)

	state := servertest.Digest(w.Srv)
	for i, tc := range limiterCases() {
		t.Run(tc.Name, func(t *testing.T) {
			used := fmt.Sprint("used:", i)
			limited, _ := servertest.PlainReply(tc.Limited + strings.Repeat("$1\r\n \r\n", 2)) // those of RL.SLIDING depend on the slice
			limited = strings.TrimRight(limited, " ]")
			require.Contains(t, w.Ask(on(tc.Call, used)...), limited)
			require.Contains(t, w.Ask(script(on(tc.Call, used))...), limited)
			require.Contains(t, inMulti(on(tc.Call, used)), limited)
			for _, key := range []string{used, "free"} {
				require.Equal(t, "[", w.Ask(on(tc.Peek, key)...)[:1])
				require.Equal(t, "[", w.Ask(script(on(tc.Peek, key))...)[:1])
				require.Equal(t, "[[", inMulti(on(tc.Peek, key))[:2])
			}
			require.Equal(t, servertest.WireOOM, w.Ask(on(tc.Call, "free")...))
			require.Contains(t, w.Ask(script(on(tc.Call, "free"))...), servertest.WireOOM)
			require.Equal(t, "["+servertest.WireOOM+"]", inMulti(on(tc.Call, "free")))
		})
	}
	require.Equal(t, state, servertest.Digest(w.Srv))
	for n := range strangers / 10 {
		w.Call(fmt.Sprint("DEL stranger:", n))
	}
	require.Equal(t, "[0 6 5 -1 1000]", w.Call("CL.THROTTLE free 5 1 1000"))
}

// TestWhatNeedsNoRoom goes through what a limiter may do to its state while no memory is left: lines that begin with ! have to be
// answered OOM and change nothing, those that begin with = as if there was room.
func TestWhatNeedsNoRoom(t *testing.T) {
	for _, tc := range []struct{ name, calls string }{
		{"a number in place", `
			- RL.GCRA k 5 1 1s
			= RL.GCRA k 5 1 1s
			= CL.THROTTLE k 5 1 1
			= GCRA k 5 1 1
			= RL.GCRA k 5 1 1s COST -1
			= RL.GCRA k 5 1 1s COST -9
			= RL.GCRA k 5 1 1s COST -1
			= RL.GCRA k 5 1 1s COST 6
			! RL.GCRA k 5 1 1s`},
		{"digits that somebody has put together", `
			- APPEND k 1795268711
			- APPEND k 000000000
			= CL.THROTTLE k 5 1 1
			= GET k`},
		{"a window's counter", `
			- RL.FIXED k 3 1s
			- SET forever 9
			= RL.FIXED k 3 1s
			= RL.FIXED k 3 1s COST -1
			= RL.FIXED k 3 1s COST 9
			= RL.FIXED forever 3 1s
			= RL.FIXED forever 30 1s
			= PTTL forever
			! RL.FIXED new 3 1s
			+1000
			= RL.FIXED k 3 1s
			+1001
			! RL.FIXED k 3 1s`},
		{"slices", `
			- RL.SLIDING k 9 1s SLICES 2
			= RL.SLIDING k 9 1s SLICES 2
			= RL.SLIDING k 9 1s SLICES 2 COST -1
			+500
			! RL.SLIDING k 9 1s SLICES 2
			= RL.SLIDING k 9 1s SLICES 2 COST 9
			= RL.SLIDING k 9 1s SLICES 2 PEEK
			= RL.SLIDING k 9 1s SLICES 2 COST -1
			! RL.SLIDING new 9 1s`},
		{"a slice in the place of one that counts no longer", `
			- RL.SLIDING k 9 1s SLICES 2
			+500
			- RL.SLIDING k 9 1s SLICES 2
			+500
			! RL.SLIDING k 9 1s SLICES 2
			+500
			= RL.SLIDING k 9 1s SLICES 2
			= HLEN k`},
		{"slices of another length", `
			- RL.SLIDING k 9 1s SLICES 4
			+250
			- RL.SLIDING k 9 1s SLICES 4
			= RL.SLIDING k 9 1s SLICES 2
			= HLEN k
			= RL.SLIDING k 9 1s SLICES 2 COST -1`},
		{"entries", `
			- RL.LOG k 9 1s COST 3
			! RL.LOG k 9 1s
			= RL.LOG k 9 1s COST 7
			= RL.LOG k 9 1s PEEK
			= RL.LOG k 9 1s COST -1
			+999
			! RL.LOG k 9 1s
			+1
			- ZADD k 1795268999999 later
			! RL.LOG k 9 1s COST 3
			= RL.LOG k 9 1s COST 2
			= ZCARD k
			! RL.LOG k 9 1s
			! RL.LOG new 9 1s`},
		{"ids", `
			- RL.LOG k 2 1s MEMBER a
			- ZADD k 1 old
			= RL.LOG k 2 1s MEMBER a
			! RL.LOG k 2 1s MEMBER b
			= RL.LOG k 2 1s MEMBER old
			= RL.LOG k 2 1s MEMBER b
			= RL.LOG k 2 1s MEMBER a COST -1
			! RL.LOG k 2 1s MEMBER b`},
		{"leases", `
			- RL.ACQUIRE k 2 1s MEMBER a
			= RL.ACQUIRE k 2 2s MEMBER a
			! RL.ACQUIRE k 2 1s MEMBER b
			= RL.ACQUIRE k 1 1s MEMBER b
			= RL.ACQUIRE k 2 1s MEMBER b PEEK
			= RL.RENEW k a 3s
			= RL.RENEW k b 3s
			- RL.ACQUIRE k 2 1s MEMBER b
			= RL.RELEASE k a
			! RL.ACQUIRE k 2 1s MEMBER a
			= RL.RELEASE k b
			! RL.ACQUIRE k 2 1s MEMBER b`},
		{"a lease in the place of one that has ended", `
			- RL.ACQUIRE k 2 1s MEMBER a
			- RL.ACQUIRE k 2 3s MEMBER b
			+1000
			= RL.ACQUIRE k 2 1s MEMBER a
			= ZCARD k`},
		{"without a limit there is no state", `
			= RL.GCRA k -1 1 1s
			= RL.ACQUIRE k -1 1s MEMBER a
			= RL.GCRA k 0 1 1s`},
		{"what is wrong is said first", `
			- HSET h f v
			= RL.GCRA h 5 1 1s
			= RL.GCRA new 5 x 1s
			= RL.TAKE 1 none new`},
		{"INCREX keeps Redis's flags", `
			- SET k 1
			! INCREX k UBOUND 1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, roomy := servertest.NewClockClient(t), servertest.NewClockClient(t)
			for line := range strings.Lines(strings.TrimSpace(tc.calls)) {
				kind, call, _ := strings.Cut(strings.TrimSpace(line), " ")
				if kind[0] == '+' {
					var ms int64
					_, err := fmt.Sscan(kind, &ms)
					require.NoError(t, err)
					w.Now, roomy.Now = w.Now+ms*1e6, roomy.Now+ms*1e6
					continue
				}
				w.SetShort(kind != "-")
				before := w.Contents()
				if kind == "!" {
					require.Equal(t, servertest.WireOOM, w.Call(call), call)
					require.Equal(t, before, w.Contents(), call)
					continue
				}
				require.Equal(t, roomy.Call(call), w.Call(call), call)
				require.Equal(t, roomy.Contents(), w.Contents(), call)
			}
		})
	}
}

// TestTakeWithoutRoomChargesNothing has one pair's key be new while no memory is left, whatever limits the others are.
func TestTakeWithoutRoomChargesNothing(t *testing.T) {
	policies := []string{"GCRA 9 1 1s", "BUCKET 9 1 1s", "FIXED 9 10s", "SLIDING 9 10s", "LOG 9 10s"}
	w := servertest.NewClockClient(t)
	for i, text := range policies {
		require.Equal(t, "OK", w.Call(fmt.Sprintf("RL.POLICY SET p%d %s", i, text)))
		require.Contains(t, w.Call(fmt.Sprintf("RL.TAKE 1 p%d there:%d", i, i)), "[0 -1 ")
	}
	w.SetShort(true)
	for first := range policies {
		for second := range policies {
			for _, keys := range [][2]string{{"there", "new"}, {"new", "there"}} {
				call := fmt.Sprintf("RL.TAKE 2 p%d %s:%d p%d %s:%d", first, keys[0], first, second, keys[1], second+10*first)
				if keys[1] == "there" {
					call = fmt.Sprintf("RL.TAKE 2 p%d %s:%d p%d %s:%d", first, keys[0], first+10*second, second, keys[1], second)
				}
				before := w.Contents()
				require.Equal(t, servertest.WireOOM, w.Call(call), call)
				require.Equal(t, before, w.Contents(), call)
				require.Contains(t, w.Call(call+" PEEK"), "[0 -1 ", call)
				require.Contains(t, w.Call(call+" COSTS 10 10"), "[1 0 ", call)
				require.Equal(t, before, w.Contents(), call)
			}
		}
	}
	for i, text := range policies[:4] { // all but the log, which needs an entry
		require.Contains(t, w.Call(fmt.Sprintf("RL.TAKE 1 p%d there:%d", i, i)), "[0 -1 ", text)
	}
	require.Contains(t, w.Call("RL.TAKE 4 p0 there:0 p1 there:1 p2 there:2 p3 there:3"), "[0 -1 ")
	require.Contains(t, w.Call("RL.TAKE 1 p4 there:4 COST -1"), "[0 -1 ")
}

// TestScriptsThatOnlyAskHaveNotWritten: in a script that has written nothing yet what needs memory is refused, and a limiter that has
// limited, or was refused itself, has written nothing. One that has charged has, and then no script is left half done.
func TestScriptsThatOnlyAskHaveNotWritten(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("CL.THROTTLE used 0 1 1000")
	w.Call("CL.THROTTLE free 5 1 1000")
	w.SetShort(true)
	for _, first := range []string{"CL.THROTTLE used 0 1 1000", "CL.THROTTLE new 0 1 1000", "RL.GCRA free 9 1 1s PEEK", "RL.LOG new 5 1s"} {
		require.Contains(t, w.Ask(append([]string{"EVAL", "redis.pcall(unpack(ARGV)) return redis.call('SET', 'x', 1)", "0"}, strings.Fields(first)...)...), servertest.WireOOM, first)
	}
	require.Equal(t, "0", w.Call("EXISTS x new"))
	require.Equal(t, "OK", w.Ask(append([]string{"EVAL", "redis.pcall(unpack(ARGV)) return redis.call('SET', 'x', 1)", "0"}, strings.Fields("CL.THROTTLE free 5 1 1000")...)...))
	require.Equal(t, "[0 1 0 -1 1000]", w.Ask("EVAL", "redis.call('DEL', 'x') return redis.call('CL.THROTTLE', 'new', 0, 1, 1000)", "0"))
	require.Equal(t, "[0 1 0 -1 1000]", w.Ask("EVAL", "#!lua flags=allow-oom\nreturn redis.call('CL.THROTTLE', 'new2', 0, 1, 1000)", "0"))
}

// TestQueueingWithoutRoomIsBounded: limiters are queued while no memory is left, but not without end; all else is refused, as in Redis.
func TestQueueingWithoutRoomIsBounded(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("CL.THROTTLE k 0 1 1000")
	w.SetShort(true)
	require.Equal(t, "OK", w.Call("MULTI"))
	require.Equal(t, "QUEUED", w.Call("CL.THROTTLE k 0 1 1000"))
	require.Equal(t, "QUEUED", w.Call("RL.GCRA new 5 1 1s"))
	require.Equal(t, "[[1 1 0 1000 1000] "+servertest.WireOOM+"]", w.Call("EXEC"))
	require.Equal(t, "OK", w.Call("MULTI"))
	require.Equal(t, "QUEUED", w.Call("CL.THROTTLE k 0 1 1000"))
	require.Equal(t, servertest.WireOOM, w.Call("GET k"))
	require.Contains(t, w.Call("EXEC"), "EXECABORT")
	require.Equal(t, "OK", w.Call("MULTI"))
	queued := 0
	for ; w.Call("CL.THROTTLE k 0 1 1000") == "QUEUED"; queued++ {
		require.LessOrEqual(t, w.Conn.Client.(*command.Client).Multi.Bytes(), 65<<10)
	}
	require.Greater(t, queued, 100)
	require.Contains(t, w.Call("EXEC"), "EXECABORT")
}

// TestEvictionComesBeforeRefusal: a limiter that needs a key gets the room of others that may go.
func TestEvictionComesBeforeRefusal(t *testing.T) {
	w := servertest.NewFullClient(t, "allkeys-lru")
	for n := 0; w.Evicted() < 100; n++ {
		require.Less(t, n, 100_000)
		require.Equal(t, "[0 6 5 -1 1000]", w.Ask("CL.THROTTLE", fmt.Sprint("key:", n), "5", "1", "1000"))
	}
}
