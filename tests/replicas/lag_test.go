package replicas

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	lagQuota       = 1_000_000              // that all callers share; the rest of it they could use up afterwards
	lagWrites      = 100 * time.Millisecond // for which they write beside a replica that does not hear of it, at most
	smallestEffect = 30                     // bytes of the stream that a charge takes up at least
)

// lagging are callers of a primary that is about to be killed, who wait for no replica: what each was told to be added, and how many calls of
// a limit have passed.
type lagging struct {
	group  sync.WaitGroup
	added  [failoverWriter]int
	passed [failoverWriter]int
}

func lagKey(round, writer int) string { return fmt.Sprintf("lag%d:writer%d", round, writer) }

func limitCall(round int) []byte {
	return harness.Command("RL.FIXED", "quota"+strconv.Itoa(round), strconv.Itoa(lagQuota), "1h")
}

// startLagging has callers add numbers to lists and ask for a limit until the server is gone.
func startLagging(t *testing.T, server *harness.Server, round int) *lagging {
	l := &lagging{}
	for i := range failoverWriter {
		c := harness.Dial(t, server.Addr)
		l.group.Go(func() {
			defer c.Close()
			for n := 0; ; n++ {
				if c.Send(append(harness.Command("RPUSH", lagKey(round, i), strconv.Itoa(n)), limitCall(round)...)) != nil {
					return
				}
				if _, err := c.Read(wait); err != nil {
					return
				}
				l.added[i]++
				reply, err := c.Read(wait)
				if err != nil {
					return
				}
				if len(reply.Items) > 0 && reply.Items[0].Text == "0" {
					l.passed[i]++
				}
			}
		})
	}
	return l
}

// TestKilledPrimaryForgetsTheLag kills the primary whose replica is behind under callers who do not wait for that: what they were told and is
// gone is the end of the stream, no more than the lag that INFO has shown, and a limit admits no more calls twice than have been forgotten.
func TestKilledPrimaryForgetsTheLag(t *testing.T) {
	t.Parallel()
	g := harness.StartGuarded(t, 2, 3, timing, "--repl-diskless-sync-delay", "0")
	acknowledged, lost, lag, beyond := 0, 0, 0, 0
	rounds := (*kills + 1) / 2
	for round := range rounds {
		primary := g.Primary()
		p, replica := harness.Dial(t, g.Servers[primary].Addr), g.Servers[1-primary]
		l := startLagging(t, g.Servers[primary], round)
		acked := func(info map[string]string) (offset int, there bool) {
			_, after, _ := strings.Cut(info["slave0"], ",offset=")
			text, _, _ := strings.Cut(after, ",")
			offset, err := strconv.Atoi(text)
			return offset, err == nil
		}
		time.Sleep(rand.N(lagWrites))
		from, there := acked(p.Info("replication"))
		require.True(t, there)
		require.NoError(t, replica.Stall())
		if round%2 == 0 { // else what is on its way arrives
			p.Ask("CLIENT", "KILL", "TYPE", "replica")
		}
		time.Sleep(lagWrites/4 + rand.N(lagWrites))
		require.Equal(t, "OK", p.Ask("CLIENT", "PAUSE", "60000", "WRITE").Text)
		info := p.Info("replication")
		if at, there := acked(info); there {
			from = at
		}
		end, err := strconv.Atoi(info["master_repl_offset"])
		require.NoError(t, err)
		g.Servers[primary].Kill()
		l.group.Wait()
		require.NoError(t, replica.Resume())
		await(t, "the replica takes the place", func() bool { return g.Primary() == 1-primary })

		gone := 0
		for i, added := range l.added {
			acknowledged += added
			have := askAgain(t, replica, "LRANGE", lagKey(round, i), "0", "-1").Strings()
			for n := range min(added, len(have)) {
				require.Equal(t, strconv.Itoa(n), have[n], "something in the middle of the stream has gone")
			}
			for n := len(have); n < added; n++ {
				lost++
				gone += len(harness.Command("RPUSH", lagKey(round, i), strconv.Itoa(n)))
			}
		}
		lag += end - from
		require.LessOrEqual(t, gone, end-from, "round %d: more bytes of the stream are gone than INFO has said the replica lacks", round)

		passed := 0
		for _, n := range l.passed {
			passed += n
		}
		left, err := strconv.Atoi(askAgain(t, replica, "RL.FIXED", "quota"+strconv.Itoa(round), strconv.Itoa(lagQuota), "1h", "PEEK").Items[2].Text)
		require.NoError(t, err)
		passed += left
		if passed > lagQuota {
			beyond += passed - lagQuota
			require.LessOrEqual(t, passed-lagQuota, (end-from)/smallestEffect, "round %d: %d calls of %d have passed, with a lag of %d bytes", round, passed, lagQuota, end-from)
		}
		g.Restart(primary)
		g.AwaitWhole()
	}
	t.Logf("%d kills: of %d acknowledged writes %d were lost, and %d calls passed beyond their limits, where the lags of %d bytes in all were shown", rounds, acknowledged, lost, beyond, lag)
	require.Positive(t, lost, "no replica was behind")
}
