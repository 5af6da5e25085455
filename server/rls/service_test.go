package rls_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/netpoll"
	"headgate/server/servertest"
)

const rules = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: site
    rate_limit: {unit: day, requests_per_unit: 100, algorithm: gcra}
  - key: tried
    rate_limit: {unit: hour, requests_per_unit: 1}
    shadow_mode: true
  - key: named
    rate_limit: {unit: hour, requests_per_unit: 1, name: small}
  - key: better
    rate_limit: {unit: hour, requests_per_unit: 5, name: large, replaces: [{name: small}]}
  - key: free
    rate_limit: {unlimited: true}
  - key: lost
    rate_limit: {policy: nobody}
`

// freePort is a port of this machine that nobody listens on.
func freePort(t *testing.T) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// open starts a server with these rules, and returns a client and the rules' file.
func open(t *testing.T, change func(*config.Config)) (client rls.RateLimitServiceClient, conn *grpc.ClientConn, file string) {
	_, client, conn, file = openServer(t, change)
	return client, conn, file
}

// openServer is open, and returns the server as well.
func openServer(t *testing.T, change func(*config.Config), log ...*slog.Logger) (srv *server.Server, client rls.RateLimitServiceClient, conn *grpc.ClientConn, file string) {
	options := server.Options{}
	if len(log) > 0 {
		options.Log = log[0]
	}
	return openWith(t, options, change)
}

// openWith is openServer with options.
func openWith(t *testing.T, options server.Options, change func(*config.Config)) (srv *server.Server, client rls.RateLimitServiceClient, conn *grpc.ClientConn, file string) {
	cfg := servertest.Unsaved()
	dir := t.TempDir()
	file = filepath.Join(dir, "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(rules), 0o600))
	cfg.Port, cfg.UnixSocket = 0, filepath.Join(dir, "s")
	cfg.RLSBind, cfg.RLSPort, cfg.RLSConfig = []string{"127.0.0.1"}, freePort(t), file
	if change != nil {
		change(cfg)
	}
	srv = server.New(config.NewLive(cfg), options)
	require.NoError(t, srv.Listen())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		srv.Run()
	}()
	conn, err := grpc.NewClient(net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.RLSPort)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
		<-ended
	})
	return srv, rls.NewRateLimitServiceClient(conn), conn, file
}

// request makes a request of descriptors that have one entry each.
func request(words ...string) *rls.RateLimitRequest {
	r := &rls.RateLimitRequest{Domain: "shop"}
	for i := 0; i < len(words); i += 2 {
		r.Descriptors = append(r.Descriptors, &common.RateLimitDescriptor{Entries: []*common.RateLimitDescriptor_Entry{{Key: words[i], Value: words[i+1]}}})
	}
	return r
}

func ask(t *testing.T, client rls.RateLimitServiceClient, r *rls.RateLimitRequest) *rls.RateLimitResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := client.ShouldRateLimit(ctx, r)
	require.NoError(t, err)
	return answer
}

// TestShouldRateLimit: limits answer as envoyproxy/ratelimit's do, but that nothing is charged when one limits.
func TestShouldRateLimit(t *testing.T) {
	client, _, _ := open(t, func(cfg *config.Config) { cfg.RLSResponseHeaders = true })
	for i := range uint32(3) {
		a := ask(t, client, request("user", "bob", "site", "all", "free", "x", "unknown", "y"))
		require.Equal(t, rls.RateLimitResponse_OK, a.OverallCode)
		require.Len(t, a.Statuses, 4)
		require.Equal(t, 2-i, a.Statuses[0].LimitRemaining)
		require.EqualValues(t, 3, a.Statuses[0].CurrentLimit.RequestsPerUnit)
		require.Equal(t, rls.RateLimitResponse_RateLimit_HOUR, a.Statuses[0].CurrentLimit.Unit)
		require.InDelta(t, 3600-time.Now().Unix()%3600, a.Statuses[0].DurationUntilReset.Seconds, 2)
		require.Equal(t, 99-i, a.Statuses[1].LimitRemaining)
		require.EqualValues(t, uint32(math.MaxUint32), a.Statuses[2].LimitRemaining)
		require.Nil(t, a.Statuses[3].CurrentLimit)
		require.Equal(t, "3", a.ResponseHeadersToAdd[0].Value)
		require.Equal(t, strconv.Itoa(int(2-i)), a.ResponseHeadersToAdd[1].Value)
	}
	a := ask(t, client, request("user", "bob", "site", "all"))
	require.Equal(t, rls.RateLimitResponse_OVER_LIMIT, a.OverallCode)
	require.Equal(t, rls.RateLimitResponse_OVER_LIMIT, a.Statuses[0].Code)
	require.Equal(t, rls.RateLimitResponse_OK, a.Statuses[1].Code)
	require.EqualValues(t, 97, a.Statuses[1].LimitRemaining, "nothing is charged there")

	for range 3 {
		a = ask(t, client, request("tried", "x"))
		require.Equal(t, rls.RateLimitResponse_OK, a.OverallCode, "a shadow limits nobody")
	}
	for range 3 {
		a = ask(t, client, request("named", "x", "better", "x"))
		require.Equal(t, rls.RateLimitResponse_OK, a.OverallCode, "the small one is replaced")
		require.Nil(t, a.Statuses[0].CurrentLimit)
	}
	require.EqualValues(t, 2, a.Statuses[1].LimitRemaining)
}

// TestHits: a request's hits hold for all descriptors, and a descriptor's own for it alone: 0 only asks, and negative ones give back.
func TestHits(t *testing.T) {
	client, _, _ := open(t, nil)
	r := request("site", "all")
	r.HitsAddend = 10
	require.EqualValues(t, 90, ask(t, client, r).Statuses[0].LimitRemaining)
	r.Descriptors[0].HitsAddend = wrapperspb.UInt64(0)
	require.EqualValues(t, 90, ask(t, client, r).Statuses[0].LimitRemaining)
	r.Descriptors[0].HitsAddend = wrapperspb.UInt64(4)
	r.Descriptors[0].IsNegativeHits = true
	require.EqualValues(t, 94, ask(t, client, r).Statuses[0].LimitRemaining)
	r = request("site", "all", "site", "all")
	require.EqualValues(t, 92, ask(t, client, r).Statuses[1].LimitRemaining, "the same limit twice is charged twice")
	r = request("user", "x")
	r.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 7}
	r.Descriptors[0].Limit.Unit = 2
	a := ask(t, client, r)
	require.EqualValues(t, 6, a.Statuses[0].LimitRemaining, "the descriptor's own limit")
}

// TestOwnLimitsOfOneKey: descriptors with the same entries charge one count, as envoyproxy/ratelimit has it, and each is answered by the limit that it
// brings, in whatever order they stand.
func TestOwnLimitsOfOneKey(t *testing.T) {
	srv, client, _, _ := openServer(t, nil)
	limited := func(value string, limits ...uint32) *rls.RateLimitRequest {
		r := &rls.RateLimitRequest{Domain: "shop"}
		for _, n := range limits {
			d := request("user", value).Descriptors[0]
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: 4}
			r.Descriptors = append(r.Descriptors, d)
		}
		return r
	}
	statuses := func(a *rls.RateLimitResponse) (text string) {
		for _, each := range a.Statuses {
			text += fmt.Sprintf("%v %d/%d ", each.Code, each.LimitRemaining, each.CurrentLimit.RequestsPerUnit)
		}
		return text + a.OverallCode.String()
	}
	require.Equal(t, "OK 8/10 OK 2/4 OK", statuses(ask(t, client, limited("a", 10, 4))))
	require.Equal(t, "OK 6/10 OK 0/4 OK", statuses(ask(t, client, limited("a", 10, 4))))
	require.Equal(t, "OK 6/10 OVER_LIMIT 0/4 OVER_LIMIT", statuses(ask(t, client, limited("a", 10, 4))))
	require.Equal(t, "OVER_LIMIT 0/4 OK 6/10 OVER_LIMIT", statuses(ask(t, client, limited("a", 4, 10))))
	require.Equal(t, "OK 5/10 OK", statuses(ask(t, client, limited("a", 10))))
	require.Equal(t, "OVER_LIMIT 0/5 OVER_LIMIT 0/4 OVER_LIMIT 0/6 OVER_LIMIT", statuses(ask(t, client, limited("a", 5, 4, 6))))
	require.Equal(t, "OK 7/9 OK 7/9 OK 6/8 OK 0/2 OK", statuses(func() *rls.RateLimitResponse {
		r := limited("b", 9, 9, 8, 2)
		for i, hits := range []uint64{1, 0, 1, 0} {
			r.Descriptors[i].HitsAddend = wrapperspb.UInt64(hits)
		}
		return ask(t, client, r)
	}()))

	for _, want := range []string{"OK 0/1 OK 1/3 OK", "OK 0/1 OVER_LIMIT 0/3 OVER_LIMIT"} {
		r := request("tried", "x", "tried", "x") // whose own limit is a shadow
		r.Descriptors[1].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: 3}
		require.Equal(t, want, statuses(ask(t, client, r)))
	}
	series := servertest.Scrape(t, srv)
	require.EqualValues(t, 4, series[`headgate_rls_requests_total{result="over_limit"}`])
}

// TestRefusals: what cannot be answered is an error of gRPC.
func TestRefusals(t *testing.T) {
	client, _, _ := open(t, nil)
	for _, tt := range []struct {
		request *rls.RateLimitRequest
		code    codes.Code
		text    string
	}{
		{&rls.RateLimitRequest{}, codes.InvalidArgument, "rate limit domain must not be empty"},
		{&rls.RateLimitRequest{Domain: "shop"}, codes.InvalidArgument, "rate limit descriptor list must not be empty"},
		{request(make([]string, 66)...), codes.InvalidArgument, "a request has more than 32 descriptors"},
		{request("lost", "x"), codes.FailedPrecondition, "ERR no such policy 'nobody'"},
	} {
		_, err := client.ShouldRateLimit(context.Background(), tt.request)
		require.Equal(t, tt.code, status.Code(err), tt.text)
		require.Equal(t, tt.text, status.Convert(err).Message())
	}
}

// TestRulesChange: rules are read anew when their file changes, and stay as they were after a mistake.
func TestRulesChange(t *testing.T) {
	srv, client, conn, file := openServer(t, nil)
	limit := func() int {
		return int(ask(t, client, request("user", "x")).Statuses[0].CurrentLimit.GetRequestsPerUnit())
	}
	require.Equal(t, 3, limit())
	change := func(text string) {
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	change("domain: shop\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 8}}]")
	require.Eventually(t, func() bool { return limit() == 8 }, 20*time.Second, 50*time.Millisecond)
	change("domain: shop\nmistake: yes")
	require.Eventually(t, func() bool { return srv.Envoy.Counts().FailedReloads.Load() == 1 }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, 8, limit())
	answer, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, answer.Status)
	series := servertest.Scrape(t, srv)
	require.EqualValues(t, 1, series["headgate_rls_limits{}"])
	require.EqualValues(t, 1, series["headgate_rls_reloads_total{}"])
	require.EqualValues(t, 1, series["headgate_rls_reloads_failed_total{}"])
	require.Positive(t, series[`headgate_rls_requests_total{result="ok"}`])
	require.Zero(t, series[`headgate_rls_requests_total{result="failed"}`])
}

// TestBadRulesAtStart: a server does not start with rules that cannot be read.
func TestBadRulesAtStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("domain: shop\nmistake: yes"), 0o600))
	cfg := servertest.Unsaved()
	cfg.Port, cfg.UnixSocket, cfg.RLSPort = 0, filepath.Join(t.TempDir(), "s"), freePort(t)
	require.ErrorContains(t, server.New(config.NewLive(cfg), server.Options{}).Listen(), "set rls-config")
	cfg.RLSConfig = file
	require.ErrorContains(t, server.New(config.NewLive(cfg), server.Options{}).Listen(), "rules.yaml:2: unknown key 'mistake', use domain, descriptors")
}

// TestLimitHoldsUnderManyClients: 50 clients together get exactly what the limit allows.
func TestLimitHoldsUnderManyClients(t *testing.T) {
	const clients, each, limit = 50, 20, 100
	client, _, _ := open(t, nil)
	var passed atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for range each {
				answer, err := client.ShouldRateLimit(context.Background(), request("site", "crowd"))
				if err != nil {
					t.Error(err)
					return
				}
				if answer.OverallCode == rls.RateLimitResponse_OK {
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.InDelta(t, limit, passed.Load(), 1, "and what has drained meanwhile")
}

// TestCountedByName: requests are counted under the names of rules, of their policies, or of the descriptors that lead to them; what they bring
// themselves makes no names.
func TestCountedByName(t *testing.T) {
	srv, client, _, file := openServer(t, func(cfg *config.Config) {
		parsed, _, err := limiter.Standard.ParseText(limiter.Words("FIXED 5 1h"))
		require.NoError(t, err)
		cfg.Policies = append(cfg.Policies, config.NamedPolicy{Name: "nobody", Text: "FIXED 5 1h", Policy: parsed})
	})
	require.NoError(t, os.WriteFile(file, []byte(rules+`
  - key: user
    value: /a b*
    rate_limit: {unit: hour, requests_per_unit: 3}
    descriptors:
      - key: path
        value: x
        rate_limit: {unit: hour, requests_per_unit: 3}
