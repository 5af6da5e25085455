package bench

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	literature     = flag.Duration("literature", 0, "measure the literature's three loads for so long each, print the table of docs/benchmarks.md, and write it there")
	literatureSeed = flag.Uint64("literature.seed", 1, "decides which keys are drawn")
	rounds         = flag.Int("literature.rounds", 5, "rounds that the time is divided into; in each the servers take turns")
)

const (
	literatureWorkers = 100
	literatureKeys    = 100_000
)

//go:embed testdata/sliding_window.lua
var slidingWindowText string

//go:embed testdata/token_bucket.lua
var tokenBucketText string

var (
	slidingWindow = redis.NewScript(slidingWindowText)
	tokenBucket   = redis.NewScript(tokenBucketText)
)

// algorithm is a row of the table.
type algorithm struct {
	name    string
	printed string // requests per second that the literature gives for Redis 6.2
	load    string // of headgate bench
	native  string // headgate's own command for the same purpose, as a load
	ask     func(ctx context.Context, client *redis.Client, key int) error
}

var algorithms = []algorithm{
	{"fixed window (INCR and PEXPIRE)", "12,000", "window", "fixed", func(ctx context.Context, client *redis.Client, key int) error {
		name := "lib:wi:" + strconv.Itoa(key)
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, name)
			p.ExpireNX(ctx, name, 10*time.Second)
			return nil
		})
		return err
	}},
	{"sliding window in Lua", "8,000", "script", "log", func(ctx context.Context, client *redis.Client, key int) error {
		now := time.Now().UnixMilli()
		return slidingWindow.Run(ctx, client, []string{"lib:sw:" + strconv.Itoa(key)}, now-1000, now, rand.Uint64(), 10, 1000).Err()
	}},
	{"token bucket in Lua", "15,000", "bucket-script", "bucket", func(ctx context.Context, client *redis.Client, key int) error {
		return tokenBucket.Run(ctx, client, []string{"lib:tb:" + strconv.Itoa(key)}, 100, 100, time.Now().UnixMilli()).Err()
	}},
}

// library measures requests per second of 100 workers of go-redis.
func library(t *testing.T, addr string, ask func(context.Context, *redis.Client, int) error, length time.Duration) float64 {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: literatureWorkers, MinIdleConns: literatureWorkers})
	defer client.Close()
	ctx := context.Background()
	require.NoError(t, ask(ctx, client, 0))
	var count atomic.Uint64
	var running sync.WaitGroup
	errs := make([]error, literatureWorkers)
	began := time.Now()
	for i := range literatureWorkers {
		running.Go(func() {
			random := rand.New(rand.NewPCG(*literatureSeed, uint64(i)))
			done := uint64(0)
			for more := true; more && errs[i] == nil; more = time.Since(began) < length {
				if errs[i] = ask(ctx, client, random.IntN(literatureKeys)); errs[i] == nil {
					done++
				}
			}
			count.Add(done)
		})
	}
	running.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return float64(count.Load()) / time.Since(began).Seconds()
}

// loader measures the same with headgate bench.
func loader(t *testing.T, addr, load string, length time.Duration) float64 {
	t.Helper()
	r := runBench(t, "--addr", addr, "--load", load, "--clients", strconv.Itoa(literatureWorkers), "--keys", strconv.Itoa(literatureKeys),
		"--duration", length.String(), "--seed", strconv.FormatUint(*literatureSeed, 10))
	return r.Servers[0].PerSecond
}

// median of what was measured.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// TestLiterature measures what is printed of Redis 6.2 with 100 client threads: the same three loads from 100 workers of a client
// library and from the loader, on headgate and on redis-server in one run. Without -literature it only shows that all of it works.
func TestLiterature(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server has no load generator")
	}
	headgate, redisServer := harness.StartPair(t)
	length, n := *literature, *rounds
	if length == 0 {
		length, n = 20*time.Millisecond, 1
	}
	part := length / time.Duration(n)
	var table strings.Builder
	table.WriteString("| load, requests per second | published for Redis 6.2 | go-redis: redis-server 7.0.15 | go-redis: headgate | loader: redis-server 7.0.15 | loader: headgate | loader: headgate's own command |\n|---|---|---|---|---|---|---|\n")
	for _, a := range algorithms {
		var fromLibrary, fromLoader [2][]float64 // headgate's, redis-server's
		var native []float64
		for round := range n {
			for turn := range 2 {
				side := (round + turn) % 2
				addr := []string{headgate.Addr, redisServer.Addr}[side]
				fromLibrary[side] = append(fromLibrary[side], library(t, addr, a.ask, part))
				fromLoader[side] = append(fromLoader[side], loader(t, addr, a.load, part))
			}
			native = append(native, loader(t, headgate.Addr, a.native, part))
		}
		ours, theirs := median(fromLibrary[0]), median(fromLibrary[1])
		loadedOurs, loadedTheirs := median(fromLoader[0]), median(fromLoader[1])
		fmt.Fprintf(&table, "| %s | %s | %s | **%s** (%.2f×) | %s | **%s** (%.2f×) | **%s** (%.2f×) |\n", a.name, a.printed, thousands(theirs), thousands(ours), ours/theirs,
			thousands(loadedTheirs), thousands(loadedOurs), loadedOurs/loadedTheirs, thousands(median(native)), median(native)/loadedTheirs)
		require.Positive(t, ours*theirs*loadedOurs*loadedTheirs*median(native))
	}
	fmt.Fprintf(&table, "\nMedians of %d rounds of %v in which the servers take turns; 100 workers, 100,000 keys, %d cores for the server and the load together: `make literature`.\n", n, part, runtime.NumCPU())
	t.Logf("\n%s", table.String())
	if *literature > 0 {
		writeSection(t, "docs/benchmarks.md", "literature", table.String())
	}
}

// thousands writes a number to three digits or so, with commas.
func thousands(x float64) string {
	unit := 10
	for x > float64(1000*unit) {
		unit *= 10
	}
	digits := strconv.Itoa((int(x) + unit/2) / unit * unit)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// writeSection replaces what a document has between <!-- name:begin --> and <!-- name:end -->.
func writeSection(t *testing.T, document, name, text string) {
	t.Helper()
	path := filepath.Join(harness.Root(t), document)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)(<!-- ` + name + `:begin -->\n).*?(<!-- ` + name + `:end -->)`)
	require.Regexp(t, section, string(old), "%s has no section %s", document, name)
	replaced := section.ReplaceAllFunc(old, func(found []byte) []byte {
		marks := section.FindSubmatch(found)
		return slices.Concat(marks[1], []byte(text), marks[2])
	})
	require.NoError(t, os.WriteFile(path, replaced, 0o644))
}
