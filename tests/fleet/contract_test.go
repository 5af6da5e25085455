package fleet

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// policies are those that testdata/contract.txt names.
const policies = "hundred GCRA 100 100 1h, three FIXED 3 1h, slid SLIDING 20 10h, logged LOG 5 1h, par ACQUIRE 1 1m, endless UNLIMITED"

// A subject is a gateway and what it stands before.
type subject struct {
	name    string
	server  *harness.Server
	redis   bool // it stands before redis-server
	cluster bool
}

// subjects starts a gateway before each kind of upstream.
func subjects(t *testing.T) []subject {
	t.Helper()
	flags := []string{"--upstream-timeout-ms", patient}
	own := append(slices.Clone(flags), "--policy", policies)
	cert, key := harness.Certificate(t)
	_, secured := harness.StartReferenceTLS(t, cert, key, "--user", "gate", "on", ">secret", "~*", "resetchannels", "+@all", "-@admin", "-@dangerous", "+info")
	secure := append(slices.Clone(own), "--upstream-tls-ca-cert-file", cert, "--upstream-password", "secret")
	return []subject{
		{"cluster", harness.StartGateway(t, harness.StartCluster(t, 3, 1, nodeTimeout).URL(), own...), true, true},
		{"sentinel", harness.StartGateway(t, harness.StartSentinel(t, 10*time.Second).URL(), own...), true, false},
		{"single", harness.StartGateway(t, "redis://"+harness.StartReference(t).Addr, own...), true, false},
		{"TLS, as a user", harness.StartGateway(t, "rediss://gate@"+secured, secure...), true, false},
		{"headgate", harness.StartGateway(t, "redis://"+harness.Start(t, "--policy", policies).Addr, flags...), false, false},
	}
}

// A scenario is what one client asks of fresh keys.
type scenario struct {
	name  string
	state bool // what is stored at the end must be the same to the byte
	steps []step
}

// A step is a command and, if it is written down, its reply.
type step struct {
	line  string
	only  string // @redis, @cluster, @one, or for all
	words []string
	reply string
	known bool // the reply is written down
}

// TestContract: what a gateway answers is what a headgate answers that keeps its state itself, and what is written down of it.
func TestContract(t *testing.T) {
	t.Parallel()
	native := harness.Start(t, "--policy", policies)
	scenarios := readContract(t)
	for _, s := range subjects(t) {
		for _, protocol := range []string{"2", "3"} {
			t.Run(s.name+" RESP"+protocol, func(t *testing.T) {
				ours, theirs := dialAs(t, native.Addr, protocol), dialAs(t, s.server.Addr, protocol)
				for i, sc := range scenarios {
					compareScenario(t, s, sc, fmt.Sprintf("%s%s:%d", s.name, protocol, i), ours, theirs)
				}
			})
		}
		agrees(t, s.server)
	}
}

// TestContractAtHome: what is written down is what a headgate answers that keeps its state itself; and two of them do not differ.
func TestContractAtHome(t *testing.T) {
	t.Parallel()
	one, other := harness.Start(t, "--policy", policies), harness.Start(t, "--policy", policies)
	for _, protocol := range []string{"2", "3"} {
		ours, theirs := dialAs(t, one.Addr, protocol), dialAs(t, other.Addr, protocol)
		for i, sc := range readContract(t) {
			compareScenario(t, subject{name: "headgate"}, sc, fmt.Sprintf("%s:%d", protocol, i), ours, theirs)
		}
	}
}

func dialAs(t *testing.T, addr, protocol string) *harness.Client {
	t.Helper()
	c := harness.Dial(t, addr)
	require.NotEqual(t, byte('-'), c.Ask("HELLO", protocol).Kind)
	return c
}

