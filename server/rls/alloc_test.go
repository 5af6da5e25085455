package rls

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"

	"headgate/server/local"
)

// always is a client that is answered the same whatever it asks.
type always []byte

func (a always) Do(_ context.Context, _ []byte, whole func([]byte) bool) ([]byte, error) {
	whole(a)
	return a, nil
}
func (always) Open() bool { return true }
func (always) Close()     {}

// TestAllocations: what a request allocates between gRPC and the limits is known.
func TestAllocations(t *testing.T) {
	once := decideOnce(t)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, once), 8.0)
}

func BenchmarkDecide(b *testing.B) {
	once := decideOnce(b)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

// decideOnce returns what decides one request of one descriptor.
func decideOnce(t testing.TB) func() {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("domain: shop\ndescriptors:\n  - key: user\n    rate_limit: {unit: hour, requests_per_unit: 3}\n"), 0o600))
	rules, err := Read(file)
	require.NoError(t, err)
	answer := always("*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60000\r\n")
	s := &service{sessions: local.Sessions{Dial: func() local.Client { return answer }}, counts: &Counts{}}
	s.rules.Store(rules)
	request := &rls.RateLimitRequest{Domain: "shop", Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: "42"}}}}}
	return func() {
		if decided, err := s.ShouldRateLimit(context.Background(), request); err != nil || decided.Statuses[0].LimitRemaining != 2 {
			t.Fatal(decided, err)
		}
	}
}
