package report_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/limits"
	"headgate/server/report"
	"headgate/server/servertest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
)

func TestMetricsAreWellNamed(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("RL.POLICY", "SET", "login", "LOG", "5", "60s")
	w.Ask("RL.TAKE", "1", "login", "k")
	w.Ask("SET", "k", "v")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&report.Collector{Reports: w.Srv.Reports})
	families, err := registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestMetricsCount(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	for range 20 {
		w.Ask("CL.THROTTLE", "a", "9", "1", "3600") // 10 pass, of which the last two leave 1 and 0
	}
	for range 3 {
		w.Ask("RL.FIXED", "f", "2", "1h")
		w.Ask("RL.FIXED", "f", "2", "1h", "PEEK")
		w.Ask("RL.ACQUIRE", "lease", "2", "1h")
	}
	w.Ask("RL.LOG", "l", "-1", "1h")
	w.Ask("GCRA", "g", "0", "1", "3600")
	w.Ask("GCRA", "g", "0", "1", "3600", "TOKENS", "0")
	w.Ask("RL.POLICY", "SET", "user", "FIXED", "3", "1h")
	w.Ask("RL.POLICY", "SET", "all", "GCRA", "1000", "1", "1h")
	for range 5 {
		w.Ask("RL.TAKE", "2", "user", "u", "all", "g2")
	}
	w.Ask("RL.TAKE", "1", "user", "u", "PEEK")
	w.Ask("SET", "k", "v", "EX", "100")
	w.Ask("GET", "k")
	w.Ask("GET", "nothing")
	w.Ask("GET", "a", "b")
	w.Ask("LPUSH", "k", "v")
	w.Ask("NOSUCH")
	series := servertest.Scrape(t, w.Srv)
	for name, want := range map[string]float64{
		`redis_up{}`:                                                           1,
		`headgate_ready{}`:                                                     1,
		`redis_connected_clients{}`:                                            1,
		`redis_commands_total{cmd="cl.throttle"}`:                              20,
		`redis_commands_total{cmd="get"}`:                                      2,
		`redis_commands_rejected_calls_total{cmd="get"}`:                       1,
		`redis_commands_failed_calls_total{cmd="lpush"}`:                       1,
		`redis_commands_rejected_calls_total{cmd="unknown"}`:                   1,
		`headgate_command_duration_seconds{cmd="get"}_count`:                   2,
		`redis_errors_total{err="WRONGTYPE"}`:                                  1,
		`redis_keyspace_hits_total{}`:                                          1,
		`redis_keyspace_misses_total{}`:                                        1,
		`redis_db_keys{db="db0"}`:                                              float64(w.Srv.Keys.DB(0).Len()),
		`redis_db_keys_expiring{db="db0"}`:                                     float64(w.Srv.Keys.DB(0).Expires()),
		`headgate_limiter_calls_total{algorithm="gcra",result="allowed"}`:      10 + 1 + 3,
		`headgate_limiter_calls_total{algorithm="gcra",result="limited"}`:      10,
		`headgate_limiter_near_limit_total{algorithm="gcra"}`:                  2 + 1,
		`headgate_limiter_calls_total{algorithm="fixed",result="allowed"}`:     2 + 3,
		`headgate_limiter_calls_total{algorithm="fixed",result="limited"}`:     1 + 2,
		`headgate_limiter_near_limit_total{algorithm="fixed"}`:                 1 + 1,
		`headgate_limiter_calls_total{algorithm="lease",result="allowed"}`:     2,
		`headgate_limiter_calls_total{algorithm="lease",result="limited"}`:     1,
		`headgate_limiter_calls_total{algorithm="log",result="allowed"}`:       1,
		`headgate_limiter_near_limit_total{algorithm="log"}`:                   0,
		`headgate_policy_calls_total{policy="user",result="allowed"}`:          3,
		`headgate_policy_calls_total{policy="user",result="limited"}`:          2,
		`headgate_policy_near_limit_total{policy="user"}`:                      1,
		`headgate_policy_calls_total{policy="all",result="allowed"}`:           3,
		`headgate_policy_calls_total{policy="all",result="limited"}`:           0,
		`headgate_policy_near_limit_total{policy="all"}`:                       0,
		`headgate_limiter_calls_total{algorithm="sliding",result="allowed"}`:   0,
		`headgate_limiter_calls_total{algorithm="unlimited",result="allowed"}`: 0,
	} {
		require.Contains(t, series, name)
		require.EqualValues(t, want, series[name], name)
	}
	batches := series[`headgate_batch_duration_seconds{}_count`]
	require.InDelta(t, w.Srv.Stats.Batches, batches, command.TimedEvery, "those that are timed stand for all")
	text := w.Ask("INFO", "limiters")
	require.Contains(t, text, "limiter_calls_limited:14\r\n")
	require.Contains(t, text, "algorithm_gcra:allowed=14,near_limit=3,limited=10\r\n")
	require.Contains(t, text, "policy_user:allowed=3,near_limit=1,limited=2\r\n")
	w.Ask("CONFIG", "RESETSTAT")
	series = servertest.Scrape(t, w.Srv)
	require.Zero(t, series[`headgate_limiter_calls_total{algorithm="gcra",result="allowed"}`])
	require.Zero(t, series[`headgate_policy_calls_total{policy="user",result="limited"}`])
}

