// Package linear checks that what clients see who work on the same keys at once could have come about one command after another: each
// at some instant between its call and its reply.
package linear

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	histories  = flag.Int("linear.histories", 5, "histories to check; make linear checks 50")
	operations = flag.Int("linear.ops", 5000, "operations in each history")
	seedFlag   = flag.Uint64("linear.seed", 0, "seed; 0 takes one from the clock")
)

const (
	clients = 12
	groups  = 6

	// checkTimeout bounds the search; running into it is a failure.
	checkTimeout = 2 * time.Minute
)

func TestLinearizable(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C tests ./linear -linear.seed %d", seed)
	policies := fmt.Sprintf("bucket GCRA %d 1 1h, window FIXED %d 1h", gcraLimit, fixedLimit)
	servers := []*harness.Server{ // which take turns
		harness.Start(t, "--policy", policies),
		harness.Start(t, "--policy", policies, "--io-threads", "2"),
	}
	overlapping := 0
	for n := range *histories {
		server := servers[n%len(servers)]
		harness.Dial(t, server.Addr).Do("FLUSHALL")
		history := record(t, server, seed+uint64(n), *operations/clients)
		overlapping += overlaps(history)
		result, info := porcupine.CheckOperationsVerbose(model, history, checkTimeout)
		if result != porcupine.Ok {
			path := t.TempDir() + "/history.html"
			if err := porcupine.VisualizePath(model, info, path); err == nil {
				t.Logf("see %s", path)
			}
		}
		require.Equal(t, porcupine.Ok, result, "history %d of %d operations", n, len(history))
	}
	t.Logf("%d histories of %d operations, %d of which began while another was under way", *histories, *operations/clients*clients, overlapping)
	require.Positive(t, overlapping, "nothing was concurrent")
}

