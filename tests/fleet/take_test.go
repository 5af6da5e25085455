package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// takeFlags are those of a gateway whose RL.TAKE spans slots.
func takeFlags(more ...string) []string {
	return append([]string{"--upstream-take", "compensate", "--policy", takePolicies}, more...)
}

// Of the first four nothing becomes free during a test; the last gets ten a second.
const takePolicies = "bucket GCRA 3 1 1h, window FIXED 3 1h, slid SLIDING 3 1h, logged LOG 3 1h, quick GCRA 10 10 1s"

type slowPolicy struct {
	name  string
	words []string // of the limiter that it names, the key left out
}

var slowPolicies = []slowPolicy{
	{"bucket", []string{"RL.GCRA", "3", "1", "1h"}},
	{"window", []string{"RL.FIXED", "3", "1h"}},
	{"slid", []string{"RL.SLIDING", "3", "1h"}},
	{"logged", []string{"RL.LOG", "3", "1h"}},
}

// ask asks the limiter itself.
func (p slowPolicy) ask(c *harness.Client, key string) harness.Value {
	return c.Ask(slices.Insert(slices.Clone(p.words), 1, key)...)
}

const slowLimit = 3

// TestTakeKilledAtEveryStep: the gateway is killed before or after each piece of data that an RL.TAKE over two slots has pass between it and
// the nodes. Whatever was charged or given back until then, what was admitted and what still is come to no more than the limit.
func TestTakeKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	cluster := harness.StartCluster(t, 2, 0, nodeTimeout)
	ts := startTurnstile(t, cluster)
	// What is left is taken by another gateway, which knows nothing of those that are killed.
	second := harness.Dial(t, harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", patient).Addr)
	kills, policies := 0, slowPolicies[:sized(1, len(slowPolicies))]
	for i, policy := range policies {
		for _, exhausted := range []bool{false, true} { // the second pair, so that the first is given back
			for _, delivered := range []bool{false, true} { // what passes when the gateway dies
				for step := 1; ; step++ {
					prefix := fmt.Sprintf("step:%d:%v:%v:%d", i, exhausted, delivered, step)
					one, other := cluster.KeyIn(0, prefix, 0), cluster.KeyIn(1, prefix, 0)
					if !takeKilledAt(t, ts, second, step, delivered, exhausted, policy, one, other) {
						require.Greater(t, step, 2, "fewer steps than a call to each node and its answer")
						break
					}
					kills++
				}
			}
		}
	}
	t.Logf("killed %d times", kills)
}

// takeKilledAt kills a gateway at a step of an RL.TAKE, and reports whether it came to that.
func takeKilledAt(t *testing.T, ts *turnstile, second *harness.Client, step int, delivered, exhausted bool, p slowPolicy, one, other string) bool {
	t.Helper()
	gateway := harness.StartGateway(t, ts.url, takeFlags(append(ts.flags, "--upstream-timeout-ms", patient)...)...)
	c := harness.Dial(t, gateway.Addr)
	// Connections and scripts are there, and one unit of each key is gone.
	require.Equal(t, "0", c.Ask("RL.TAKE", "2", p.name, one, p.name, other).Items[0].Text)
	admittedOne, admittedOther := 1, 1
	for exhausted && admittedOther < slowLimit {
		require.Equal(t, "0", p.ask(c, other).Items[0].Text)
		admittedOther++
	}

	var passed atomic.Int64
	var killed atomic.Bool
	ts.set(func(int, bool, []byte) bool {
		if passed.Add(1) != int64(step) {
			return true
		}
		killed.Store(true)
		gateway.Kill()
		return delivered
	})
	if err := c.Send(harness.Command("RL.TAKE", "2", p.name, one, p.name, other)); err == nil {
		if v, err := c.Read(harness.ReplyTimeout); err == nil {
			require.Len(t, v.Items, 3, texts(v))
			if v.Items[0].Text == "0" {
				require.False(t, exhausted, "what was used up is admitted")
				admittedOne, admittedOther = admittedOne+1, admittedOther+1
			}
		}
	}
	ts.set(nil)

	for _, of := range []struct {
		key      string
		admitted *int
	}{{one, &admittedOne}, {other, &admittedOther}} {
		takeRest := func() {
			for p.ask(second, of.key).Items[0].Text == "0" {
				*of.admitted++
				require.LessOrEqual(t, *of.admitted, slowLimit, "%s is above its limit", of.key)
			}
		}
		takeRest()
		if killed.Load() {
			continue
		}
		// The answer does not wait for what is given back, which may still be on its way.
		for deadline := time.Now().Add(harness.ReplyTimeout); *of.admitted < slowLimit && time.Now().Before(deadline); takeRest() {
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, slowLimit, *of.admitted, "without a crash nothing is lost")
	}
	return killed.Load()
}

