// Package bench tries the load generator on real servers, and prints the tables of docs/benchmarks.md.
package bench

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// loads are those of headgate bench, and the command whose calls INFO counts for each.
var loads = map[string]string{
	"throttle": "cl.throttle", "gcra": "rl.gcra", "bucket": "rl.bucket", "fixed": "rl.fixed", "sliding": "rl.sliding", "log": "rl.log",
	"window": "pexpire", "script": "evalsha", "bucket-script": "evalsha", "multi": "exec",
	"gcra-script": "evalsha", "take": "rl.take",
	"ping": "ping", "set": "set", "setpx": "set", "get": "get", "incr": "incr", "zadd": "zadd",
}

// report is what --json writes, as far as these tests look.
type report struct {
	Servers []struct {
		Name       string
		Operations uint64
		PerSecond  float64 `json:"per_second"`
		CPU        float64 `json:"server_cpu_us_per_operation"`
		Allowed    *uint64
		Limited    *uint64
		Errors     uint64
		Late       uint64             `json:"never_sent"`
		Latency    map[string]float64 `json:"latency_ms"`
	}
	Ratios map[string]float64
}

// runBench runs headgate bench and returns its report.
func runBench(t testing.TB, args ...string) report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	out, err := exec.Command(harness.Binary(t), append([]string{"bench", "--json", path}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	return r
}

// calls is how often a server says that a command was called.
func calls(t testing.TB, s *harness.Server, command string) uint64 {
	t.Helper()
	info := harness.Dial(t, s.Addr).Ask("INFO", "commandstats").Text
	found := regexp.MustCompile(`cmdstat_` + regexp.QuoteMeta(command) + `:calls=(\d+)`).FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseUint(found[1], 10, 64)
	require.NoError(t, err)
	return n
}

// TestLoads: each load, or without -compare some, runs against headgate and against redis-server, and both count what the loader counts: once more than
// that, since it tries an operation first.
func TestLoads(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	drawn := slices.Sorted(maps.Keys(loads))
	if *compare == 0 {
		drawn = harness.Draw(t, drawn, 4)
	}
	for _, load := range drawn {
		command := loads[load]
		t.Run(load, func(t *testing.T) {
			headgate, redis := harness.StartPair(t)
			before := calls(t, headgate, command)
			r := runBench(t, "--addr", headgate.Addr, "--vs", redis.Addr, "--load", load, "--duration", "40ms", "--rounds", "2", "--clients", "5", "--pipeline", "3", "--keys", "5")
			require.Len(t, r.Servers, 2)
			require.Equal(t, r.Servers[0].Operations+1, calls(t, headgate, command)-before)
			for _, s := range r.Servers {
				require.NotZero(t, s.Operations, s.Name)
				require.Zero(t, s.Errors, s.Name)
				require.LessOrEqual(t, s.Latency["p50"], s.Latency["max"])
				if s.Allowed != nil {
					require.Equal(t, s.Operations, *s.Allowed+*s.Limited, s.Name)
				}
			}
			require.NotZero(t, r.Ratios["per_second"])
		})
	}
}

// TestCountsOfALimiter: what a limiter lets through in an hour is its limit, however many ask.
func TestCountsOfALimiter(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	server := harness.Start(t)
	for _, command := range []string{"CL.THROTTLE one 99 1 3600", "RL.LOG two 100 1h", "RL.FIXED three 100 1h", "PING ; RL.GCRA four 100 1 1h"} {
		r := runBench(t, "--addr", server.Addr, "--load", command, "--duration", "60ms", "--pipeline", "8")
		require.EqualValues(t, 99, *r.Servers[0].Allowed, "%s: the loader's trial takes the first of a hundred", command)
		require.Equal(t, r.Servers[0].Operations-99, *r.Servers[0].Limited, command)
	}
}

// TestRate: an open loop sends what it was told to, and says what it could not send.
func TestRate(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	server := harness.Start(t)
	r := runBench(t, "--addr", server.Addr, "--load", "incr", "--rate", "2000", "--duration", "250ms")
	require.EqualValues(t, 500, r.Servers[0].Operations+r.Servers[0].Late)
}
