package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// A story is a key's: what is written to it first, if anything, and the calls of limiters that follow.
type story struct {
	key   string
	setup [][]string
	calls [][]string
}

const (
	storiesAtOnce = 50
	storyCalls    = 4 // at most
)

// pick returns one of several.
func pick[V any](rnd *rand.Rand, all ...V) V { return all[rnd.IntN(len(all))] }

// drawStory draws a key's story from a seed. What the seed draws is placed by the time. Everything that counts by time takes minutes or
// more, so that some milliseconds between two servers rarely make a difference but to the times that they answer.
func drawStory(seed uint64, key string, now time.Time) story {
	s, rnd := story{key: key}, rand.New(rand.NewPCG(seed, 0))
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	limit := pick(rnd, 1, 2, 3, 7, 10, 60, 999)
	period := pick(rnd, "10m", "1h", "7h", "3d")
	cost := func() []string {
		n := pick(rnd, 1, 1, 1, 2, limit/2, limit, limit+1, -1, -limit, 0)
		words := []string{"COST", strconv.Itoa(n)}
		if rnd.IntN(8) == 0 {
			words = append(words, "PEEK")
		}
		return words
	}
	ahead := rnd.Int64N(2 * int64(time.Hour))
	ends := number(now.UnixMilli() + ahead/int64(time.Millisecond) + 1)
	repeat := func(call func() []string) {
		for range 1 + rnd.IntN(storyCalls) {
			s.calls = append(s.calls, call())
		}
	}
	set := func(value string) {
		if rnd.IntN(2) == 0 {
			s.setup = append(s.setup, []string{"SET", key, value, "PXAT", ends})
		}
	}
	switch rnd.IntN(7) {
	case 0:
		set(number(now.UnixNano() + ahead))
		count, seconds := pick(rnd, "1", "7", "30", "999"), pick(rnd, "3600", "86400", "1000003")
		repeat(func() []string {
			return []string{"CL.THROTTLE", key, strconv.Itoa(limit - 1), count, seconds, strconv.Itoa(pick(rnd, 1, 1, 2, limit, limit+1, -1, 0))}
		})
	case 1:
		set(number(now.UnixNano() + ahead))
		count := pick(rnd, "1", "2.5e3", "30", "7")
		if count == "2.5e3" {
			count = "25"
		}
		repeat(func() []string {
			return []string{"GCRA", key, strconv.Itoa(limit - 1), count, pick(rnd, "3600", "86400.25", "1e6"), "TOKENS", strconv.Itoa(pick(rnd, 1, 1, 2, limit, 0))}
		})
	case 2:
		set(number(now.UnixNano() + ahead))
		command, count := pick(rnd, "RL.GCRA", "RL.BUCKET", "RL.QUEUE"), pick(rnd, "1", "3", "7", "10")
		repeat(func() []string {
			return append([]string{command, key, strconv.Itoa(limit), count, period}, cost()...)
		})
	case 3:
		set(strconv.Itoa(rnd.IntN(limit + 2)))
		repeat(func() []string { return append([]string{"RL.FIXED", key, strconv.Itoa(limit), period}, cost()...) })
	case 4:
		// Ten slices of an hour. Nothing is drawn for the one that fades, which counts by the time.
		slice := int64(time.Hour / time.Millisecond)
		at := now.UnixMilli() / slice * slice
		if rnd.IntN(2) == 0 {
			s.setup = append(s.setup, []string{"HSET", key, number(at - slice*rnd.Int64N(9)), strconv.Itoa(1 + rnd.IntN(limit+1))})
		}
		repeat(func() []string { return append([]string{"RL.SLIDING", key, strconv.Itoa(limit), "10h"}, cost()...) })
	case 5:
		if rnd.IntN(2) == 0 {
			add := []string{"ZADD", key}
			for i := range 1 + rnd.IntN(min(limit, 9)) {
				add = append(add, number(now.UnixMilli()-1-rnd.Int64N(int64(2*time.Hour/time.Millisecond))), fmt.Sprint("m", i))
			}
			s.setup = append(s.setup, add, []string{"PEXPIREAT", key, number(now.Add(2 * time.Hour).UnixMilli())})
		}
		repeat(func() []string {
			if rnd.IntN(2) == 0 {
				return []string{"RL.LOG", key, strconv.Itoa(limit), "1h", "MEMBER", fmt.Sprint("m", rnd.IntN(12))}
			}
			return append([]string{"RL.LOG", key, strconv.Itoa(limit), "1h"}, cost()...)
		})
	case 6:
		repeat(func() []string {
			member := fmt.Sprint("m", rnd.IntN(5))
			return pick(rnd, []string{"RL.ACQUIRE", key, strconv.Itoa(limit), "1h", "MEMBER", member},
				[]string{"RL.ACQUIRE", key, strconv.Itoa(limit), "1h", "MEMBER", member}, []string{"RL.RELEASE", key, member},
				[]string{"RL.RENEW", key, member, "2h"})
		})
	}
	return s
}

