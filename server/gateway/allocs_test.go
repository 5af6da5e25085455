package gateway_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestCallsOfLimitersAllocateNothing: neither here nor on the way there and back, once there are calls and buffers to be used again.
func TestCallsOfLimitersAllocateNothing(t *testing.T) {
	_, gate := overRedis(t)
	require.Equal(t, "OK", gate.ask("RL.POLICY SET p FIXED 1000000 24h"))
	require.Equal(t, "OK", gate.ask("RL.POLICY SET q GCRA 1000000 1000000 24h"))
	requireNoAllocations(t, gate, "CL.THROTTLE k 1000000 1000 60", "RL.GCRA g 1000 1000000 1s", "RL.FIXED f 1000000 24h", "RL.SLIDING s 1000000 24h", "RL.TAKE 2 p {t}1 q {t}2", "GET k")
}

// TestLeasedCallsAllocateNothing: nor do those that are decided here.
func TestLeasedCallsAllocateNothing(t *testing.T) {
	_, gate := overRedis(t, leasing)
	require.Equal(t, "OK", gate.ask("RL.POLICY SET p GCRA 1000000000 1000000000 60s"))
	local := gate.field("lease_calls_local")
	requireNoAllocations(t, gate, "CL.THROTTLE k 1000000000 1000000000 60", "GCRA h 1000000000 1000000000 60", "RL.GCRA g 1000000000 1000000000 60s", "RL.TAKE 1 p t")
	require.Greater(t, gate.field("lease_calls_local")-local, int64(5_000))
}

// requireNoAllocations calls each command in pipelines, again and again.
func requireNoAllocations(t *testing.T, gate *client, lines ...string) {
	t.Helper()
	for _, line := range lines {
		const pipeline = 16
		one := string(servertest.EncodeCommand(strings.Fields(line)...))
		request := []byte(strings.Repeat(one, pipeline))
		conn, err := net.Dial("tcp", gate.addr)
		require.NoError(t, err)
		r := bufio.NewReaderSize(conn, 64<<10)
		gate.ask(line)
		gate.send(line)
		lines := strings.Count(gate.raw(), "\n") * pipeline
		failed := 0
		round := func() {
			if _, err := conn.Write(request); err != nil {
				failed++
			}
			for range lines {
				if _, err := r.ReadSlice('\n'); err != nil && err != io.EOF {
					failed++
				}
			}
		}
		for range 20 {
			round()
		}
		allocs := testing.AllocsPerRun(100, round)
		for again := 0; again < 4 && allocs >= 2; again++ { // on a busy machine more of the background falls into a round
			allocs = min(allocs, testing.AllocsPerRun(100, round))
		}
		require.Zero(t, failed)
		t.Logf("%s: %.2f allocations for %d calls", line, allocs, pipeline)
		require.Less(t, allocs, 2.0, "%s: for %d calls", line, pipeline) // the policies are looked at meanwhile
		conn.Close()
	}
}
