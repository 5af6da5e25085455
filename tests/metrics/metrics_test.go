// Package metrics tests what the HTTP port shows with the programs that look at it: Prometheus, and a browser. Where one of them is not
// installed its tests are skipped; scripts/deps.sh brings them, as `make metrics-test` and `make page` do.
package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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

// waitLimit is how long something may take that is waited for.
const waitLimit = 60 * time.Second

// program returns the path of a program, or skips the test.
func program(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: scripts/deps.sh %s:%s brings it", name, name, name)
	}
	return path
}

// start runs headgate with an HTTP port and returns the port's address.
func start(t *testing.T, flags ...string) (s *harness.Server, addr string) {
	port := harness.FreePort(t)
	s = harness.Start(t, append([]string{"--metrics-port", strconv.Itoa(port), "--metrics-bind", "127.0.0.1"}, flags...)...)
	return s, "127.0.0.1:" + strconv.Itoa(port)
}

// known is a load of which every number is known.
type known struct {
	allowed, limited, near int // decisions by GCRA
	policyAllowed          int // of the policy login
	policyLimited          int
	unknown                int
	gets, hits             int
	keys                   int
	mostLimited            string
	limitedOfIt            int
}

// sendKnown sends the load. No limit gives anything back for an hour.
func sendKnown(t *testing.T, s *harness.Server) known {
	const users, limit, calls, logins, unknown, gets = 7, 20, 30, 12, 9, 25
	client := harness.Dial(t, s.Addr)
	defer client.Close()
	k := known{unknown: unknown, gets: gets, hits: gets - 5, policyAllowed: 5, policyLimited: logins - 5}
	for user := range users {
		for range calls + user {
			client.Ask("CL.THROTTLE", fmt.Sprintf("user:%d", user), strconv.Itoa(limit-1), "1", "100000")
		}
		k.allowed += limit
		k.near += limit/10 + 1
		k.limited += calls + user - limit
	}
	k.mostLimited, k.limitedOfIt = fmt.Sprintf("user:%d", users-1), calls+users-1-limit
	client.Ask("RL.POLICY", "SET", "login", "FIXED", "5", "1d")
	for range logins {
		client.Ask("RL.TAKE", "1", "login", "<script>alert(1)</script>")
	}
	client.Ask("SET", "k", "v")
	for i := range gets {
		name := "k"
		if i < gets-k.hits {
			name = "none"
		}
		client.Ask("GET", name)
	}
	for i := range unknown {
		client.Ask("MADEUP" + strconv.Itoa(i))
	}
	k.keys = users + 1 + 1 + 1 // the policies' hash, the login and k
	return k
}

// TestPrometheus has Debian's Prometheus scrape a server and asks it for what was sent.
func TestPrometheus(t *testing.T) {
	binary := program(t, "prometheus")
	s, addr := start(t)
	k := sendKnown(t, s)
	prometheus := runPrometheus(t, binary, addr)
	for query, want := range map[string]float64{
		`up`:             1,
		`redis_up`:       1,
		`headgate_ready`: 1,
		`headgate_limiter_calls_total{algorithm="gcra",result="allowed"}`: float64(k.allowed),
		`headgate_limiter_calls_total{algorithm="gcra",result="limited"}`: float64(k.limited),
		`headgate_limiter_near_limit_total{algorithm="gcra"}`:             float64(k.near),
		`headgate_policy_calls_total{policy="login",result="allowed"}`:    float64(k.policyAllowed),
		`headgate_policy_calls_total{policy="login",result="limited"}`:    float64(k.policyLimited),
		`redis_commands_total{cmd="cl.throttle"}`:                         float64(k.allowed + k.limited),
		`redis_commands_total{cmd="rl.take"}`:                             float64(k.policyAllowed + k.policyLimited),
		`redis_commands_rejected_calls_total{cmd="unknown"}`:              float64(k.unknown),
		`redis_keyspace_hits_total`:                                       float64(k.hits),
		`redis_keyspace_misses_total`:                                     float64(k.gets - k.hits),
		`redis_db_keys{db="db0"}`:                                         float64(k.keys),
		`headgate_top_key_calls{list="limited",rank="1"}`:                 float64(k.limitedOfIt),
		`headgate_command_duration_seconds_count{cmd="rl.take"}`:          float64(k.policyAllowed + k.policyLimited),
		`sum(headgate_limiter_calls_total{result="limited"}) / sum(headgate_limiter_calls_total)`: float64(k.limited+k.policyLimited) /
			float64(k.limited+k.policyLimited+k.allowed+k.policyAllowed),
		`histogram_quantile(0.5, sum by (le) (headgate_command_duration_seconds_bucket{cmd="cl.throttle"})) < bool 0.1`: 1,
		`count(headgate_command_duration_seconds_bucket{cmd="get"})`:                                                    25,
		`count(redis_instance_info)`: 1,
	} {
		require.Eventually(t, func() bool {
			got, found := prometheus.value(t, query)
			return found && got > want-1e-9 && got < want+1e-9
		}, waitLimit, 100*time.Millisecond, "%s is not %v", query, want)
	}
	require.NoError(t, s.Terminate())
	require.Eventually(t, func() bool { got, found := prometheus.value(t, "up"); return found && got == 0 }, waitLimit, 100*time.Millisecond)
}

// scraper is a Prometheus that runs.
type scraper struct{ addr string }

// runPrometheus has a Prometheus scrape an address five times a second.
func runPrometheus(t *testing.T, binary, target string) scraper {
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs: [{job_name: headgate, static_configs: [{targets: ['%s']}]}]\n", target), 0o644))
	p := scraper{"127.0.0.1:" + strconv.Itoa(harness.FreePort(t))}
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.addr, "--log.level=error")
	out, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
		if log, err := os.ReadFile(out.Name()); err == nil && t.Failed() {
			t.Logf("Prometheus says:\n%s", log)
		}
	})
	return p
}

// value asks for an expression that has one value.
func (p scraper) value(t *testing.T, query string) (value float64, found bool) {
	reply, err := http.Get("http://" + p.addr + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return 0, false // it does not listen yet
	}
	defer reply.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if json.NewDecoder(reply.Body).Decode(&answer) != nil || reply.StatusCode == http.StatusServiceUnavailable {
		return 0, false
	}
	require.Empty(t, answer.Error, query)
	if len(answer.Data.Result) == 0 {
		return 0, false
	}
	require.Len(t, answer.Data.Result, 1, query)
	value, err = strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
	require.NoError(t, err)
	return value, true
}

// TestBadPort: the address of metrics-port is checked at the start, in a line that says what to do.
func TestBadPort(t *testing.T) {
	_, addr := start(t)
	_, port, _ := strings.Cut(addr, ":")
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(t), "--port", strconv.Itoa(harness.FreePort(t)), "--save", "", "--metrics-port", port)
	cmd.Dir, cmd.Env = t.TempDir(), harness.Environment()
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "choose another with --metrics-port")
}
