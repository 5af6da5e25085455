package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/cmd/headgate/simulate"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"
)

var policies = []string{
	"GCRA 5 10 100ms", "GCRA 5 7 100ms", "BUCKET 3 1 20ms", "QUEUE 4 10 100ms", "FIXED 4 50ms", "FIXED 4 40ms ALIGNED", "FIXED 9 MINUTE",
	"SLIDING 5 40ms SLICES 4", "SLIDING 5 100ms", "LOG 4 50ms", "LOG 0 50ms",
}

// traffic draws requests of a few keys: bursts, and pauses in which state expires.
func traffic(seed uint64, n int, visit func(key string, ns int64)) {
	random := rand.New(rand.NewPCG(seed, 1))
	now := int64(servertest.WallAtStart)
	for range n {
		switch random.IntN(10) {
		case 0, 1, 2, 3:
		case 9:
			now += random.Int64N(200) * 1e6
		default:
			now += random.Int64N(5) * 1e6
		}
		visit(fmt.Sprint("k", random.IntN(6)), now)
	}
}

// TestDecisionsAreAServers: call by call, a simulation says all that a server says.
func TestDecisionsAreAServers(t *testing.T) {
	replay, err := simulate.NewReplay(true, policies...)
	require.NoError(t, err)
	var now int64 = servertest.WallAtStart
	s := server.New(config.NewLive(servertest.Unsaved()), server.Options{})
	s.Clock = command.NewClock(func() (wall, mono int64) { return now, now })
	live := servertest.NewWorkerClientOf(t, s)
	traffic(1, 20_000, func(key string, ns int64) {
		now = ns
		verdicts, err := replay.Take(key, ns)
		require.NoError(t, err)
		for i, policy := range policies {
			words := strings.Fields(policy)
			reply := live.Ask(append([]string{"RL." + words[0], fmt.Sprint(key, "-", i)}, words[1:]...)...)
			limited := 0
			if verdicts[i].Limited {
				limited = 1
			}
			want := fmt.Sprintf(":%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", limited, verdicts[i].Limit, verdicts[i].Remaining, verdicts[i].RetryAfter, verdicts[i].ResetAfter)
			_, got, _ := strings.Cut(reply, "\r\n")
			require.True(t, strings.HasPrefix(got, want), "%s of %s: %q, and the server %q", policy, key, want, got)
		}
	})
}

// TestBlocksAreAServers: the same of policies that block who is limited; and what the shadow would limit is shown.
func TestBlocksAreAServers(t *testing.T) {
	blocking := []string{"FIXED 4 50ms BLOCK 100ms", "GCRA 5 10 100ms BLOCK 60ms DOUBLE 500ms", "LOG 3 50ms BLOCK 10ms DOUBLE 30ms", "SLIDING 5 40ms BLOCK 1ms DOUBLE 1h"}
	var shadows []string
	for _, policy := range blocking {
		shadows = append(shadows, policy+" SHADOW")
	}
	replay, err := simulate.NewReplay(true, append(blocking, shadows...)...)
	require.NoError(t, err)
	var now int64 = servertest.WallAtStart
	s := server.New(config.NewLive(servertest.Unsaved()), server.Options{})
	s.Clock = command.NewClock(func() (wall, mono int64) { return now, now })
	live := servertest.NewWorkerClientOf(t, s)
	for i, policy := range blocking {
		live.Ask(strings.Fields(fmt.Sprint("RL.POLICY SET p", i, " ", policy))...)
	}
	limited := 0
	traffic(2, 20_000, func(key string, ns int64) {
		now = ns
		verdicts, err := replay.Take(key, ns)
		require.NoError(t, err)
		for i, policy := range blocking {
			reply := live.Ask("RL.TAKE", "1", fmt.Sprint("p", i), fmt.Sprint(key, "-", i))
			require.Equal(t, strings.HasPrefix(reply, "*3\r\n:1\r\n"), verdicts[i].Limited, "%s of %s at %d: the server %q", policy, key, ns/1e6, reply)
			require.Equal(t, verdicts[i].Limited, verdicts[len(blocking)+i].Limited)
			if verdicts[i].Limited {
				limited++
			}
		}
	})
	require.Greater(t, limited, 5000)
}

// TestSmallestLimitIsTheSmallest: the limit that is found spares as many keys as were asked for, and as it says; one less does not.
func TestSmallestLimitIsTheSmallest(t *testing.T) {
	sparedBy := func(policy string, seed uint64) int {
		replay, err := simulate.NewReplay(false, policy)
		require.NoError(t, err)
		traffic(seed, 300, func(key string, ns int64) {
			_, err := replay.Take(key, ns)
			require.NoError(t, err)
		})
		return replay.Spared()
	}
	for _, policy := range policies {
		for seed := range uint64(20) {
			replay, err := simulate.NewReplay(true, policy)
			require.NoError(t, err)
			traffic(seed, 300, func(key string, ns int64) {
				_, err := replay.Take(key, ns)
				require.NoError(t, err)
			})
			for keys := 1; keys <= replay.Keys(); keys++ {
				limit, found, spared, err := replay.Smallest(keys)
				require.NoError(t, err)
				require.GreaterOrEqual(t, spared, keys)
				require.Equal(t, spared, sparedBy(found, seed), "%s, seed %d, %d keys: %s", policy, seed, keys, found)
				if limit > 1 {
					words := strings.Fields(found)
					words[1] = fmt.Sprint(limit - 1)
					require.Less(t, sparedBy(strings.Join(words, " "), seed), keys, "%s, seed %d, %d keys: %s", policy, seed, keys, found)
				}
			}
		}
	}
}

// TestExpiredStateIsLetGo: memory is that of keys whose state has not expired.
func TestExpiredStateIsLetGo(t *testing.T) {
	replay, err := simulate.NewReplay(true, "LOG 5 50ms", "UNLIMITED")
	require.NoError(t, err)
	for i := range 10_000 {
		_, err := replay.Take(fmt.Sprint(i), servertest.WallAtStart+int64(i)*1e6)
		require.NoError(t, err)
	}
	require.Less(t, replay.Live(), 200)
	require.Equal(t, 10_000, replay.Keys())
}