// compareScenario runs a scenario on both and compares. One difference is enough: what follows is another story.
func compareScenario(t *testing.T, s subject, sc scenario, tag string, native, gateway *harness.Client) {
	t.Helper()
	from := time.Now()
	want := runScenario(t, subject{}, sc, tag, from, native)
	got := runScenario(t, s, sc, tag, from, gateway)
	slack := time.Since(from) // what the two may differ by, if they measure from an instant that is written down; otherwise by less
	for i, st := range sc.steps {
		where := fmt.Sprintf("%s, %s: %s", s.name, sc.name, st.line)
		written := fill(st.reply, tag, from)
		if st.known && st.sentTo(s) && !assert.True(t, asWritten(written, texts(got[i]), st, slack), "%s\nanswers %s", where, texts(got[i])) {
			return
		}
		if st.only != "" {
			continue
		}
		if st.known && !assert.True(t, asWritten(written, texts(want[i]), st, slack), "native, %s\nanswers %s", where, texts(want[i])) {
			return
		}
		if !assert.Equal(t, want[i].Wire(), withTimesOf(want[i], got[i], tolerance(st, slack)).Wire(), where) {
			return
		}
	}
	for _, key := range []string{"k", "l", "o"} {
		assertSameState(t, sc, fill(key, tag, from), native, gateway, slack)
	}
}

func (st step) sentTo(s subject) bool {
	switch st.only {
	case "@redis":
		return s.redis
	case "@cluster":
		return s.cluster
	case "@one":
		return s.redis && !s.cluster
	}
	return true
}

// runScenario sends the steps one after another and returns their replies; the native server's subject is the zero one.
func runScenario(t *testing.T, s subject, sc scenario, tag string, from time.Time, c *harness.Client) []harness.Value {
	t.Helper()
	replies := make([]harness.Value, len(sc.steps))
	for i, st := range sc.steps {
		if !st.sentTo(s) {
			continue
		}
		words := make([]string, len(st.words))
		for j, word := range st.words {
			words[j] = fill(word, tag, from)
		}
		require.NoError(t, c.Send(harness.Command(words...)))
		reply, err := c.Read(harness.ReplyTimeout)
		require.NoError(t, err, "%s, %s: %s", s.name, sc.name, st.line)
		replies[i] = reply
	}
	return replies
}

var template = regexp.MustCompile(`\{(ns|ms|slice)([+-][0-9]+)\}`)

// fill puts in the scenario's keys and times.
func fill(word, tag string, from time.Time) string {
	switch word {
	case "k", "l":
		return "{" + tag + "}:" + word
	case "o":
		return "{other " + tag + "}:o"
	}
	word = strings.ReplaceAll(word, "{tag}", "{"+tag+"}")
	return template.ReplaceAllStringFunc(word, func(found string) string {
		parts := template.FindStringSubmatch(found)
		n, _ := strconv.ParseInt(parts[2], 10, 64)
		switch parts[1] {
		case "ns":
			return strconv.FormatInt(from.UnixNano()+n*int64(time.Millisecond), 10)
		case "ms":
			return strconv.FormatInt(from.UnixMilli()+n, 10)
		}
		const slice = int64(time.Hour / time.Millisecond) // a tenth of the ten hours that the scenario asks for
		return strconv.FormatInt(from.UnixMilli()/slice*slice+n*slice, 10)
	})
}

// inSeconds are the commands whose replies count seconds: rounded up, so they only differ if the two are that far apart.
var inSeconds = []string{"cl.throttle", "rl.throttle", "gcra", "ttl", "multi", "exec"}

// tolerance is by how much two times may differ in the replies to a command.
func tolerance(st step, slack time.Duration) int64 {
	if slices.Contains(inSeconds, strings.ToLower(st.words[0])) {
		if slack < 400*time.Millisecond {
			return 0
		}
		return int64(slack/time.Second) + 1
	}
	return slack.Milliseconds() + 1
}

// firstTime is where in a limiter's reply the times begin; limited, limit and remaining stand before them.
const firstTime = 3

// asWritten reports whether a reply is the one that is written down.
func asWritten(want, got string, st step, slack time.Duration) bool {
	if strings.HasPrefix(want, "-") && strings.HasPrefix(got, "-") && len(want) > 3 {
		return want == got
	}
	wants, gots := strings.Fields(want), strings.Fields(got)
	if len(wants) != len(gots) {
		return false
	}
	for i, word := range wants {
		if word == gots[i] || word == "~" {
			continue
		}
		a, errA := strconv.ParseInt(strings.Trim(word, "[]"), 10, 64)
		b, errB := strconv.ParseInt(strings.Trim(gots[i], "[]"), 10, 64)
		if errA != nil || errB != nil || a < 0 || b < 0 || i < firstTime && len(wants) > 1 || abs(a-b) > tolerance(st, slack) {
			return false
		}
	}
	return true
}