`), 0o600))
	require.Eventually(t, func() bool { return srv.Envoy.Counts().Reloads.Load() == 1 }, 20*time.Second, 20*time.Millisecond)
	ask(t, client, request("user", "bob"))
	ask(t, client, request("user", "eve"))
	ask(t, client, request("named", "x"))
	ask(t, client, request("lost", "x"))
	ask(t, client, request("user", "/a bc"))
	r := request("user", "/a b")
	r.Descriptors[0].Entries = append(r.Descriptors[0].Entries, &common.RateLimitDescriptor_Entry{Key: "path", Value: "x"})
	ask(t, client, r)
	r = request("strange", "\"}\n")
	r.Descriptors[0].Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 7, Unit: 2}
	ask(t, client, r)
	counted := map[string]float64{}
	for name, value := range servertest.Scrape(t, srv) {
		if policy, is := strings.CutPrefix(name, `headgate_policy_calls_total{policy="`); is && value > 0 {
			counted[strings.TrimSuffix(policy, `",result="allowed"}`)] = value
		}
	}
	require.Equal(t, map[string]float64{"shop.user": 2, "small": 1, "nobody": 1, "shop.user__a_b_": 1, "shop.user__a_b_.path_x": 1, "shop": 1}, counted)
}

// lines collects the log.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	list []string
}

