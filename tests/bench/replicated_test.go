package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	keptTime   = flag.Duration("kept", 0, "measure what a replica and an append-only file cost a server, each for so long in each round")
	keptRounds = flag.Int("kept.rounds", 5, "rounds, in each of which all servers take turns")
)

// The loads of TestCostsOfKeeping: calls that all pass, so that each is written, and what Redis would be asked in their place.
const (
	keptThrottle = "CL.THROTTLE limiter:__key__ 1000000 1000000 60 1"
	keptSet      = "SET limiter:__key__ 1700000000000000000 PX 60000"
	keptKeys     = "100000"
)

// A keeper is a server under one processor, with what keeps its data.
type keeper struct {
	name    string
	load    string
	to      string // the name of the keeper that it is compared with
	primary *harness.Server
	replica *harness.Server // nil: it has none
}

// TestCostsOfKeeping measures, in one run in which they take turns, the processor time of a call on a server alone, with one replica of its own kind, and
// with an append-only file that is synced each second: of headgate, and beside it of redis-server. The primary has one processor, and load and replica
// the other. What a primary sends after the load has ended counts. Without -kept it only shows that all of it works.
func TestCostsOfKeeping(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	length, rounds := *keptTime, *keptRounds
	if length == 0 {
		length, rounds = 20*time.Millisecond, 1
	}
	keepers := startKeepers(t)
	loads := []struct{ clients, pipeline int }{{50, 1}, {50, 16}}
	if *keptTime == 0 {
		loads = loads[1:]
	}
	for _, load := range loads {
		costs := make([][]cost, len(keepers))
		for round := range rounds {
			for turn := range keepers {
				i := (round + turn) % len(keepers)
				costs[i] = append(costs[i], keepers[i].measure(t, load.clients, load.pipeline, length))
			}
		}
		t.Logf("%d clients, %d at once\n%s", load.clients, load.pipeline, keptTable(keepers, costs))
	}
}

// startKeepers starts them in the order of the table. The first of each kind is there twice: how far the two are apart is what the machine does.
func startKeepers(t *testing.T) (all []keeper) {
	t.Helper()
	unlimited := []string{"--repl-diskless-sync-delay", "0", "--client-output-buffer-limit", "replica 0 0 0"}
	logged := []string{"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"}
	for _, kind := range []struct {
		name, load string
		start      func(t testing.TB, command string, flags ...string) *harness.Server
	}{
		{"headgate, CL.THROTTLE", keptThrottle, harness.StartUnder},
		{"headgate, SET … PX", keptSet, harness.StartUnder},
		{"redis-server, SET … PX", keptSet, harness.StartReferenceUnder},
	} {
		for _, how := range []struct {
			name    string
			flags   []string
			replica bool
		}{{"", nil, false}, {" again", nil, false}, {", a replica", unlimited, true}, {", an append-only file", logged, false}} {
			k := keeper{name: kind.name + how.name, load: kind.load, to: kind.name, primary: kind.start(t, harness.Pinned(0), how.flags...)}
			if how.replica {
				k.replica = kind.start(t, harness.Pinned(1), "--replicaof", "127.0.0.1 "+strconv.Itoa(k.primary.Port))
				k.awaitReplica(t)
			}
			all = append(all, k)
		}
	}
	return all
}

func (k *keeper) awaitReplica(t *testing.T) {
	t.Helper()
	if k.replica != nil {
		p, r := harness.Dial(t, k.primary.Addr), harness.Dial(t, k.replica.Addr)
		defer p.Close()
		defer r.Close()
		harness.AwaitSame(t, p, r)
	}
}

// measure has the keeper be called for a time, and returns what that cost its primary.
func (k *keeper) measure(t *testing.T, clients, pipeline int, length time.Duration) cost {
	t.Helper()
	figures := filepath.Join(t.TempDir(), "load.json")
	args := []string{"-c", harness.Pinned(1) + ` && exec "$0" "$@"`, harness.Binary(t), "bench", "--addr", k.primary.Addr, "--load", k.load, "--clients", strconv.Itoa(clients),
		"--pipeline", strconv.Itoa(pipeline), "--keys", keptKeys, "--duration", length.String(), "--json", figures}
	before, began := k.primary.CPU(), time.Now()
	out, err := exec.Command("/bin/sh", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	took := time.Since(began)
	k.awaitReplica(t)
	c := cost{servers: k.primary.CPU() - before, seconds: took.Seconds()}
	text, err := os.ReadFile(figures)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	require.Len(t, r.Servers, 1)
	require.Zero(t, r.Servers[0].Errors)
	if limited := r.Servers[0].Limited; limited != nil {
		require.Zero(t, *limited)
	}
	c.decisions, c.seconds = r.Servers[0].Operations, float64(r.Servers[0].Operations)/max(1, r.Servers[0].PerSecond)
	require.NotZero(t, c.decisions)
	return c
}

// keptTable writes the medians of what was measured, and what each way costs beside the server alone.
func keptTable(keepers []keeper, costs [][]cost) string {
	var table strings.Builder
	table.WriteString("| server | a second | µs of its processor | times that alone |\n|---|---|---|---|\n")
	alone := map[string]float64{}
	for i, k := range keepers {
		var each, rates []float64
		for _, c := range costs[i] {
			each = append(each, c.perDecision(c.servers))
			rates = append(rates, float64(c.decisions)/c.seconds)
		}
		us := median(each)
		if k.name == k.to {
			alone[k.to] = us
		}
		fmt.Fprintf(&table, "| %s | %s | %.3f | %.2f |\n", k.name, thousands(median(rates)), us, us/alone[k.to])
	}
	return table.String()
}