// TestInfoOfAPolicy: of what is 0 there is no field; blocks=0 stood in the lines of algorithms, which do not count blocks.
func TestInfoOfAPolicy(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("RL.POLICY", "SET", "shadow", "FIXED", "1", "1h", "SHADOW")
	for range 2 {
		w.Ask("RL.TAKE", "1", "shadow", "k")
	}
	w.Ask("RL.POLICY", "SET", "ban", "FIXED", "1", "1h", "BLOCK", "1h")
	for range 2 {
		w.Ask("RL.TAKE", "1", "ban", "other")
	}
	text := w.Ask("INFO", "limiters")
	require.Contains(t, text, "algorithm_fixed:allowed=2,near_limit=2,limited=1,shadow_limited=1\r\n")
	require.Contains(t, text, "policy_shadow:allowed=1,near_limit=1,limited=0,shadow_limited=1\r\n")
	require.Contains(t, text, "policy_ban:allowed=1,near_limit=1,limited=1,blocks=1\r\n")
}

// TestSeriesAreBounded: what clients make up adds no series.
func TestSeriesAreBounded(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("NOSUCH")
	w.Ask("CL.THROTTLE", "k", "1", "1", "60")
	before := len(servertest.Scrape(t, w.Srv))
	for i := range 100_000 {
		w.Run(servertest.EncodeCommand("NOSUCH" + strconv.Itoa(i)))
		w.Run(servertest.EncodeCommand("CL.THROTTLE", "k"+strconv.Itoa(i), "1", "1", "60"))
	}
	series := servertest.Scrape(t, w.Srv)
	require.Len(t, series, before)
	require.EqualValues(t, 100_001, series[`redis_commands_rejected_calls_total{cmd="unknown"}`])
}

// TestExceptionsGoBackToZero: a series that ends with its last key leaves alerts and graphs with what it was.
func TestExceptionsGoBackToZero(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	of := func(kind, policy string) float64 {
		value, found := servertest.Scrape(t, w.Srv)[`headgate_policy_`+kind+`_keys{policy="`+policy+`"}`]
		require.True(t, found, kind)
		return value
	}
	w.Ask("RL.POLICY", "SET", "p", "FIXED", "1", "1m")
	w.Ask("RL.BLOCK", "p", "k", "1h")
	w.Ask("RL.POLICY", "OVERRIDE", "SET", "p", "k", "9", "1m")
	require.EqualValues(t, 1, of("blocked", "p"))
	require.EqualValues(t, 1, of("overridden", "p"))
	w.Ask("RL.UNBLOCK", "p", "k")
	w.Ask("RL.POLICY", "OVERRIDE", "DEL", "p", "k")
	w.Ask("CONFIG", "RESETSTAT")
	require.EqualValues(t, 0, of("blocked", "p"))
	require.EqualValues(t, 0, of("overridden", "p"))
}

// TestPolicySeriesAreBounded: beyond a number of names the rest is summed up, and nothing is lost.
func TestPolicySeriesAreBounded(t *testing.T) {
	const names = limits.MaxCounted + 100
	w := servertest.NewWorkerClient(t)
	for i := range names {
		w.Srv.Policies.Counts.Of("p"+strconv.Itoa(i)).Allowed++
	}
	require.LessOrEqual(t, len(w.Srv.Policies.Counts.List), limits.MaxCounted+1)
	series, all, n := servertest.Scrape(t, w.Srv), 0.0, 0
	for name, value := range series {
		if strings.HasPrefix(name, "headgate_policy_calls_total") {
			all += value
			n++
		}
	}
	require.EqualValues(t, names, all)
	require.Equal(t, 3*(report.MaxPolicySeries+1), n)
	require.EqualValues(t, names-report.MaxPolicySeries, series[`headgate_policy_calls_total{policy="(other)",result="allowed"}`])
}

