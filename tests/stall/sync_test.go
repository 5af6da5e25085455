package stall

import (
	"encoding/json"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	syncTime    = 2 * time.Minute        // in which a replica has all keys, however many there are
	reportEvery = 100 * time.Millisecond // how often a replica says that it is there
)

// TestFullSync measures what a full sync of all keys takes: how fast a headgate loads it with nothing beside, what requests wait for at half of the
// most that the primary can do, with and without a replica that takes the snapshot as fast as it comes, and what memory the primary needs for it. Only
// memory can fail.
func TestFullSync(t *testing.T) {
	logSeed(t)
	s := harness.StartUnder(t, harness.Pinned(0), "--repl-diskless-sync-delay", "0", "--client-output-buffer-limit", "replica 0 0 0")
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	load(t, c, func(i int) []string {
		return strings.Fields(strings.Replace(loadCommand, "__key__", strconv.Itoa(1_000_000_000_000 + i)[1:], 1))
	})

	memory := watchMemory(t, s)
	began := time.Now()
	replica := harness.Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Port))
	awaitSync(t, s, 1)
	took := loading(t, replica)
	t.Logf("a headgate has loaded %d keys %v after it was started, %v of them for the data: %.0f keys a second", *keys, time.Since(began).Round(time.Millisecond), took, float64(*keys)/took.Seconds())
	require.Equal(t, strconv.Itoa(*keys), harness.Dial(t, replica.Addr).Ask("DBSIZE").Text)
	memory("a full sync with nothing beside it")
	require.NoError(t, replica.Terminate())

	capacity := 0.0
	for range capacityRuns {
		capacity = max(capacity, runLoad(t, s.Addr, 0, *quiet/capacityRuns).PerSecond)
	}
	rate := float64(int(capacity / 2))
	t.Logf("%.0f a second at most; %.0f, half of them:", capacity, rate)
	var alone, beside halfRuns
	for round := range *rounds {
		alone.add(t, "nothing beside it", runLoad(t, s.Addr, rate, *quiet), "")
		memory := watchMemory(t, s)
		took := make(chan time.Duration, 1)
		go func() {
			time.Sleep(*quiet / jobAfter)
			begun := time.Now()
			follower := followByHand(t, s)
			awaitSync(t, s, 2+round)
			took <- time.Since(begun)
			_ = follower.Close()
		}()
		report := runLoad(t, s.Addr, rate, *quiet)
		beside.add(t, "a full sync, "+(<-took).Round(jobLook).String(), report, "")
		memory("a full sync at half load")
	}
	t.Logf("p99.9 beside a full sync: %.1f times that with nothing beside it, in the median", median(beside.p999)/median(alone.p999))
}

// awaitSync returns when so many replicas have been sent all data since the server's start.
func awaitSync(t *testing.T, s *harness.Server, replicas int) {
	deadline := time.Now().Add(syncTime)
	for strings.Count(s.Log(), "a replica has all data") < replicas {
		if time.Now().After(deadline) {
			t.Error("the replica does not get all data")
			return
		}
		time.Sleep(jobLook / 10)
	}
}

// loading is how long a replica says that it has taken to load its primary's data.
func loading(t *testing.T, replica *harness.Server) time.Duration {
	t.Helper()
	for line := range strings.Lines(replica.Log()) {
		var event struct{ Msg, Took string }
		if json.Unmarshal([]byte(line), &event) == nil && event.Msg == "the primary's data are loaded" {
			took, err := time.ParseDuration(event.Took)
			require.NoError(t, err)
			return max(took, time.Millisecond)
		}
	}
	require.FailNow(t, "the replica has not loaded anything")
	return 0
}

// watchMemory returns what tells how much more memory a server has had since.
func watchMemory(t *testing.T, s *harness.Server) (tell func(what string)) {
	t.Helper()
	before := s.RSS()
	require.NoError(t, s.ResetPeak())
	return func(what string) {
		t.Helper()
		peak, err := s.Status("VmHWM")
		require.NoError(t, err)
		t.Logf("%s: %+.1f %% memory, from %s to %s", what, 100*(float64(peak)/float64(before)-1), mebibytes(before), mebibytes(peak))
		require.LessOrEqual(t, float64(peak), float64(before)*(1+share)+slack, what)
	}
}

// followByHand asks a primary for all of its data, and reads whatever comes as fast as that does.
func followByHand(t *testing.T, primary *harness.Server) net.Conn {
	conn, err := net.Dial("tcp", primary.Addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, words := range [][]string{{"REPLCONF", "capa", "eof", "capa", "psync2"}, {"PSYNC", "?", "-1"}} {
		_, _ = conn.Write(harness.Command(words...))
		if _, err := io.ReadFull(conn, make([]byte, len("+OK\r\n"))); err != nil { // PSYNC has to be alone; its answer is longer
			t.Error(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	go func() {
		for {
			if _, err := conn.Write(harness.Command("REPLCONF", "ACK", "0")); err != nil {
				return
			}
			time.Sleep(reportEvery)
		}
	}()
	return conn
}