var leaseID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// withTimesOf returns got with those of its times that are near enough put as they are in want.
func withTimesOf(want, got harness.Value, tolerance int64) harness.Value {
	if len(want.Items) != len(got.Items) || want.Kind != got.Kind {
		return got
	}
	items := make([]harness.Value, len(got.Items))
	for i, item := range got.Items {
		items[i] = withTimesOf(want.Items[i], item, tolerance)
		if i >= firstTime && item.Kind == ':' && want.Items[i].Kind == ':' && near(want.Items[i].Text, item.Text, tolerance) {
			items[i].Text = want.Items[i].Text
		}
		if leaseID.MatchString(item.Text) && leaseID.MatchString(want.Items[i].Text) {
			items[i].Text = want.Items[i].Text
		}
	}
	if got.Items != nil {
		got.Items = items
	} else if got.Kind == ':' && near(want.Text, got.Text, tolerance) && len(got.Text) > 3 {
		got.Text = want.Text // PTTL and its like
	}
	return got
}

// near reports whether two texts are times that differ by no more than may be; -1 is none.
func near(a, b string, tolerance int64) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return errX == nil && errY == nil && x >= 0 && y >= 0 && abs(x-y) <= tolerance
}

func abs(n int64) int64 { return max(n, -n) }

// assertSameState compares what is stored in a key.
func assertSameState(t *testing.T, sc scenario, key string, native, gateway *harness.Client, slack time.Duration) {
	t.Helper()
	where := sc.name + ": the key " + key
	kind := native.Ask("TYPE", key).Text
	if !assert.Equal(t, kind, gateway.Ask("TYPE", key).Text, where) {
		return
	}
	wantEnds, gotEnds := native.Ask("PEXPIRETIME", key).Text, gateway.Ask("PEXPIRETIME", key).Text
	want, got := stored(native, kind, key), stored(gateway, kind, key)
	if sc.state {
		assert.Equal(t, want, got, where)
		assert.Equal(t, wantEnds, gotEnds, where)
		return
	}
	assert.True(t, wantEnds == gotEnds || near(wantEnds, gotEnds, slack.Milliseconds()+1), "%s ends at %s, and at %s", where, wantEnds, gotEnds)
	assert.True(t, kind != "string" || want[0] == got[0] || near(want[0], got[0], slack.Nanoseconds()), "%s: %s and %s", where, want, got)
	assert.Len(t, got, len(want), where)
}

// stored is what a key holds, in an order of its own.
func stored(c *harness.Client, kind, key string) []string {
	var v harness.Value
	switch kind {
	case "string":
		return []string{c.Ask("GET", key).Text}
	case "hash":
		v = c.Ask("HGETALL", key)
	case "zset":
		v = c.Ask("ZRANGE", key, "0", "-1", "WITHSCORES")
	case "list":
		v = c.Ask("LRANGE", key, "0", "-1")
	case "set":
		v = c.Ask("SMEMBERS", key)
	}
	var all []string
	for _, item := range v.Sorted(kind == "hash").Items {
		all = append(all, texts(item))
	}
	return all
}

// readContract reads testdata/contract.txt.
func readContract(t *testing.T) (all []scenario) {
	t.Helper()
	file, err := os.Open("testdata/contract.txt")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSuffix(lines.Text(), "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			all = append(all, scenario{name: name, state: strings.HasSuffix(name, ", with state")})
		} else if line != "" && !strings.HasPrefix(line, "#") {
			require.NotEmpty(t, all, line)
			current := &all[len(all)-1]
			current.steps = append(current.steps, readStep(t, line))
		}
	}
	require.NotEmpty(t, all)
	return all
}

func readStep(t *testing.T, line string) step {
	t.Helper()
	st := step{line: line}
	command, reply, known := strings.Cut(line, " -> ")
	st.reply, st.known = reply, known
	if strings.HasPrefix(command, "@") {
		st.only, command, _ = strings.Cut(command, " ")
	}
	for command != "" {
		var word string
		if strings.HasPrefix(command, `"`) {
			end := strings.IndexByte(command[1:], '"')
			require.GreaterOrEqual(t, end, 0, line)
			word, command = command[1:1+end], strings.TrimPrefix(command[end+2:], " ")
		} else {
			word, command, _ = strings.Cut(command, " ")
		}
		st.words = append(st.words, word)
	}
	return st
}
