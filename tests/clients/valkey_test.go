package clients

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"headgate/tests/internal/harness"
)

// TestValkeyGo: valkey-go with its defaults (RESP3, caching on): commands of many goroutines on one connection, transactions, a
// script, what it caches and what another client invalidates, a limiter, subscriptions.
func TestValkeyGo(t *testing.T) {
	server := harness.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{server.Addr}})
	require.NoError(t, err)
	defer client.Close()

	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range 50 {
				if err := client.Do(ctx, client.B().Incr().Key("n").Build()).Error(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	n, err := client.Do(ctx, client.B().Get().Key("n").Build()).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1000, n)

	require.NoError(t, client.Dedicated(func(c valkey.DedicatedClient) error {
		replies := c.DoMulti(ctx, c.B().Watch().Key("n").Build(), c.B().Multi().Build(), c.B().Set().Key("bytes").Value("\x00\r\n\xff").Build(), c.B().Exec().Build())
		return replies[3].Error()
	}))
	text, err := client.Do(ctx, client.B().Get().Key("bytes").Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, "\x00\r\n\xff", text)

	script := valkey.NewLuaScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	n, err = script.Exec(ctx, client, []string{"n"}, []string{"5"}).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1005, n)

	writer := harness.Dial(t, server.Addr)
	for i := range 3 {
		want := strconv.Itoa(i)
		require.Equal(t, "+OK\r\n", string(writer.Do("SET", "cached", want)))
		require.Eventually(t, func() bool {
			result := client.DoCache(ctx, client.B().Get().Key("cached").Cache(), time.Hour)
			value, err := result.ToString()
			return err == nil && value == want && result.IsCacheHit()
		}, 10*time.Second, time.Millisecond)
	}

	reply, err := client.Do(ctx, client.B().Arbitrary("CL.THROTTLE").Keys("user").Args("15", "30", "60").Build()).AsIntSlice()
	require.NoError(t, err)
	require.Equal(t, []int64{0, 16, 15, -1, 2}, reply)

	messages := make(chan string, 1)
	go func() {
		_ = client.Receive(ctx, client.B().Subscribe().Channel("news").Build(), func(m valkey.PubSubMessage) { messages <- m.Message })
	}()
	require.Eventually(t, func() bool { return string(writer.Do("PUBLISH", "news", "x")) == ":1\r\n" }, 10*time.Second, time.Millisecond)
	require.Equal(t, "x", <-messages)
}