// Handle implements slog.Handler.
func (l *lines) Handle(_ context.Context, line slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := line.Message
	line.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.list = append(l.list, text)
	return nil
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

// with are the lines so far that contain a text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.list {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// TestMissingPolicies: the log says which policies of rules do not exist.
func TestMissingPolicies(t *testing.T) {
	log := &lines{Handler: slog.DiscardHandler}
	_, _, _, file := openServer(t, nil, slog.New(log))
	const missing = "names a policy that does not exist"
	require.Eventually(t, func() bool { return len(log.with(missing)) == 1 }, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, log.with(missing)[0], "policy=nobody at="+file+":18 missing=1")
	conn, err := net.Dial("unix", filepath.Join(filepath.Dir(file), "s"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("RL.POLICY SET nobody FIXED 1 1h\r\n"))
	require.NoError(t, err)
	answer := make([]byte, len("+OK\r\n"))
	_, err = io.ReadFull(conn, answer)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", string(answer))
	require.NoError(t, os.WriteFile(file, []byte(rules+"  - {key: also, rate_limit: {policy: nothing}}\n"), 0o600))
	require.Eventually(t, func() bool { return len(log.with(missing)) == 2 }, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, log.with(missing)[1], "policy=nothing at="+file+":19 missing=1")

	cfg := servertest.Unsaved()
	cfg.RLSPort, cfg.RLSConfig = 1, file
	notices := server.Advise(cfg)
	require.Len(t, notices, 2)
	require.Equal(t, file+":18: the configuration has no policy 'nobody': requests that the rule matches fail until RL.POLICY SET has made one", notices[0].String())
	cfg.RLSPort = 0
	require.Empty(t, server.Advise(cfg))
}

// TestWrongLogin: a user or a password with which all requests fail is told at the start, and when a request fails: Envoy lets those pass.
func TestWrongLogin(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"no such user":     {func(cfg *config.Config) { cfg.RLSUser, cfg.RLSPassword = "envoy", "secret" }, "correct rls-user and rls-password user=envoy err=WRONGPASS"},
		"no user":          {func(cfg *config.Config) { cfg.RequirePass = "another" }, "set rls-user and rls-password"},
		"the default user": {func(cfg *config.Config) { cfg.RequirePass, cfg.RLSPassword = "another", "wrong" }, "correct rls-user and rls-password user=default err=WRONGPASS"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{Handler: slog.DiscardHandler}
			_, client, _, _ := openServer(t, tt.change, slog.New(log))
			require.Eventually(t, func() bool { return len(log.with("all requests to the rate limit service fail")) == 1 }, 20*time.Second, 20*time.Millisecond)
			require.Contains(t, log.with("all requests to the rate limit service fail")[0], tt.want)
			for range 3 {
				_, err := client.ShouldRateLimit(context.Background(), request("user", "x"))
				require.Equal(t, codes.PermissionDenied, status.Code(err))
			}
			require.NotEmpty(t, log.with("its user may not check limits"))
		})
	}
}