// ask sends all commands at once and returns their replies.
func ask(t *testing.T, c *harness.Client, commands [][]string) []harness.Value {
	t.Helper()
	var request []byte
	for _, words := range commands {
		request = append(request, harness.Command(words...)...)
	}
	require.NoError(t, c.Send(request))
	replies := make([]harness.Value, len(commands))
	for i := range replies {
		v, err := c.Read(harness.ReplyTimeout)
		require.NoError(t, err, "%v", commands[i])
		replies[i] = v
	}
	return replies
}

// askInTurns has stories told at once, of each a command at a time, and each turn in a millisecond of its own. Commands for one key that come
// together are of one instant to a script that runs several calls, and to a server that keeps its state itself; and of entries that a log
// got within one millisecond a refund removes the one whose name sorts last, not the one that came last. The replies are those of one story
// after another.
func askInTurns(t *testing.T, c *harness.Client, stories [][][]string) (replies []harness.Value) {
	t.Helper()
	told := make([][]harness.Value, len(stories))
	for turn, more := 0, true; more; turn++ {
		var commands [][]string
		var of []int
		for i, story := range stories {
			if turn < len(story) {
				commands, of = append(commands, story[turn]), append(of, i)
			}
		}
		for i, v := range ask(t, c, commands) {
			told[of[i]] = append(told[of[i]], v)
		}
		more = len(commands) > 0
		time.Sleep(2 * time.Millisecond)
	}
	return slices.Concat(told...)
}

// compareStories compares what two servers answer to the same, a slice of commands for each story, at most slack apart, and returns what was answered
// otherwise: for each such story a line.
func compareStories(commands [][][]string, want, got []harness.Value, slack time.Duration) map[int]string {
	different := make(map[int]string)
	at := 0
	for i, of := range commands {
		for j, words := range of {
			ours, theirs := want[at+j], got[at+j]
			near := max(1, tolerance(step{words: words}, slack)) // seconds are rounded up, wherever in a second they are
			same := withTimesOf(ours, theirs, near).Wire() == ours.Wire()
			if _, found := different[i]; !same && !found {
				different[i] = fmt.Sprintf("%q after %q: %s, and %s", words, of[:j], texts(ours), texts(theirs))
			}
		}
		at += len(of)
	}
	return different
}

// requireStories has stories told, which are drawn from the seeds given, until the two servers agree on each. Told apart by a few
// milliseconds, a story may turn out otherwise because something became free between: then it is told again by itself, somewhat later in
// its time, and must not differ again and again.
func requireStories(t *testing.T, seeds []uint64, tell func(stories []story, round int) map[int]string) {
	t.Helper()
	draw := func(seed uint64, round int) story {
		return drawStory(seed, fmt.Sprintf("story:%d:%d", seed, round), time.Now().Add(-time.Duration(round)*7*time.Second))
	}
	stories := make([]story, len(seeds))
	for i, seed := range seeds {
		stories[i] = draw(seed, 0)
	}
	for i, why := range tell(stories, 0) {
		for round := 1; why != ""; round++ {
			require.Less(t, round, 4, why)
			why = tell([]story{draw(seeds[i], round)}, round)[0]
		}
	}
}

func drawSeeds(rnd *rand.Rand, n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = rnd.Uint64()
	}
	return seeds
}

// TestAgreement: random calls on random state are answered by a gateway as by a headgate that keeps its state itself, and no script has
// decided other than the arithmetic.
func TestAgreement(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	native := harness.Start(t)
	gateway := harness.StartGateway(t, harness.StartCluster(t, 3, 0, nodeTimeout).URL(), "--upstream-timeout-ms", patient)
	ours, theirs := harness.Dial(t, native.Addr), harness.Dial(t, gateway.Addr)
	calls := 0
	for calls < sized(3000, 1_000_000) {
		requireStories(t, drawSeeds(rnd, storiesAtOnce), func(stories []story, _ int) map[int]string {
			commands := make([][][]string, len(stories))
			for i, s := range stories {
				commands[i] = slices.Concat(s.setup, s.calls)
				calls += len(s.calls)
			}
			from := time.Now()
			want := askInTurns(t, ours, commands)
			got := askInTurns(t, theirs, commands)
			return compareStories(commands, want, got, time.Since(from))
		})
	}
	agrees(t, gateway)
	t.Logf("%d calls", calls)
}

