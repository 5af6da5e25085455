package clients

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/redis"

	"headgate/tests/internal/harness"
)

const (
	libraryClients  = 20
	libraryRequests = 10_000
	libraryLimit    = 1_000
)

// TestLimiterLibraries runs the limiter libraries of Go, each with a client per worker: of ten thousand requests exactly as many are
// admitted as there are to be had, by the server itself and through a gateway before a cluster.
func TestLimiterLibraries(t *testing.T) {
	gateway, _ := startGateway(t)
	for _, library := range []struct {
		name string
		open openLimiter
	}{
		{"redis_rate", func(t *testing.T, client *goredis.Client) func(context.Context) (bool, error) {
			l := redis_rate.NewLimiter(client)
			limit := redis_rate.Limit{Rate: 1, Burst: libraryLimit, Period: time.Hour}
			return func(ctx context.Context) (bool, error) {
				result, err := l.Allow(ctx, "user", limit)
				return err == nil && result.Allowed == 1, err
			}
		}},
		{"throttled", func(t *testing.T, client *goredis.Client) func(context.Context) (bool, error) {
			store, err := throttledstore.NewCtx(client, "throttled:")
			require.NoError(t, err)
			l, err := throttled.NewGCRARateLimiterCtx(store,
				throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: libraryLimit - 1})
			require.NoError(t, err)
			l.SetMaxCASAttemptsLimit(1000) // twenty clients compare and set one key
			return func(ctx context.Context) (bool, error) {
				limited, _, err := l.RateLimitCtx(ctx, "user", 1)
				return !limited && err == nil, err
			}
		}},
		{"ulule", func(t *testing.T, client *goredis.Client) func(context.Context) (bool, error) {
			store, err := ululestore.NewStoreWithOptions(client, ulule.StoreOptions{Prefix: "ulule"})
			require.NoError(t, err)
			l := ulule.New(store, ulule.Rate{Period: time.Hour, Limit: libraryLimit})
			return func(ctx context.Context) (bool, error) {
				state, err := l.Get(ctx, "user")
				return err == nil && !state.Reached, err
			}
		}},
	} {
		t.Run(library.name, func(t *testing.T) {
			t.Parallel()
			requireAdmitted(t, harness.Start(t), library.open)
		})
		t.Run(library.name+" through a gateway", func(t *testing.T) {
			t.Parallel()
			requireAdmitted(t, gateway, library.open)
		})
	}
}

// openLimiter makes a limiter on a client, and returns what asks it for one unit of libraryLimit.
type openLimiter func(t *testing.T, client *goredis.Client) (admits func(ctx context.Context) (bool, error))

// requireAdmitted has all clients make their requests at once.
func requireAdmitted(t *testing.T, server *harness.Server, open openLimiter) {
	t.Helper()
	var admitted atomic.Int64
	var workers sync.WaitGroup
	failures := make(chan error, libraryClients)
	for range libraryClients {
		client := goredis.NewClient(&goredis.Options{Addr: server.Addr, PoolSize: 1})
		t.Cleanup(func() { _ = client.Close() })
		admits := open(t, client)
		workers.Go(func() {
			for range libraryRequests / libraryClients {
				ok, err := admits(context.Background())
				if err != nil {
					failures <- err
					return
				}
				if ok {
					admitted.Add(1)
				}
			}
		})
	}
	workers.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.EqualValues(t, libraryLimit, admitted.Load())
}