// overlaps counts the operations that were called before an earlier one had returned.
func overlaps(history []porcupine.Operation) int {
	sorted := slices.SortedFunc(slices.Values(history), func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	n, last := 0, int64(-1)
	for _, op := range sorted {
		if op.Call < last {
			n++
		}
		last = max(last, op.Return)
	}
	return n
}

// record has all clients make their calls at once.
func record(t *testing.T, server *harness.Server, seed uint64, each int) []porcupine.Operation {
	t.Helper()
	var mu sync.Mutex
	var history []porcupine.Operation
	var work sync.WaitGroup
	start := time.Now()
	errs := make(chan error, clients)
	for id := range clients {
		c := harness.Dial(t, server.Addr)
		rnd := rand.New(rand.NewPCG(seed, uint64(id)))
		work.Go(func() {
			for range each {
				in := draw(rnd)
				call := int64(time.Since(start))
				out, err := run(c, in)
				if err != nil {
					errs <- err
					return
				}
				op := porcupine.Operation{ClientId: id, Input: in, Call: call, Output: out, Return: int64(time.Since(start))}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	return history
}

// names are the kinds in a fixed order, so that a seed repeats a history's calls.
var names = func() []string {
	var list []string
	for name := range kinds {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}()

func draw(rnd *rand.Rand) input {
	in := input{group: rnd.IntN(groups), steps: []operation{drawOperation(rnd)}}
	if in.multi = rnd.IntN(5) == 0; in.multi {
		for range 1 + rnd.IntN(3) {
			in.steps = append(in.steps, drawOperation(rnd))
		}
	}
	return in
}

func drawOperation(rnd *rand.Rand) operation {
	op := operation{kind: names[rnd.IntN(len(names))]}
	switch {
	case op.kind == "RL.ACQUIRE" || op.kind == "RL.RELEASE":
		op.a = rnd.Int64N(holders)
	case strings.HasPrefix(op.kind, "RL.") || op.kind == "CL.THROTTLE":
		op.a, op.b = 1+rnd.Int64N(3), 1+rnd.Int64N(3)
		if rnd.IntN(3) == 0 && op.kind != "RL.TAKE" {
			op.a = -rnd.Int64N(6)
		}
		if op.kind == "CL.THROTTLE" {
			op.a = max(op.a, 0) // a refund of more than is used deletes the key, which RL.GCRA does too; see RESET
		}
	case op.kind[0] == 'H':
		op.a, op.b = rnd.Int64N(fields), rnd.Int64N(100)
	case op.kind[0] == 'Z':
		op.a, op.b = rnd.Int64N(members), rnd.Int64N(10)
	case op.kind == "INCREX":
		op.a, op.b = 1+rnd.Int64N(9), rnd.Int64N(200)
	default:
		op.a = rnd.Int64N(100)
	}
	return op
}

// addScript adds to a counter and puts the sum into a hash.
const addScript = "local sum = redis.call('INCRBY', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[2], 'f0', sum) return sum"

// words are the command for an operation.
func words(group int, op operation) []string {
	key := func(kind string) string { return fmt.Sprintf("{%d}:%s", group, kind) }
	a, b := strconv.FormatInt(op.a, 10), strconv.FormatInt(op.b, 10)
	switch op.kind {
	case "GET", "DEL":
		return []string{op.kind, key("text")}
	case "SET", "GETSET", "INCRBY":
		return []string{op.kind, key("text"), a}
	case "INCREX":
		return []string{op.kind, key("text"), "BYINT", a, "UBOUND", b}
	case "HSET", "HINCRBY":
		return []string{op.kind, key("hash"), "f" + a, b}
	case "HGET", "HDEL":
		return []string{op.kind, key("hash"), "f" + a}
	case "ZADD":
		return []string{op.kind, key("zset"), b, "m" + a}
	case "ZSCORE", "ZREM":
		return []string{op.kind, key("zset"), "m" + a}
	case "ZCARD":
		return []string{op.kind, key("zset")}
	case "ZRANGE":
		return []string{op.kind, key("zset"), "0", "-1", "WITHSCORES"}
	case "EVAL":
		return []string{op.kind, addScript, "2", key("text"), key("hash"), a}
	case "CL.THROTTLE":
		return []string{op.kind, key("gcra"), strconv.Itoa(gcraLimit - 1), "1", "3600", a}
	case "RL.GCRA":
		return []string{op.kind, key("gcra"), strconv.Itoa(gcraLimit), "1", "1h", "COST", a}
	case "RL.FIXED":
		return []string{op.kind, key("fixed"), strconv.Itoa(fixedLimit), "1h", "COST", a}
	case "RL.SLIDING":
		return []string{op.kind, key("sliding"), strconv.Itoa(slidingLimit), "1h", "COST", a}
	case "RL.LOG":
		return []string{op.kind, key("log"), strconv.Itoa(logLimit), "1h", "COST", a}
	case "RL.TAKE":
		return []string{op.kind, "2", "bucket", key("gcra"), "window", key("fixed"), "COSTS", a, b}
	case "RL.ACQUIRE":
		return []string{op.kind, key("leases"), strconv.Itoa(leaseLimit), "1h", "MEMBER", "h" + a}
	case "RL.RELEASE":
		return []string{op.kind, key("leases"), "h" + a}
	case "RESET":
		return []string{"DEL", key("gcra"), key("sliding"), key("log")}
	}
	panic("no words for " + op.kind)
}

// run sends a call and returns its answers in the model's words.
func run(c *harness.Client, in input) (string, error) {
	var request []byte
	if in.multi {
		request = append(request, harness.Command("MULTI")...)
	}
	for _, op := range in.steps {
		request = append(request, harness.Command(words(in.group, op)...)...)
	}
	skip := 0
	if in.multi {
		request = append(request, harness.Command("EXEC")...)
		skip = 1 + len(in.steps)
	}
	if err := c.Send(request); err != nil {
		return "", err
	}
	for range skip {
		if v, err := c.Read(replyTimeout); err != nil {
			return "", err
		} else if v.Kind == '-' {
			return "", refused(fmt.Sprintf("%v: %s", in, v.Text))
		}
	}
	v, err := c.Read(replyTimeout)
	if err != nil {
		return "", err
	}
	replies := []harness.Value{v}
	if in.multi {
		replies = v.Items
	}
	answers := make([]string, len(replies))
	for i, reply := range replies {
		if reply.Kind == '-' {
			return "", refused(fmt.Sprintf("%v: %s", in, reply.Text))
		}
		answers[i] = answer(in.steps[i].kind, reply)
	}
	return strings.Join(answers, "; "), nil
}

// refused is an error that the server answered with, as opposed to one of the connection.
type refused string

func (r refused) Error() string { return string(r) }

// replyTimeout bounds the wait for one reply.
const replyTimeout = 30 * time.Second

// answer says in the model's words what a reply tells, leaving out times.
func answer(kind string, v harness.Value) string {
	switch kind {
	case "CL.THROTTLE", "RL.GCRA", "RL.FIXED", "RL.SLIDING", "RL.LOG", "RL.ACQUIRE":
		return v.Items[0].Text + " " + v.Items[2].Text
	case "RL.TAKE":
		return v.Items[1].Text + " " + v.Items[2].Items[0].Items[2].Text + " " + v.Items[2].Items[1].Items[2].Text
	case "INCREX":
		return v.Items[0].Text + " " + v.Items[1].Text
	case "ZRANGE":
		var entries [][2]int64
		for i := 0; i < len(v.Items); i += 2 {
			score, _ := strconv.ParseInt(v.Items[i+1].Text, 10, 64)
			member, _ := strconv.ParseInt(strings.TrimPrefix(v.Items[i].Text, "m"), 10, 64)
			entries = append(entries, [2]int64{score, member})
		}
		return fmt.Sprint(entries)
	}
	if v.Null {
		return "nil"
	}
	return v.Text
}

// TestModelRefuses: histories that cannot have come about are found out.
func TestModelRefuses(t *testing.T) {
	one := func(client int, call, end int64, kind string, a, b int64, out string) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Call: call, Return: end, Output: out, Input: input{steps: []operation{{kind, a, b}}}}
	}
	for name, history := range map[string][]porcupine.Operation{
		"a stale read": {one(0, 0, 10, "SET", 5, 0, "OK"), one(1, 20, 30, "GET", 0, 0, "nil")},
		"a lost addition": {
			one(0, 0, 10, "INCRBY", 1, 0, "1"), one(1, 5, 15, "INCRBY", 1, 0, "1"),
		},
		"one lease too many": {
			one(0, 0, 9, "RL.ACQUIRE", 0, 0, "0 2"), one(1, 0, 9, "RL.ACQUIRE", 1, 0, "0 1"),
			one(2, 0, 9, "RL.ACQUIRE", 2, 0, "0 0"), one(3, 0, 9, "RL.ACQUIRE", 3, 0, "0 0"),
		},
		"half a take": {one(0, 0, 10, "RL.TAKE", 2, 9, "-1 10 0"), one(1, 20, 30, "RL.TAKE", 2, 1, "1 8 0")},
	} {
		require.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(model, history, checkTimeout), name)
	}
}