// TestManyAtOnce: a client that sends thousands of commands at once gets all replies, in the order of its commands, though the nodes of a
// cluster answer in theirs.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	gateway := harness.StartGateway(t, harness.StartCluster(t, 3, 0, nodeTimeout).URL(), "--upstream-timeout-ms", patient)
	c := harness.Dial(t, gateway.Addr)
	for _, n := range []int{100, 1000, sized(5000, 200_000)} {
		var request []byte
		for i := range n {
			words := []string{"RL.FIXED", fmt.Sprint("many:", n, ":", i), fmt.Sprint(i + 1), "1h"}
			if i%10 == 0 { // answered here, behind what is not
				words = []string{"ECHO", fmt.Sprint(i)}
			}
			request = append(request, harness.Command(words...)...)
		}
		sent := make(chan error, 1)
		go func() { sent <- c.Send(request) }()
		for i := range n {
			v, err := c.Read(harness.ReplyTimeout)
			require.NoError(t, err, "reply %d of %d", i, n)
			if i%10 == 0 {
				require.Equal(t, fmt.Sprint(i), v.Text)
			} else {
				require.Equal(t, fmt.Sprintf("0 %d %d -1 3600000", i+1, i), texts(v))
			}
		}
		require.NoError(t, <-sent)
	}
}

// TestStateMoves: what a headgate has stored goes on before a cluster, and from there in another headgate, as if nothing had happened.
func TestStateMoves(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	cluster := harness.StartCluster(t, 3, 0, nodeTimeout)
	first, last := harness.Start(t, "--enable-restore-command", "yes"), harness.Start(t, "--enable-restore-command", "yes")
	gateway := harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", patient)
	asksFirst, asksLast, asksGateway := harness.Dial(t, first.Addr), harness.Dial(t, last.Addr), harness.Dial(t, gateway.Addr)

	nodes := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: cluster.Addrs()})
	defer func() { _ = nodes.Close() }()
	starts, ends := goredis.NewClient(&goredis.Options{Addr: first.Addr}), goredis.NewClient(&goredis.Options{Addr: last.Addr})
	defer func() { _, _ = starts.Close(), ends.Close() }()

	const atOnce = 500
	for done := 0; done < sized(500, 10_000); done += atOnce {
		requireStories(t, drawSeeds(rnd, atOnce), func(stories []story, _ int) map[int]string {
			before, next := make([][][]string, len(stories)), make([][][]string, len(stories))
			for i, s := range stories {
				before[i], next[i] = slices.Concat(s.setup, s.calls), s.calls
			}
			askInTurns(t, asksFirst, before)

			from := time.Now()
			copyKeys(t, stories, starts, nodes)
			want, got := askInTurns(t, asksFirst, next), askInTurns(t, asksGateway, next)
			if different := compareStories(next, want, got, time.Since(from)); len(different) > 0 {
				return different
			}
			copyKeys(t, stories, nodes, ends)
			want, got = askInTurns(t, asksFirst, next), askInTurns(t, asksLast, next)
			return compareStories(next, want, got, time.Since(from))
		})
	}
	agrees(t, gateway)
}

// keyMover is what it takes to copy keys; pipelines of a cluster go to the keys' nodes.
type keyMover interface {
	Pipelined(ctx context.Context, fn func(goredis.Pipeliner) error) ([]goredis.Cmder, error)
}

// copyKeys copies the stories' keys as they are, with their expiry.
func copyKeys(t *testing.T, stories []story, from, to keyMover) {
	t.Helper()
	ctx := context.Background()
	dumps, times := make([]*goredis.StringCmd, len(stories)), make([]*goredis.DurationCmd, len(stories))
	_, _ = from.Pipelined(ctx, func(p goredis.Pipeliner) error { // its error is that of a key that is not there
		for i, s := range stories {
			dumps[i], times[i] = p.Dump(ctx, s.key), p.PExpireTime(ctx, s.key)
		}
		return nil
	})
	_, err := to.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, s := range stories {
			dump, err := dumps[i].Result()
			if err == goredis.Nil {
				continue
			}
			require.NoError(t, err)
			p.Do(ctx, "RESTORE", s.key, max(0, times[i].Val().Milliseconds()), dump, "REPLACE", "ABSTTL")
		}
		return nil
	})
	require.NoError(t, err)
}
