package gateways

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"headgate/tests/internal/harness"
)

var (
	ratelimitPath = flag.String("gateways.ratelimit", "", "program of envoyproxy/ratelimit to compare answers with; see `make gateways`")
	requests      = flag.Int("gateways.requests", 2000, "how many random requests are compared")
	seed          = flag.Uint64("gateways.seed", 0, "of the random requests; 0: any")
)

// rateRules are rules with all that the form has: defaults, values, depth, wildcards, shared limits, replacement, shadow, no limit.
const rateRules = `
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 20}
  - key: user
    value: v1
    rate_limit: {unit: day, requests_per_unit: 7}
    descriptors:
      - key: path
        rate_limit: {unit: minute, requests_per_unit: 5}
      - key: path
        value: v2
  - key: path
    value: v*
    rate_limit: {unit: week, requests_per_unit: 40, name: wide}
  - key: path
    value: v3
    rate_limit: {unit: month, requests_per_unit: 11, name: narrow, replaces: [{name: wide}]}
  - key: team
    value: v*
    share_threshold: true
    rate_limit: {unit: year, requests_per_unit: 60}
    descriptors:
      - key: user
        rate_limit: {unit: hour, requests_per_unit: 9}
  - key: tried
    rate_limit: {unit: hour, requests_per_unit: 3}
    shadow_mode: true
  - key: free
    rate_limit: {unlimited: true}
  - key: shut
    rate_limit: {unit: day, requests_per_unit: 0}
  - key: shut
    value: v2
    rate_limit: {unit: hour}
`

// rateClient is a connection to a rate limit service.
func rateClient(t *testing.T, addr string) rls.RateLimitServiceClient {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return rls.NewRateLimitServiceClient(conn)
}

// TestEnvoyRateLimit sends the same random requests to headgate and to envoyproxy/ratelimit before a redis-server, and demands the same answers.
// Each request has one descriptor and one hit: those with more are charged otherwise when one of them limits, as docs/envoy.md says.
func TestEnvoyRateLimit(t *testing.T) {
	if *ratelimitPath == "" {
		t.Skip("make gateways builds envoyproxy/ratelimit, to compare with")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "rates", "config")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(rateRules), 0o644))
	redis := harness.StartReference(t)
	other := harness.StartOther(t, *ratelimitPath, func(port int) []string {
		return []string{
			"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "GRPC_PORT=" + strconv.Itoa(port),
			"PORT=" + strconv.Itoa(harness.FreePort(t)), "DEBUG_PORT=" + strconv.Itoa(harness.FreePort(t)),
			"BACKEND_TYPE=redis", "REDIS_TYPE=single", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr,
			"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=rates", "RUNTIME_WATCH_ROOT=false", "USE_STATSD=false", "LOG_LEVEL=error",
		}
	})
	port := harness.FreePort(t)
	harness.Start(t, "--rls-port", strconv.Itoa(port), "--rls-config", dir)
	theirs, ours := rateClient(t, other.Addr), rateClient(t, fmt.Sprintf("127.0.0.1:%d", port))
	require.Eventually(t, func() bool {
		_, err := theirs.ShouldRateLimit(context.Background(), randomRequest(rand.New(rand.NewPCG(1, 1))))
		return err == nil
	}, waitLimit, 50*time.Millisecond)
	_, err := ours.ShouldRateLimit(context.Background(), randomRequest(rand.New(rand.NewPCG(1, 1))))
	require.NoError(t, err)

	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-gateways.seed %d", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 0))
	codes := map[rls.RateLimitResponse_Code]int{}
	for i := range *requests {
		request := randomRequest(rnd)
		awaitMinute()
		answers := [2]*rls.RateLimitResponse{}
		var errs [2]error
		var both sync.WaitGroup
		for j, client := range []rls.RateLimitServiceClient{theirs, ours} {
			both.Go(func() { answers[j], errs[j] = client.ShouldRateLimit(context.Background(), request) })
		}
		both.Wait()
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
		for _, a := range answers {
			for _, each := range a.Statuses {
				if each.DurationUntilReset != nil { // to the second, which may pass between the two
					each.DurationUntilReset.Seconds -= each.DurationUntilReset.Seconds % 2
				}
			}
		}
		theirText, ourText := describe(answers[0]), describe(answers[1])
		require.Equal(t, theirText, ourText, "request %d: %v", i, request)
		codes[answers[0].OverallCode]++
	}
	t.Logf("%d requests, the same answers: %d pass, %d are limited", *requests, codes[rls.RateLimitResponse_OK], codes[rls.RateLimitResponse_OVER_LIMIT])
	require.NotZero(t, codes[rls.RateLimitResponse_OVER_LIMIT])
}

// describe is an answer without when its limits are back, which the two are asked at different instants.
func describe(a *rls.RateLimitResponse) string {
	text := a.OverallCode.String()
	for _, each := range a.Statuses {
		text += fmt.Sprintf("; %s of %d per %s (%s), %d remain, resets: %t", each.Code, each.CurrentLimit.GetRequestsPerUnit(), each.CurrentLimit.GetUnit(),
			each.CurrentLimit.GetName(), each.LimitRemaining, each.DurationUntilReset != nil)
	}
	return text
}

// awaitMinute waits while a minute is about to end, so that both count a request in the same one.
func awaitMinute() {
	if left := time.Minute - time.Duration(time.Now().UnixNano())%time.Minute; left < 200*time.Millisecond {
		time.Sleep(left + 10*time.Millisecond)
	}
}

// randomRequest is a request with one descriptor of one to three entries.
func randomRequest(rnd *rand.Rand) *rls.RateLimitRequest {
	keys := []string{"user", "path", "team", "tried", "free", "shut", "unknown"}
	d := &common.RateLimitDescriptor{}
	for range 1 + rnd.IntN(3)*rnd.IntN(2) {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: keys[rnd.IntN(len(keys))], Value: fmt.Sprintf("v%d", rnd.IntN(5))})
	}
	domain := "shop"
	if rnd.IntN(50) == 0 {
		domain = "elsewhere"
	}
	if rnd.IntN(20) == 0 {
		d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(1 + rnd.IntN(4)), Unit: 3}
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: "own", Value: fmt.Sprintf("v%d of %d", rnd.IntN(5), d.Limit.RequestsPerUnit)})
	}
	return &rls.RateLimitRequest{Domain: domain, Descriptors: []*common.RateLimitDescriptor{d}}
}
