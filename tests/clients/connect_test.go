package clients

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestConnectWithDefaults: nothing but the address is set.
func TestConnectWithDefaults(t *testing.T) {
	server := harness.Start(t)
	ctx := context.Background()

	client := goredis.NewClient(&goredis.Options{Addr: server.Addr})
	defer func() { _ = client.Close() }()
	require.NoError(t, client.Ping(ctx).Err())
	require.NoError(t, client.Set(ctx, "k", "v", time.Minute).Err())
	value, err := client.Get(ctx, "k").Result()
	require.NoError(t, err)
	require.Equal(t, "v", value)
	require.ErrorIs(t, client.Get(ctx, "nosuch").Err(), goredis.Nil)

	conn, err := redis.Dial("tcp", server.Addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	value, err = redis.String(conn.Do("GET", "k"))
	require.NoError(t, err)
	require.Equal(t, "v", value)
}

// TestConnectWithEverything: a password, a user, a name and a database.
func TestConnectWithEverything(t *testing.T) {
	server := harness.Start(t, "--requirepass", "secret")
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		client := goredis.NewClient(&goredis.Options{
			Addr: server.Addr, Protocol: protocol, Username: "default", Password: "secret", DB: 3, ClientName: "limiter",
		})
		defer func() { _ = client.Close() }()
		require.NoError(t, client.Set(ctx, "k", protocol, 0).Err())
		name, err := client.ClientGetName(ctx).Result()
		require.NoError(t, err)
		require.Equal(t, "limiter", name)
	}
	conn, err := redis.Dial("tcp", server.Addr, redis.DialPassword("secret"), redis.DialDatabase(3), redis.DialClientName("other"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	value, err := redis.Int(conn.Do("GET", "k"))
	require.NoError(t, err)
	require.Equal(t, 3, value)

	wrong := goredis.NewClient(&goredis.Options{Addr: server.Addr, Password: "wrong", MaxRetries: -1})
	defer func() { _ = wrong.Close() }()
	require.ErrorContains(t, wrong.Ping(ctx).Err(), "WRONGPASS")
	_, err = redis.Dial("tcp", server.Addr, redis.DialPassword("wrong"))
	require.ErrorContains(t, err, "WRONGPASS")
}

// TestConnectElsewhere: over a Unix socket and over IPv6.
func TestConnectElsewhere(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s.sock")
	flags := []string{"--unixsocket", socket}
	if hasIPv6() {
		flags = append(flags, "--bind", "127.0.0.1", "::1")
	}
	server := harness.Start(t, flags...)
	ctx := context.Background()
	overSocket := goredis.NewClient(&goredis.Options{Network: "unix", Addr: socket})
	defer func() { _ = overSocket.Close() }()
	require.NoError(t, overSocket.Set(ctx, "k", "v", 0).Err())
	if !hasIPv6() {
		return
	}
	overIPv6, err := redis.Dial("tcp", net.JoinHostPort("::1", strconv.Itoa(server.Port)))
	require.NoError(t, err)
	defer func() { _ = overIPv6.Close() }()
	value, err := redis.String(overIPv6.Do("GET", "k"))
	require.NoError(t, err)
	require.Equal(t, "v", value)
}

func hasIPv6() bool {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// TestPipelines: every reply of a long pipeline is there and in its place.
func TestPipelines(t *testing.T) {
	const length = 10_000
	eachClient(t, func(t *testing.T, c limiterClient) {
		commands := make([][]any, length)
		for i := range commands {
			commands[i] = []any{"INCRBY", fmt.Sprintf("k%d", i%100), 1}
		}
		replies, err := c.pipeline(commands...)
		require.NoError(t, err)
		for i, reply := range replies {
			count, err := integer(reply, nil)
			require.NoError(t, err)
			require.EqualValues(t, i/100+1, count)
		}
	})
}

// TestWatchLoops: workers that add to one key under WATCH, and begin again when somebody came between, lose nothing.
func TestWatchLoops(t *testing.T) {
	const additions = 4
	eachClient(t, func(t *testing.T, c limiterClient) {
		var group sync.WaitGroup
		errs := make(chan error, workers)
		for range workers {
			group.Go(func() {
				for done := 0; done < additions; {
					executed, err := c.watched("sum", func(do func(args ...any) (any, error)) ([][]any, error) {
						sum, err := integer(do("GET", "sum"))
						return [][]any{{"SET", "sum", sum + 1}}, err
					})
					if err != nil {
						errs <- err
						return
					}
					if executed {
						done++
					}
				}
			})
		}
		group.Wait()
		close(errs)
		for err := range errs {
			require.NoError(t, err)
		}
		sum, err := integer(c.do("GET", "sum"))
		require.NoError(t, err)
		require.EqualValues(t, workers*additions, sum)
	})
}
