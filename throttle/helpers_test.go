package throttle

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	decideN  = flag.Int64("decide.n", 100_000, "calls that TestDecideAgainstModel compares")
	seedFlag = flag.Int64("seed", 0, "seed of the randomised tests; 0 takes one from the clock")
)

// epoch is an instant such as a server sees. It is not a whole number of milliseconds, like most of them.
const epoch int64 = 1_760_000_000_123_456_789

// newRand returns the test's random source and prints the seed that repeats the run.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	t.Logf("repeat with: go test ./throttle -run '^%s$' -seed %d", t.Name(), seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}

// storedKey is a key as a server would keep it for one limiter.
type storedKey struct {
	exists     bool
	tat        int64
	expireAtMs int64
}

// decide applies a decision to the key as the Write says, after letting the key expire.
func (k *storedKey) decide(g GCRA, now, quantity int64) (Decision, error) {
	if k.exists && now >= k.expireAtMs*nsPerMs {
		*k = storedKey{}
	}
	d, err := g.Decide(now, k.tat, k.exists, quantity)
	if err != nil {
		return d, err
	}
	switch d.Write {
	case Set:
		*k = storedKey{exists: true, tat: d.TAT, expireAtMs: ExpireAtMs(d.TAT)}
	case Delete:
		*k = storedKey{}
	case Keep:
	}
	return d, nil
}

// wire renders a decision as CL.THROTTLE's five integers.
func wire(d Decision) string {
	limited := int64(0)
	if d.Limited {
		limited = 1
	}
	fields := []int64{limited, d.Limit, d.Remaining, RetrySeconds(d.RetryAfter), Seconds(d.ResetAfter)}
	words := make([]string, len(fields))
	for i, field := range fields {
		words[i] = strconv.FormatInt(field, 10)
	}
	return strings.Join(words, " ")
}

// parseCall reads "max_burst count period [quantity]".
func parseCall(t *testing.T, call string) (Quota, int64) {
	t.Helper()
	numbers := []int64{0, 0, 0, 1}
	for i, word := range strings.Fields(call) {
		number, err := strconv.ParseInt(word, 10, 64)
		require.NoError(t, err)
		numbers[i] = number
	}
	return Quota{MaxBurst: numbers[0], Count: numbers[1], Period: numbers[2]}, numbers[3]
}
