package memory

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	evictKeys = flag.Int("evict.keys", 150_000, "keys written under each policy")
	zipfKeys  = flag.Int("evict.zipf", 10_000, "names that the comparison of hit ratios draws from; it asks ten times as often")
	evictSeed = flag.Uint64("evict.seed", 0, "seed of that comparison; 0 draws one")
)

const (
	evictValue = 400 // bytes
	evictBase  = 48  // MiB that the process may have beside a part of what all keys would need:
	evictShare = 3
	mapped     = 200  // MiB that it maps for data and may not use, and
	reserved   = 2248 // of addresses
)

// written is what became of the keys that were sent.
type written struct{ stored, refused int }

// write sets n keys, some without TTL, in pipelines, and reads one reply for each.
func write(t *testing.T, s *harness.Server, n int) (w written) {
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Hour)))
	in := bufio.NewReader(conn)
	value := strings.Repeat("v", evictValue)
	var out []byte
	for first := 0; first < n; first += loadBatch {
		out = out[:0]
		batch := min(loadBatch, n-first)
		for i := first; i < first+batch; i++ {
			words := []string{"SET", user(i), value, "EX", strconv.Itoa(10_000 + i%1000)}
			if i%100 == 0 {
				words = words[:3]
			}
			out = append(out, harness.Command(words...)...)
		}
		sent := make(chan error, 1)
		go func() {
			_, err := conn.Write(out)
			sent <- err
		}()
		for range batch {
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			switch {
			case line == "+OK\r\n":
				w.stored++
			case strings.HasPrefix(line, "-OOM "):
				w.refused++
			default:
				require.Fail(t, "neither OK nor OOM", line)
			}
		}
		require.NoError(t, <-sent)
	}
	return w
}

// TestPolicies writes far more than fits into the process's limit under each policy. Nobody sets maxmemory: the limit is found.
func TestPolicies(t *testing.T) {
	limit := evictBase + *evictKeys*(evictValue+80)/evictShare>>20 // MiB
	others := []string{"volatile-lru", "allkeys-lfu", "volatile-lfu", "allkeys-random", "volatile-random", "volatile-ttl"}
	if !*all {
		others = harness.Draw(t, others, 2)
	}
	for _, how := range []string{"data", "addresses", "maxmemory"} {
		policies := []string{"noeviction", "allkeys-lru"}
		if how == "data" {
			policies = append(policies, others...)
		}
		for _, policy := range policies {
			t.Run(how+"/"+policy, func(t *testing.T) {
				flags := []string{"--maxmemory-policy", policy}
				var s *harness.Server
				switch how {
				case "data":
					s = harness.StartUnder(t, fmt.Sprintf("ulimit -s 512 && ulimit -d %d", (limit+mapped)<<10), flags...)
				case "addresses":
					s = harness.StartUnder(t, fmt.Sprintf("ulimit -s 512 && ulimit -v %d", (limit+reserved)<<10), append(flags, "--maxmemory", fmt.Sprint(limit*3/4)+"mb")...)
				default:
					s = harness.Start(t, append(flags, "--maxmemory", fmt.Sprint(limit*3/4)+"mb")...)
				}
				c := harness.Dial(t, s.Addr)
				most := c.InfoNumber("maxmemory")
				require.Greater(t, most, limit*3/8<<20)
				require.Less(t, most, limit*3/2<<20)
				w := write(t, s, *evictKeys)
				used, evicted := c.InfoNumber("used_memory"), c.InfoNumber("evicted_keys")
				t.Logf("%d stored, %d refused, %d evicted; %d MiB in use of %d, %d resident, limit %d", w.stored, w.refused, evicted, used>>20, most>>20,
					s.RSS()>>20, limit)
				require.Less(t, used, most+most/50)
				if how == "maxmemory" { // the process may have more: the Go heap is then kept less small
					require.Less(t, int(s.RSS()), most*3/2+64<<20)
				} else {
					require.Less(t, int(s.RSS()), (limit+mapped)<<20)
				}
				if policy == "noeviction" {
					require.Zero(t, evicted)
					require.Positive(t, w.refused)
					require.Equal(t, "+OK\r\n", string(c.Do("FLUSHALL")))
					require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
					return
				}
				require.Zero(t, w.refused)
				require.Positive(t, evicted)
				if strings.HasPrefix(policy, "volatile") {
					require.Equal(t, "$"+strconv.Itoa(evictValue), strings.SplitN(string(c.Do("GET", user(0))), "\r\n", 2)[0], "it has no TTL")
				}
			})
		}
	}
}

// TestHitRatio has keys asked for as often as Zipf's law says, from a cache that holds a tenth of them, on both servers.
func TestHitRatio(t *testing.T) {
	seed := *evictSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-evict.seed %d", seed)
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random"} {
		t.Run(policy, func(t *testing.T) {
			subject, reference := harness.StartPair(t, "--maxmemory-policy", policy)
			own, theirs := hitRatio(t, subject, seed), hitRatio(t, reference, seed)
			t.Logf("%.2f %% of the requests hit here, %.2f %% in Redis", 100*own, 100*theirs)
			require.Greater(t, own, theirs-0.03) // Redis knows ages to the second, of which a short run has two, and may find fewer
		})
	}
}

// hitRatio is the share of requests that find their key.
func hitRatio(t *testing.T, s *harness.Server, seed uint64) float64 {
	c := harness.Dial(t, s.Addr)
	held := *zipfKeys / 10
	put := func(i int) []string { return []string{"SET", user(i), text(64, i), "EX", strconv.Itoa(100_000 + i)} }
	load(t, s, held, 1, func(i int) []string { return put(*zipfKeys + i) })
	time.Sleep(150 * time.Millisecond) // what is counted ten times a second
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(c.InfoNumber("used_memory")))))
	rnd := rand.New(rand.NewPCG(seed, 0))
	zipf := rand.NewZipf(rnd, 1.1, 1, uint64(*zipfKeys-1))
	conn, err := net.Dial("tcp", s.Addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	hits, asked := 0, 0
	const batch = 50
	rounds := 10 * *zipfKeys / batch
	for round := range rounds {
		var drawn [batch]int
		var out []byte
		for i := range drawn {
			drawn[i] = int(zipf.Uint64())
			out = append(out, harness.Command("GET", user(drawn[i]))...)
		}
		_, err := conn.Write(out)
		require.NoError(t, err)
		out = out[:0]
		missed := 0
		for _, key := range drawn {
			v, err := harness.Parse(in)
			require.NoError(t, err)
			if v.Null {
				out = append(out, harness.Command(put(key)...)...)
				missed++
			}
		}
		if round >= rounds/3 {
			asked += batch
			hits += batch - missed
		}
		if missed > 0 {
			_, err = conn.Write(out)
			require.NoError(t, err)
		}
		for range missed {
			v, err := harness.Parse(in)
			require.NoError(t, err)
			require.Equal(t, "OK", v.Text)
		}
	}
	return float64(hits) / float64(asked)
}
