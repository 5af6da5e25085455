package limits_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"headgate/server/command"

	"github.com/stretchr/testify/require"
)

// TestWhoIsExhaustedKeepsNobodyFromASharedLimit: one user whose own limit is used up has as many calls waiting as he likes; of the limit that he
// shares with a hundred others at least 98 % is used.
func TestWhoIsExhaustedKeepsNobodyFromASharedLimit(t *testing.T) {
	const (
		rate, seconds  = 100, 20
		greedy, frugal = 20, 100
	)
	w := newCrowd(t)
	w.converse(`
		x RL.POLICY SET own GCRA 1 2 1s       | OK
		x RL.POLICY SET shared GCRA 10 100 1s | OK`)
	calls := map[string][]string{}
	for i := range greedy {
		calls[fmt.Sprintf("g%d", i)] = strings.Fields("RL.TAKE 2 own exhausted shared all WAIT 1m")
	}
	for i := range frugal {
		calls[fmt.Sprintf("f%d", i)] = strings.Fields(fmt.Sprintf("RL.TAKE 2 own user%d shared all WAIT 1m", i))
	}
	passed := map[byte]int{}
	for range seconds * 1000 {
		for name, call := range calls {
			reply := "[1"
			if cl := w.conns[name]; cl != nil && cl.Client.(*command.Client).Blocked != nil {
				continue
			} else if cl != nil {
				reply = w.reply(name)
			}
			if reply == "-" || reply == "[1" {
				reply = w.send(name, call...)
			}
			if strings.HasPrefix(reply, "[0") {
				passed[name[0]]++
			}
		}
		w.pass(1)
	}
	used := 100 * float64(passed['g']+passed['f']) / (rate * seconds)
	t.Logf("%.1f %% of the shared limit used: %d by the exhausted user, %d by the others", used, passed['g'], passed['f'])
	require.GreaterOrEqual(t, used, 98.0)
	require.LessOrEqual(t, passed['g'], 2*seconds+1)
}

// TestWorkBoundByLeasesLosesNoTime: workers that wait for a lease have it in the instant in which another is given back.
func TestWorkBoundByLeasesLosesNoTime(t *testing.T) {
	const workers, limit, work, steps = 40, 10, 5, 2000 // ms
	w := newCrowd(t)
	ends, ids, done := map[string]int{}, map[string]string{}, 0
	for turn := range 2 * steps { // two in each ms: who has been served meanwhile begins to work at once
		now := turn / 2
		for i := range workers {
			name := fmt.Sprint("w", i)
			reply := "-"
			switch end, works := ends[name]; {
			case works && end > now:
				continue
			case works:
				done++
				delete(ends, name)
				require.Equal(t, "1", w.send(name, "RL.RELEASE", "pool", ids[name]))
				reply = w.send(name, "RL.ACQUIRE", "pool", fmt.Sprint(limit), "30s", "WAIT", "1m")
			case w.conns[name] == nil:
				reply = w.send(name, "RL.ACQUIRE", "pool", fmt.Sprint(limit), "30s", "WAIT", "1m")
			default:
				reply = w.reply(name)
			}
			if strings.HasPrefix(reply, "[0") {
				ends[name], ids[name] = now+work, strings.Trim(reply[strings.LastIndexByte(reply, ' ')+1:], "]")
			}
		}
		if turn%2 == 1 {
			w.pass(1)
		}
	}
	ideal := limit * steps / work
	t.Logf("%d units of work, %.1f %% of what %d at a time can do", done, 100*float64(done)/float64(ideal), limit)
	require.GreaterOrEqual(t, done*100, ideal*95)
}

// TestTenThousandWaiters: what a call that waits takes up is counted, and gone when its client is.
func TestTenThousandWaiters(t *testing.T) {
	const clients, keys = 10_000, 1000
	w := newCrowd(t)
	require.Equal(t, "OK", w.send("x", "CONFIG", "SET", "maxclients", "10100"))
	for i := range keys {
		w.send("x", "RL.FIXED", fmt.Sprint("user:", i), "1", "1h")
	}
	for i := range clients { // their connections are not what is measured
		require.Equal(t, "PONG", w.send(fmt.Sprint(i), "PING"))
	}
	counted, before := w.Srv.ClientMemory(), heapInUse()
	for i := range clients {
		require.Equal(t, "-", w.send(fmt.Sprint(i), "RL.FIXED", fmt.Sprint("user:", i%keys), "1", "1h", "WAIT", "1h"))
	}
	require.Equal(t, clients, w.Srv.Waits.Now)
	require.Equal(t, "[1 1 0 3600000 3600000]", w.send("y", "RL.FIXED", "user:0", "1", "1h", "WAIT", "1h"), "there is no room for one more")
	used, perWaiter := (heapInUse()-before)/clients, (w.Srv.ClientMemory()-counted)/clients
	t.Logf("a waiter takes %d bytes, and counts as %d", used, perWaiter)
	require.LessOrEqual(t, used, uint64(perWaiter))
	for i := range clients {
		w.hangUp(fmt.Sprint(i))
	}
	require.Zero(t, w.Srv.Waits.Now)
	require.False(t, w.Srv.Gate.Has(command.GateBlocked))
	require.LessOrEqual(t, heapInUse(), before+before/2)
	for i := range keys {
		require.Equal(t, "[0 1 0 -1 3600000]", w.send("x", "RL.FIXED", fmt.Sprint("user:", i), "1", "1h", "COST", "0"))
	}
}

// heapInUse is what is in use on the Go heap, in bytes.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