// TestStrangeLabels: what is no word does not become a label, whatever bytes it has.
func TestStrangeLabels(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	for _, code := range []string{"\xff\xfe", "a\"b", "x\\n", strings.Repeat("y", 100), "FINE"} {
		w.Ask("EVAL", "return redis.error_reply(ARGV[1])", "0", code)
	}
	w.Ask("HSET", limits.PoliciesKey, "a\xffb", "FIXED 1 60s", "ok", "FIXED 1 60s")
	w.Ask("RL.TAKE", "1", "a\xffb", "k1")
	w.Ask("RL.TAKE", "1", "ok", "k2")
	series := servertest.Scrape(t, w.Srv)
	require.EqualValues(t, 3, series[`redis_errors_total{err="(other)"}`])
	require.EqualValues(t, 2, series[`redis_errors_total{err="ERR"}`], "what is longer than a code can be, and a policy of no name")
	require.EqualValues(t, 1, series[`redis_errors_total{err="FINE"}`])
	require.Zero(t, series[`headgate_policy_calls_total{policy="(other)",result="allowed"}`], "no policy has such a name")
	require.EqualValues(t, 1, series[`headgate_policy_calls_total{policy="ok",result="allowed"}`])
}

func TestHistogramBuckets(t *testing.T) {
	var h command.Histogram
	times := []int64{0, 63, 64, 100, 127, 128, 1 << 20, 1<<29 - 1, 1 << 29, int64(time.Second), int64(time.Hour)}
	for _, ns := range times {
		h.Record(ns, 2)
	}
	var buckets [command.HistogramBuckets]uint64
	h.Buckets(&buckets)
	for i, n := range buckets {
		want := uint64(0)
		for _, ns := range times {
			if ns < command.BucketBound(i) {
				want += 2
			}
		}
		require.Equal(t, want, n, "below %d ns", command.BucketBound(i))
	}
}

// fetch asks the HTTP port for a page and returns the status and the text.
func fetch(t *testing.T, addr, path string) (status int, text string) {
	client := http.Client{Timeout: 10 * time.Second}
	reply, err := client.Get("http://" + addr + path)
	require.NoError(t, err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, string(body)
}

// TestHTTPPort runs a server with an HTTP port, and ends it.
func TestHTTPPort(t *testing.T) {
	cfg := servertest.Unsaved()
	cfg.Port, cfg.UnixSocket = 0, t.TempDir()+"/s"
	cfg.MetricsBind = []string{"127.0.0.1"}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := ln.Addr().String()
	cfg.MetricsPort = ln.Addr().(*net.TCPAddr).Port
	require.ErrorContains(t, server.New(config.NewLive(cfg), server.Options{}).Listen(), "--metrics-port")
	require.NoError(t, ln.Close())

	s := server.New(config.NewLive(cfg), server.Options{})
	require.NoError(t, s.Listen())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run()
	}()
	status, text := fetch(t, addr, "/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "\nredis_up 1\n")
	require.Contains(t, text, "\ngo_goroutines ")
	status, text = fetch(t, addr, "/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", text)

	ready := func(wantStatus int, want string) {
		t.Helper()
		status, text := fetch(t, addr, "/readyz")
		require.Equal(t, wantStatus, status, text)
		require.Contains(t, text, want)
	}
	change := func(fn func()) {
		s.Lock()
		defer s.Unlock()
		fn()
	}
	ready(http.StatusOK, "ready")
	change(func() { s.Gate.Refuse(command.GateLoading, journal.ErrLoading) })
	ready(http.StatusServiceUnavailable, "loading")
	change(func() {
		s.Gate.Refuse(command.GateLoading, "")
		s.Gate.Refuse(command.GateDisk, journal.ErrDiskWrite)
	})
	ready(http.StatusServiceUnavailable, "MISCONF")
	change(func() { s.Gate.Refuse(command.GateDisk, "") })
	ready(http.StatusOK, "ready")
	s.Lock() // a command takes long
	ready(http.StatusOK, "ready")
	fetch(t, addr, "/healthz")
	s.Unlock()
	s.Ending.Store(true)
	ready(http.StatusServiceUnavailable, "shutting down")
	s.Ending.Store(false)
	s.Stop()
	<-ended
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
}

func TestRefusesPeer(t *testing.T) {
	for _, tt := range []struct {
		name, password string
		protected      bool
		peer           string
		trusted        bool
	}{
		{"from here", "", true, "127.0.0.1", true},
		{"from here by IPv6", "", true, "::1", true},
		{"from elsewhere", "", true, "192.0.2.1", false},
		{"from elsewhere, as clients may come", "", false, "192.0.2.1", true},
		{"clients need a password", "x", true, "127.0.0.1", false},
		{"clients need a password from everywhere", "x", false, "192.0.2.1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := servertest.Unsaved()
			cfg.RequirePass, cfg.ProtectedMode = tt.password, tt.protected
			s := server.New(config.NewLive(cfg), server.Options{})
			defer s.Keys.Close()
			require.Equal(t, tt.trusted, s.RefusesPeer(netip.MustParseAddr(tt.peer)) == "")
		})
	}
}
