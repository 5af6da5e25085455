package random

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	nativeLimits = 6 // one command in so many is a limiter's
	limitedKeys  = 40
	slowCutPause = 2 * time.Second // between two cuts of redis-server's link, at most: it tries again once a second
)

// TestReplicasHaveWhatHeadgateHas sends random commands to a headgate which a redis-server and a headgate follow, over links that are cut again
// and again, and compares all keys with their times.
func TestReplicasHaveWhatHeadgateHas(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	t.Logf("seed %d, %d commands", first, *replicated)
	primary := harness.Start(t, append(logged, "--repl-diskless-sync-delay", "0", "--repl-backlog-size", backlogBytes)...)
	var proxies []*harness.Proxy
	follow := func() []string {
		proxies = append(proxies, harness.StartProxy(t, primary.Addr))
		return []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(proxies[len(proxies)-1].Port)}
	}
	replicas := []*harness.Server{harness.StartReference(t, follow()...), harness.Start(t, append(logged, follow()...)...)}
	client := harness.Dial(t, primary.Addr)
	var watchers []*harness.Client
	for _, replica := range replicas {
		watchers = append(watchers, harness.Dial(t, replica.Addr))
	}
	s := &stream{
		dice:     &dice{rand.New(rand.NewPCG(first, 1)), time.Now().Unix()},
		commands: commandsBut(t, notReplicated, harness.Dial(t, replicas[0].Addr), harness.Dial(t, primary.Addr)),
	}
	client.Ask("RL.POLICY", "SET", "many", "GCRA", "10", "20", "1s")
	client.Ask("RL.POLICY", "SET", "few", "SLIDING", "3", "2s")
	calm, stop := cutAgainAndAgain(first, cut{proxies[0], slowCutPause}, cut{proxies[1], cutPause})
	compare := func(when string) {
		for i, replica := range replicas {
			harness.AwaitSame(t, client, watchers[i])
			requireAlike(t, fmt.Sprintf("%s as a replica, %s", replica.Name, when), contents(t, primary), contents(t, replica))
		}
	}
	compared := 0
	for done := 0; done < *replicated; {
		if done-compared >= compareEach {
			compared = done
			calm(func() { compare(fmt.Sprintf("after %d commands", done)) })
		}
		var out []byte
		n := 0
		for n < batch || len(s.queued) > 0 {
			next := s.next()
			if len(s.queued) == 0 && s.one(nativeLimits) && next.name != "exec" && next.name != "discard" {
				next = s.limit()
			}
			out = append(out, harness.Command(next.args...)...)
			n++
		}
		go func() { _ = client.Send(out) }()
		for range n {
			_, err := client.Read(replyTime)
			require.NoError(t, err)
		}
		done += n
	}
	stop()
	compare("in the end")
	require.Equal(t, "0", watchers[1].Info("replication")["replica_failed_commands"], replicas[1].Log())
	stats := client.Info("stats")
	t.Logf("%d and %d links, %s full and %s partial syncs, %s refused, offset %s", proxies[0].Connections(), proxies[1].Connections(),
		stats["sync_full"], stats["sync_partial_ok"], stats["sync_partial_err"], client.Info("replication")["master_repl_offset"])
	require.NotEqual(t, "0", stats["sync_partial_ok"])

	want := contents(t, primary)
	for i, replica := range replicas {
		requireAlike(t, replica.Name+" that goes on by itself", want, contents(t, replica))
		require.Equal(t, "+OK\r\n", string(watchers[i].Do("REPLICAOF", "NO", "ONE")))
		require.Equal(t, client.Info("replication")["master_replid"], watchers[i].Info("replication")["master_replid2"])
	}
	primary.Kill()
	again := harness.StartIn(t, primary.Dir, logged...)
	requireAlike(t, "the primary, from its log", want, contents(t, again))
}

// limit draws a call of a limiter.
func (s *stream) limit() sent {
	key := "rl:" + strconv.Itoa(s.IntN(limitedKeys))
	n := strconv.Itoa(1 + s.IntN(4))
	window := s.pick("200ms", "1s", "3s", "1m")
	switch s.IntN(11) {
	case 0:
		return plain("CL.THROTTLE", "cl:"+key, "5", "10", "2", n)
	case 1:
		return plain("RL.BUCKET", "b:"+key, "5", "1", window, "COST", n)
	case 2:
		return plain("RL.FIXED", "f:"+key, "10", window, "COST", n)
	case 3:
		return plain("RL.SLIDING", "s:"+key, "10", window, "COST", n)
	case 4:
		return plain("RL.LOG", "l:"+key, "10", window, "COST", n)
	case 5:
		return plain("RL.LOG", "m:"+key, "10", window, "MEMBER", n)
	case 6:
		return plain("RL.ACQUIRE", "a:"+key, "3", window, "MEMBER", n)
	case 7:
		return plain("RL.RELEASE", "a:"+key, n)
	case 8:
		return plain("RL.TAKE", "2", "many", "take:"+key, "few", "take:s:"+key, "COST", n)
	case 9:
		return plain("RL.RESET", s.pick("cl:", "s:", "l:", "take:")+key)
	default:
		return plain("GCRA", "cl:"+key, "5", "10", "0.5", "TOKENS", n)
	}
}