// An admission is one unit of a key that somebody was told to have got.
type admission struct{ sent, answered time.Time }

// TestTakeNeverAdmitsTooMuch: callers take from several slots at once while what passes between the gateway and the nodes is held up at random, what
// is given back above all, and the gateway is killed now and then. No key is ever admitted more than its limit allows.
func TestTakeNeverAdmitsTooMuch(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	cluster := harness.StartCluster(t, 3, 0, nodeTimeout)
	ts := startTurnstile(t, cluster)
	var chance sync.Mutex
	ts.set(func(int, bool, []byte) bool {
		chance.Lock()
		held := time.Duration(0)
		if rnd.IntN(200) == 0 {
			held = time.Duration(rnd.Int64N(int64(200 * time.Millisecond)))
		}
		chance.Unlock()
		time.Sleep(held)
		return true
	})
	admitted := make(map[string][]admission)
	taken, limited, unanswered := 0, 0, 0
	for round := range sized(2, 40) {
		gateway := harness.StartGateway(t, ts.url, takeFlags(append(ts.flags, "--upstream-timeout-ms", "50", "--upstream-rest-ms", "20")...)...)
		var mu sync.Mutex
		var working sync.WaitGroup
		for worker := range 8 {
			c := harness.Dial(t, gateway.Addr)
			own := rand.New(rand.NewPCG(rnd.Uint64(), uint64(worker)))
			working.Go(func() {
				for {
					words, keys := drawTake(own, cluster, round)
					sent := time.Now()
					if c.Send(harness.Command(words...)) != nil {
						return
					}
					v, err := c.Read(harness.ReplyTimeout)
					if err != nil {
						return
					}
					mu.Lock()
					switch {
					case v.Kind == '-':
						unanswered++
					case v.Items[0].Text == "1":
						limited++
					default:
						taken++
						for _, key := range keys {
							admitted[key] = append(admitted[key], admission{sent, time.Now()})
						}
					}
					mu.Unlock()
					time.Sleep(time.Millisecond) // or nearly all would ask while a node rests
				}
			})
		}
		time.Sleep(sized(time.Second, 2*time.Second))
		gateway.Kill()
		working.Wait()
	}
	t.Logf("%d admitted, %d limited, %d without an answer", taken, limited, unanswered)
	require.Positive(t, taken)
	require.Positive(t, limited)
	for key, all := range admitted {
		requireWithin(t, key, all)
	}
}

// drawTake draws an RL.TAKE over two or three slots. Keys of slow limits are other ones in each round.
func drawTake(rnd *rand.Rand, cluster *harness.Cluster, round int) (words, keys []string) {
	pairs := 2 + rnd.IntN(2)
	words = []string{"RL.TAKE", strconv.Itoa(pairs)}
	first := rnd.IntN(cluster.Primaries)
	for i := range pairs {
		shard := (first + i) % cluster.Primaries
		policy, key := "quick", cluster.KeyIn(shard, "quick", rnd.IntN(2))
		if rnd.IntN(3) == 0 {
			policy = slowPolicies[rnd.IntN(len(slowPolicies))].name
			key = cluster.KeyIn(shard, fmt.Sprintf("%s:%d:%d", policy, round, rnd.IntN(4)), 0)
		}
		words, keys = append(words, policy, key), append(keys, key)
	}
	return words, keys
}

// requireWithin requires that a key was not admitted more than its limit allows, in any time.
func requireWithin(t *testing.T, key string, all []admission) {
	t.Helper()
	if key[:5] != "quick" {
		require.LessOrEqual(t, len(all), slowLimit, key)
		return
	}
	const capacity, aSecond = 10, 10
	slices.SortFunc(all, func(a, b admission) int { return a.sent.Compare(b.sent) })
	for i, first := range all {
		// Those that were sent no earlier than this one, in the order in which they were answered: the n-th has n within its time.
		later := slices.Clone(all[i:])
		slices.SortFunc(later, func(a, b admission) int { return a.answered.Compare(b.answered) })
		for n, last := range later {
			within := last.answered.Sub(first.sent)
			require.LessOrEqual(t, float64(n+1), capacity+aSecond*within.Seconds()+1, "%s within %v", key, within)
		}
	}
}
