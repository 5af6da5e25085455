package lua

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	calls = flag.Int("lua.n", 3000, "random calls over the limiter scripts")
	seed  = flag.Uint64("lua.seed", 0, "seed of the random calls; 0 takes one from the clock")
)

const (
	wholeCalls     = 200_000 // from so many calls on it is the whole run: make lua
	fewestLimiters = 40
	batch          = 64                   // calls in one pipeline
	evalEvery      = 16                   // calls of which one sends the text instead of its digest
	ttlTolerance   = 2 * time.Millisecond // beside what the servers' own answering times account for
)

// limiterRun sends the same random calls to both servers.
type limiterRun struct {
	t       *testing.T
	links   map[int]link // by protocol
	random  *rand.Rand
	callers []*caller
	texts   []string
	digests []string
	lag     time.Duration // the longest round trip so far, doubled
	reports int
	failed  []int // replies of each limiter that were errors
	sent    []int
}

// TestLimiters runs the scripts of testdata/limiters in random order with random arguments against both servers, in both
// protocols, and compares each reply and, at the end, all keys.
func TestLimiters(t *testing.T) {
	random := *seed
	if random == 0 {
		random = uint64(time.Now().UnixNano())
	}
	t.Logf("%d calls, -lua.seed %d", *calls, random)
	r := newLimiterRun(t, random)
	for done := 0; done < *calls && r.reports <= *maxReports; done += batch {
		protocol := 2 + r.random.IntN(2)
		r.batch(r.links[protocol])
	}
	r.compareKeys()
	for i, limiter := range limiters {
		if *calls >= 5000 && r.sent[i] == r.failed[i] {
			t.Errorf("%s: each of its %d calls was answered with an error", limiter.name, r.sent[i])
		}
	}
}

func newLimiterRun(t *testing.T, seed uint64) *limiterRun {
	t.Helper()
	require.GreaterOrEqual(t, len(limiters), fewestLimiters)
	files, err := filepath.Glob("testdata/limiters/*.lua")
	require.NoError(t, err)
	require.Len(t, files, len(limiters))
	p := startPair(t)
	r := &limiterRun{
		t: t, links: map[int]link{2: p.dial(t, 2), 3: p.dial(t, 3)}, random: rand.New(rand.NewPCG(seed, seed)),
		failed: make([]int, len(limiters)), sent: make([]int, len(limiters)),
	}
	for _, limiter := range limiters {
		text, err := os.ReadFile(filepath.Join("testdata", "limiters", limiter.name+".lua"))
		require.NoError(t, err)
		r.texts = append(r.texts, string(text))
		r.callers = append(r.callers, &caller{Rand: r.random, name: limiter.name, us: firstMoment})
		subject, reference, err := r.links[2].exchange(harness.Command("SCRIPT", "LOAD", string(text)))
		require.NoError(t, err)
		require.Equal(t, reference.Wire(), subject.Wire(), limiter.name)
		require.EqualValues(t, '$', reference.Kind, "%s: %s", limiter.name, reference.Text)
		r.digests = append(r.digests, reference.Text)
	}
	return r
}

// batch sends some calls in one go and compares what comes back.
func (r *limiterRun) batch(l link) {
	which := make([]int, batch)
	texts := make([]string, batch)
	var raw []byte
	for i := range which {
		which[i] = r.random.IntN(len(limiters))
		c := r.callers[which[i]]
		c.step()
		keys, args := limiters[which[i]].call(c)
		command := []string{"EVALSHA", r.digests[which[i]]}
		if r.random.IntN(evalEvery) == 0 {
			command = []string{"EVAL", r.texts[which[i]]}
		}
		command = append(append(append(command, strconv.Itoa(len(keys))), keys...), args...)
		texts[i] = fmt.Sprintf("%s %q / %q", c.name, keys, args)
		raw = append(raw, harness.Command(command...)...)
	}
	begin := time.Now()
	require.NoError(r.t, l.send(raw))
	for i, w := range which {
		subject, reference, err := l.read()
		require.NoError(r.t, err, "%s", texts[i])
		r.lag = max(r.lag, 2*time.Since(begin))
		r.sent[w]++
		if reference.Kind == '-' {
			r.failed[w]++
		}
		if !r.same(subject, reference, limiters[w].ttl) {
			r.reports++
			r.t.Errorf("%s\n  redis-server: %q\n  headgate:     %q", texts[i], reference.Wire(), subject.Wire())
		}
	}
}

func (r *limiterRun) same(subject, reference harness.Value, ttl bool) bool {
	if ttl {
		return harness.CloseInTime(subject, reference, (ttlTolerance + r.lag).Milliseconds())
	}
	return subject.Wire() == reference.Wire()
}

// compareKeys compares all keys, their types, contents and expiry times.
func (r *limiterRun) compareKeys() {
	r.t.Logf("%d keys compared", compareContents(r.t, r.links[2], ttlTolerance+r.lag))
}

// compareContents compares all keys of two servers, which may expire so much before or after each other, and returns how many there are.
func compareContents(t *testing.T, l link, tolerance time.Duration) (compared int) {
	t.Helper()
	subject, reference, err := l.exchange(harness.Command("KEYS", "*"))
	require.NoError(t, err)
	keys := reference.Strings()
	slices.Sort(keys)
	theirs := subject.Strings()
	slices.Sort(theirs)
	require.Equal(t, keys, theirs, "the names of the keys")
	readers := map[string][]string{
		"string": {"GET"}, "hash": {"HGETALL"}, "zset": {"ZRANGE", "0", "-1", "WITHSCORES"}, "list": {"LRANGE", "0", "-1"}, "set": {"SMEMBERS"},
	}
	for _, key := range keys {
		subject, reference, err := l.exchange(harness.Command("TYPE", key))
		require.NoError(t, err)
		require.Equal(t, reference.Text, subject.Text, "the type of %s", key)
		read := readers[reference.Text]
		subject, reference, err = l.exchange(harness.Command(append([]string{read[0], key}, read[1:]...)...))
		require.NoError(t, err)
		isHash := read[0] == "HGETALL"
		require.Equal(t, contents(reference, isHash), contents(subject, isHash), "what %s holds", key)
		subject, reference, err = l.exchange(harness.Command("PEXPIRETIME", key))
		require.NoError(t, err)
		require.True(t, harness.CloseInTime(subject, reference, tolerance.Milliseconds()), "%s expires at %s, not at %s", key, subject.Text, reference.Text)
	}
	return len(keys)
}

// contents is a reply with its numbers in one form, since the two servers store a script's floats in different ones, and
// the fields of a hash in one order.
func contents(v harness.Value, isHash bool) string {
	v.Text = canonical(v.Text)
	for i := range v.Items {
		v.Items[i].Text = canonical(v.Items[i].Text)
	}
	if isHash {
		v = v.Sorted(true)
	}
	return v.Wire()
}

func canonical(text string) string {
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".e") {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return text
}