// TestLoginChanges: a password that was taken back, or that is asked for from now on, fails requests at once, though they have passed before.
func TestLoginChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*config.Config)
		command string
	}{
		"a password is set": {func(*config.Config) {}, "CONFIG SET requirepass other"},
		"it is changed":     {func(cfg *config.Config) { cfg.RequirePass, cfg.RLSPassword = "one", "one" }, "CONFIG SET requirepass other"},
		"the user is off":   {func(cfg *config.Config) { cfg.RequirePass, cfg.RLSPassword = "one", "one" }, "ACL SETUSER default off"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &lines{Handler: slog.DiscardHandler}
			srv, client, _, _ := openServer(t, tt.change, slog.New(log))
			ask(t, client, request("user", "x"))
			inner := netpoll.NewInner(srv.WithoutBackgroundWork(), "127.0.0.1:0", "127.0.0.1:0")
			defer inner.Close()
			replies, err := inner.Do(context.Background(), []byte("AUTH one\r\n"+tt.command+"\r\n"), func(b []byte) bool { return strings.Count(string(b), "\r\n") == 2 })
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(string(replies), "\r\n+OK\r\n"), "%s", replies)
			_, err = client.ShouldRateLimit(context.Background(), request("user", "x"))
			require.Equal(t, codes.PermissionDenied, status.Code(err))
			require.NotEmpty(t, log.with("its user may not check limits"))
		})
	}
}

