package exec_test

import (
	"cmp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// heapLive returns the bytes that live objects take up.
func heapLive() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestUnknownPolicyNamesAreNotKept: names that no policy can have cost nothing once the call has been answered, and the answer repeats
// little of them.
func TestUnknownPolicyNamesAreNotKept(t *testing.T) {
	const calls, size = 400, 15_000
	for _, tc := range []struct{ name, begin, fill string }{
		{"too long", "", "p"},
		{"other characters", "", "\xff"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := servertest.NewClockClient(t)
			fill := strings.Repeat(tc.fill, size)
			w.Ask("RL.TAKE", "1", "none", "k")
			before := heapLive()
			for i := range calls {
				require.Less(t, len(w.Ask("RL.TAKE", "1", strconv.Itoa(i)+fill, "k")), 200)
			}
			require.Less(t, heapLive()-before, calls*size/10)
			kept := 0
			for name := range w.Srv.Policies.Parsed {
				kept += len(name)
			}
			require.LessOrEqual(t, kept, len("none"))
		})
	}
}

// TestErrorsRepeatLittleOfAWrongWord: no word that a client sends to a limiter comes back whole if it is long.
func TestErrorsRepeatLittleOfAWrongWord(t *testing.T) {
	w := servertest.NewClockClient(t)
	long := strings.Repeat("w", 7_000)
	require.Equal(t, "OK", w.Call("RL.POLICY SET p UNLIMITED"))
	for _, words := range [][]string{
		{"RL.TAKE", "1", long, "k"},
		{"RL.TAKE", "2", "p", long, "p", long},
		{"RL.FIXED", "k", "5", long},
		{"RL.FIXED", "k", "5", "MONTH", "TZ", long},
		{"RL.POLICY", "SET", "q", long, "5"},
		{"RL.POLICY", "SET", long, "UNLIMITED"},
	} {
		answer := w.Ask(words...)
		require.Contains(t, answer, "ERR ")
		require.Less(t, len(answer), 256) // 128 of the word, and what the error has to say
	}
}

// TestDeniedNamesAreNotKeptWhole: ACL LOG keeps no more of names than its limits, whatever length they had.
func TestDeniedNamesAreNotKeptWhole(t *testing.T) {
	const calls, size = 400, 15_000
	w := servertest.NewClockClient(t)
	w.Ask("AUTH", "nobody", "x")
	fill := strings.Repeat("u", size)
	before := heapLive()
	for i := range calls {
		require.Contains(t, w.Ask("AUTH", strconv.Itoa(i)+fill, "x"), "WRONGPASS")
	}
	require.Less(t, heapLive()-before, calls*size/10)
	require.Equal(t, "OK", w.Ask("CLIENT", "SETNAME", fill))
	for i := range calls {
		require.Contains(t, w.Ask("AUTH", strconv.Itoa(i), "x"), "WRONGPASS")
	}
	require.Less(t, heapLive()-before, calls*size/10)
}

// TestSlowLogKeepsLittleOfNames: SLOWLOG keeps no more of a client's name than its limit.
func TestSlowLogKeepsLittleOfNames(t *testing.T) {
	const calls, size = 128, 15_000
	w := servertest.NewClockClient(t)
	require.Equal(t, "OK", w.Call("CONFIG SET slowlog-log-slower-than 0"))
	w.Ask("CLIENT", "SETNAME", "short")
	before := heapLive()
	for i := range calls {
		require.Equal(t, "OK", w.Ask("CLIENT", "SETNAME", strconv.Itoa(i)+strings.Repeat("n", size)))
	}
	require.Len(t, w.Srv.Slowlog.Entries, calls)
	require.Less(t, heapLive()-before, calls*size/4)
}

// TestMadeUpErrorCodesAreNotKeptWhole: INFO errorstats counts long codes that scripts make up as ERR, as Redis does.
func TestMadeUpErrorCodesAreNotKeptWhole(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Ask("EVAL", "return redis.error_reply('E' .. string.rep('x', 100000) .. ' text')", "0")
	for code := range w.Srv.Stats.ErrorCodes {
		require.LessOrEqual(t, len(code), command.MaxErrorCode)
	}
	require.NotEmpty(t, w.Srv.Stats.ErrorCodes)
}

// TestWhatClientsHaveTheServerHoldIsCounted: long names that a client has the server remember are in used_memory, and in the client's
// tot-mem unless they are in a table of all clients.
func TestWhatClientsHaveTheServerHoldIsCounted(t *testing.T) {
	const names, size = 100, 32_000
	fill := strings.Repeat("n", size)
	each := func(words ...string) func(*servertest.ClockClient) {
		return func(w *servertest.ClockClient) {
			for i := range names {
				last := len(words) - 1
				w.DrainTurns(servertest.EncodeCommand(append(words[:last:last], words[last]+strconv.Itoa(i)+fill)...))
			}
		}
	}
	before := func(call string, do func(*servertest.ClockClient)) func(*servertest.ClockClient) {
		return func(w *servertest.ClockClient) { w.Run(servertest.EncodeCommand(strings.Fields(call)...)); do(w) }
	}
	once := func(words ...string) func(*servertest.ClockClient) {
		return func(w *servertest.ClockClient) { w.DrainTurns(servertest.EncodeCommand(words...)) }
	}
	waits := []string{"BLPOP"}
	for i := range names {
		waits = append(waits, strconv.Itoa(i)+fill)
	}
	for _, tc := range []struct {
		name   string
		hold   func(*servertest.ClockClient)
		shared bool // in a table of all clients
		copies int  // how often the server has the names; 0: as the heap tells, in which a long call's own buffer would be, too
	}{
		{"MULTI", before("MULTI", each("GET", "")), false, 1},
		{"WATCH", each("WATCH", ""), false, 0},
		{"BLPOP", once(append(waits, "0")...), false, 2},
		{"SUBSCRIBE", each("SUBSCRIBE", ""), false, 0},
		{"SSUBSCRIBE", each("SSUBSCRIBE", ""), false, 0},
		{"PSUBSCRIBE", each("PSUBSCRIBE", ""), false, 0},
		{"tracked keys", before("CLIENT TRACKING ON REDIRECT 1", each("GET", "")), true, 0},
		{"tracked prefixes", before("HELLO 3", each("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "")), false, 0},
		{"CLIENT SETNAME", once("CLIENT", "SETNAME", strings.Repeat(fill, names)), false, 1},
		{"CLIENT SETINFO", once("CLIENT", "SETINFO", "LIB-NAME", strings.Repeat(fill, names)), false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := servertest.NewClockClient(t)
			w.Ask("GET", "k")
			w.Srv.WatchMemory()
			takenBefore, countedBefore := heapLive(), int(w.Srv.UsedMemory())
			tc.hold(w)
			w.Srv.WatchMemory()
			taken := cmp.Or(tc.copies*names*size, heapLive()-takenBefore)
			counted := int(w.Srv.UsedMemory()) - countedBefore
			t.Logf("takes %d bytes, %d are counted, tot-mem %d", taken, counted, w.Srv.Clients.List[0].Memory())
			require.Greater(t, counted, taken*9/10-64<<10)
			if !tc.shared {
				require.Greater(t, w.Srv.Clients.List[0].Memory(), taken*9/10-64<<10)
			}
		})
	}
}
