package bench

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	compare       = flag.Duration("compare", 0, "measure each load for so long on each server, and write the table into docs/benchmarks.md")
	compareRounds = flag.Int("compare.rounds", 5, "rounds that the time is divided into; in each the servers take turns")
)

// comparePipelines are the table's two halves.
var comparePipelines = []int{1, 16}

// compared are the table's rows.
var compared = []struct{ load, says string }{
	{"ping", "PING"},
	{"set", "SET"},
	{"get", "GET"},
	{"incr", "INCR"},
	{"zadd", "ZADD into 100,000 members"},
	{"multi", "the MULTI window of four commands"},
	{"throttle", "CL.THROTTLE, against SET … PX"},
	{"gcra", "RL.GCRA, against SET … PX"},
	{"fixed", "RL.FIXED, against INCR and PEXPIRE"},
	{"log", "RL.LOG, against the sliding window's script"},
	{"take", "RL.TAKE of three policies, against one SET … PX"},
	{"script", "the sliding window as a Lua script"},
	{"gcra-script", "GCRA as a Lua script"},
}

// TestCompare measures headgate beside redis-server by `headgate bench --vs redis`. Without -compare it only shows that some loads work.
func TestCompare(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	length, rounds, rows := *compare, *compareRounds, compared
	if length == 0 {
		length, rounds, rows = 20*time.Millisecond, 1, harness.Draw(t, compared, 3)
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var table strings.Builder
	table.WriteString("| load | CPU, one at a time | throughput | CPU, pipelines of 16 | throughput |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&table, "| %s |", row.says)
		for _, pipeline := range comparePipelines {
			r := runBench(t, "--vs", "redis", "--load", row.load, "--pipeline", strconv.Itoa(pipeline),
				"--duration", length.String(), "--rounds", strconv.Itoa(rounds))
			require.Len(t, r.Servers, 2)
			require.True(t, strings.HasPrefix(r.Servers[0].Name, "headgate "), r.Servers[0].Name)
			require.True(t, strings.HasPrefix(r.Servers[1].Name, "redis "), r.Servers[1].Name)
			for _, s := range r.Servers {
				require.NotZero(t, s.Operations, "%s on %s", row.load, s.Name)
				require.Zero(t, s.Errors, "%s on %s", row.load, s.Name)
			}
			fmt.Fprintf(&table, " **%.2f** | %.2f× |", r.Ratios["cpu"], r.Ratios["per_second"])
		}
		table.WriteString("\n")
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	for _, entry := range left {
		require.NotContains(t, entry.Name(), "headgate-bench", "a directory of the servers stayed behind")
	}
	t.Logf("\n%s", table.String())
	if *compare > 0 {
		writeSection(t, "docs/benchmarks.md", "compare", table.String())
	}
}