// TestRightLogin: with the right password nothing is told.
func TestRightLogin(t *testing.T) {
	log := &lines{Handler: slog.DiscardHandler}
	_, client, _, _ := openServer(t, func(cfg *config.Config) { cfg.RequirePass, cfg.RLSPassword = "another", "another" }, slog.New(log))
	ask(t, client, request("user", "x"))
	require.Eventually(t, func() bool { return len(log.with("policy=nobody")) == 1 }, 20*time.Second, 20*time.Millisecond, "the first look")
	require.Empty(t, log.with("rate limit service fail"))
}

// TestHealth: each service's health is what /readyz says.
func TestHealth(t *testing.T) {
	srv, _, conn, _ := openServer(t, nil)
	client := healthpb.NewHealthClient(conn)
	names := []string{"", "envoy.service.ratelimit.v3.RateLimitService", "ratelimit"}
	requireHealth := func(want healthpb.HealthCheckResponse_ServingStatus) {
		for _, name := range names {
			answer, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
			require.NoError(t, err)
			require.Equal(t, want, answer.Status, name)
		}
	}
	requireHealth(healthpb.HealthCheckResponse_SERVING)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	watch, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: "ratelimit"})
	require.NoError(t, err)
	requireWatched := func(want healthpb.HealthCheckResponse_ServingStatus) {
		told, err := watch.Recv()
		require.NoError(t, err)
		require.Equal(t, want, told.Status)
	}
	requireWatched(healthpb.HealthCheckResponse_SERVING)
	srv.Gate.Set(command.GateUnsynced, true)
	requireHealth(healthpb.HealthCheckResponse_NOT_SERVING)
	requireWatched(healthpb.HealthCheckResponse_NOT_SERVING)
	srv.Gate.Set(command.GateUnsynced, false)
	requireWatched(healthpb.HealthCheckResponse_SERVING)
	requireHealth(healthpb.HealthCheckResponse_SERVING)
	_, err = client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "other"})
	require.Equal(t, codes.NotFound, status.Code(err))
}

// TestManyWatch: however many watch health, a probe that checks it is answered.
func TestManyWatch(t *testing.T) {
	_, _, conn, _ := openServer(t, nil)
	client := healthpb.NewHealthClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	refused := 0
	for range 300 {
		watch, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		if _, err = watch.Recv(); err != nil {
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			refused++
		}
	}
	require.Equal(t, 300-256, refused)
	answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, answer.Status)
}
