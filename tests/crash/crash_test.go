// Package crash kills the server in the middle of its work, and looks at what the next one finds.
package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	kills = flag.Int("crash.kills", 10, "how often the server is killed")
	seed  = flag.Uint64("crash.seed", 0, "seed of the times at which it is killed; 0 draws one")
)

const (
	writers     = 16
	longestLife = 400 * time.Millisecond
	// The limiter gives nothing back for a thousand seconds, so that what remains says how often it was charged.
	limiterCalls  = 100_000
	limiterCount  = "1000000"
	limiterPeriod = "1000000000"
)

// operation is one way of writing a number so that it can be read back.
type operation struct {
	name string
	// write has the n-th write done, and reports an error only if it may not have happened.
	write func(c *harness.Client, key string, n int) error
	// read returns the number of the last write that the data have. It fails if only a part of one is there.
	read func(t *testing.T, c *harness.Client, key string) int
}

var operations = []operation{
	{"SET", func(c *harness.Client, key string, n int) error {
		return ask(c, '+', "SET", key, strconv.Itoa(n))
	}, readString},
	{"ZADD", func(c *harness.Client, key string, n int) error {
		return ask(c, ':', "ZADD", key, strconv.Itoa(n), "member")
	}, func(t *testing.T, c *harness.Client, key string) int {
		return number(t, c.Ask("ZSCORE", key, "member"))
	}},
	{"HSET", func(c *harness.Client, key string, n int) error {
		return ask(c, ':', "HSET", key, "field", strconv.Itoa(n))
	}, func(t *testing.T, c *harness.Client, key string) int { return number(t, c.Ask("HGET", key, "field")) }},
	{"INCR", func(c *harness.Client, key string, n int) error {
		return ask(c, ':', "INCR", key)
	}, readString},
	{"CL.THROTTLE", func(c *harness.Client, key string, n int) error {
		return ask(c, '*', "CL.THROTTLE", key, strconv.Itoa(limiterCalls-1), limiterCount, limiterPeriod)
	}, func(t *testing.T, c *harness.Client, key string) int {
		reply := c.Ask("CL.THROTTLE", key, strconv.Itoa(limiterCalls-1), limiterCount, limiterPeriod, "0")
		require.Len(t, reply.Items, 5)
		return limiterCalls - number(t, reply.Items[2])
	}},
	{"EVAL", func(c *harness.Client, key string, n int) error {
		return ask(c, '+', "EVAL", "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('SET', KEYS[2], ARGV[1])", "2", key, key+":twin", strconv.Itoa(n))
	}, readTwins},
	{"MULTI", func(c *harness.Client, key string, n int) error {
		var all []byte
		for _, command := range [][]string{{"MULTI"}, {"SET", key, strconv.Itoa(n)}, {"SET", key + ":twin", strconv.Itoa(n)}, {"EXEC"}} {
			all = append(all, harness.Command(command...)...)
		}
		if err := c.Send(all); err != nil {
			return err
		}
		for range 3 {
			if _, err := c.Read(harness.ReplyTimeout); err != nil {
				return err
			}
		}
		return expect(c, '*')
	}, readTwins},
}

func ask(c *harness.Client, kind byte, words ...string) error {
	if err := c.Send(harness.Command(words...)); err != nil {
		return err
	}
	return expect(c, kind)
}

// expect reads a reply of a type.
func expect(c *harness.Client, kind byte) error {
	reply, err := c.Read(harness.ReplyTimeout)
	if err == nil && reply.Kind != kind {
		err = fmt.Errorf("%q instead of a reply of type %c", reply.Wire(), kind)
	}
	return err
}

func readString(t *testing.T, c *harness.Client, key string) int { return number(t, c.Ask("GET", key)) }

// readTwins reads two keys that are only ever written together.
func readTwins(t *testing.T, c *harness.Client, key string) int {
	one, other := readString(t, c, key), readString(t, c, key+":twin")
	require.Equal(t, one, other, "half of a unit is there: %s", key)
	return one
}

func number(t *testing.T, v harness.Value) int {
	if v.Null {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	require.NoError(t, err, v.Wire())
	return n
}

// progress is how far one writer has come with one operation.
type progress struct{ sent, acknowledged int }

// TestKill9: a server that is killed at any moment has lost nothing that it had acknowledged, and no transaction or script by half.
func TestKill9(t *testing.T) {
	drawn := *seed
	if drawn == 0 {
		drawn = rand.Uint64()
	}
	t.Logf("-crash.seed %d", drawn)
	for i, policy := range []string{"always", "everysec", "no"} {
		t.Run(policy, func(t *testing.T) {
			n := *kills / 2
			if policy == "no" {
				n = max(*kills/10, 1)
			}
			killOften(t, policy, n, rand.New(rand.NewPCG(drawn, uint64(i))))
		})
	}
}

func killOften(t *testing.T, policy string, times int, rnd *rand.Rand) {
	dir := t.TempDir()
	var state [writers][]progress
	for i := range state {
		state[i] = make([]progress, len(operations))
	}
	total := 0
	for life := range times + 1 {
		s := harness.StartIn(t, dir, "--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-min-size", "64kb")
		checkAll(t, s, &state, life)
		if life == times {
			break
		}
		total += writeUntilKilled(t, s, &state, time.Duration(rnd.Int64N(int64(longestLife))))
	}
	t.Logf("%d kills, %d writes acknowledged, none lost", times, total)
}

// writeUntilKilled has all writers write at once, kills the server after a while, and returns how many writes were acknowledged.
func writeUntilKilled(t *testing.T, s *harness.Server, state *[writers][]progress, life time.Duration) int {
	var all sync.WaitGroup
	var counts [writers]int
	for i := range state {
		c, err := harness.TryDial(t, s.Addr)
		require.NoError(t, err)
		all.Go(func() { counts[i] = writeOn(c, i, state[i]) })
	}
	time.Sleep(life) // when it happens is what is random
	s.Kill()
	all.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// writeOn writes until the server is gone.
func writeOn(c *harness.Client, writer int, mine []progress) (acknowledged int) {
	defer c.Close()
	for {
		for i, op := range operations {
			mine[i].sent++
			if op.write(c, keyOf(writer, op), mine[i].sent) != nil {
				return acknowledged
			}
			mine[i].acknowledged = mine[i].sent
			acknowledged++
		}
	}
}

func keyOf(writer int, op operation) string { return fmt.Sprintf("%s:%d", op.name, writer) }

// checkAll compares the data with what was acknowledged, and has the writers go on from there.
func checkAll(t *testing.T, s *harness.Server, state *[writers][]progress, life int) {
	c := harness.Dial(t, s.Addr)
	for writer := range state {
		for i, op := range operations {
			p := &state[writer][i]
			got := op.read(t, c, keyOf(writer, op))
			require.GreaterOrEqual(t, got, p.acknowledged, "%s of writer %d is lost after kill %d", op.name, writer, life)
			require.LessOrEqual(t, got, p.sent, "%s of writer %d was never sent; after kill %d", op.name, writer, life)
			p.sent, p.acknowledged = got, got
		}
	}
}
