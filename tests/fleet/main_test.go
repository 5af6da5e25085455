// Package fleet drives headgate with `upstream` set: before Debian's redis-server in a cluster, behind a sentinel and alone, and before another
// headgate, beside a headgate that keeps its state itself. A short form of each test runs always; `make fleet` runs the whole ones,
// which also fail when a figure is missed.
package fleet

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	seedFlag = flag.Uint64("fleet.seed", 0, "seed; 0 takes one from the clock")
	whole    = flag.Bool("fleet.whole", false, "run the whole tests, on a machine that does nothing else, and fail when a figure is missed")
)

const (
	nodeTimeout = 10 * time.Second // after which the nodes of a cluster hold one of them for dead; in most tests none is

	// patient is a deadline that no machine misses, for tests in which nothing is slow on purpose.
	patient = "10000"
)

// TestMain has the short forms, most of whose time is waiting, run beside each other, and the whole ones by themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(sized(6, 1)))
	os.Exit(m.Run())
}

// seeded returns a source of random numbers, and logs how to repeat what it leads to.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C tests ./fleet -run '^%s$' -fleet.seed %d", strings.ReplaceAll(t.Name(), "/", "$/^"), seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// sized is how much a test does: in its short form, and as a whole.
func sized[N any](short, all N) N {
	if *whole {
		return all
	}
	return short
}

// electionAfter is the nodes' timeout of a cluster whose primaries die.
func electionAfter() time.Duration { return sized(2*time.Second, time.Second) }

// figure logs what was measured; a whole test fails when it is more than it may be.
func figure[N cmp.Ordered](t *testing.T, what string, measured, most N) {
	t.Helper()
	t.Logf("%s: %v (at most %v)", what, measured, most)
	if *whole && measured > most {
		t.Errorf("%s: %v, which is more than %v", what, measured, most) // and the other figures are measured all the same
	}
}

// quantile is the value that a share of all do not exceed; 0 of none.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// texts are the words of a reply, those of nested arrays in brackets.
func texts(v harness.Value) string {
	switch {
	case v.Null:
		return "nil"
	case v.Kind == '-':
		return "-" + v.Text
	case v.Items == nil && v.Kind != '*':
		return v.Text
	}
	words := make([]string, len(v.Items))
	for i, item := range v.Items {
		words[i] = texts(item)
		if item.Kind == '*' && !item.Null {
			words[i] = "[" + words[i] + "]"
		}
	}
	return strings.Join(words, " ")
}

// agrees requires that no script has ever decided other than the arithmetic that explains it, which a gateway counts and logs.
func agrees(t *testing.T, gateway *harness.Server) {
	t.Helper()
	require.Contains(t, harness.Dial(t, gateway.Addr).Ask("INFO", "upstream").Text, "upstream_disagreements:0\r\n")
	require.NotContains(t, gateway.Log(), "decided differently")
}
