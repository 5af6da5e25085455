package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const pubsubMessages = 1000

// publishAll publishes numbers on a channel, and wants each to find so many subscribers.
func publishAll(t *testing.T, server *harness.Server, channel string, subscribers int) {
	t.Helper()
	publisher := harness.Dial(t, server.Addr)
	for i := range pubsubMessages {
		require.Equal(t, fmt.Sprint(subscribers), publisher.Ask("PUBLISH", channel, fmt.Sprint(i)).Text)
	}
}

// TestGoRedisPubSub: all messages of a channel and of a pattern arrive in their order, and so do key-space events.
func TestGoRedisPubSub(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			server := harness.Start(t, "--notify-keyspace-events", "Ex")
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			client := newGoRedis(t, server, protocol)
			sub := client.Subscribe(ctx, "news")
			defer func() { _ = sub.Close() }()
			require.NoError(t, sub.PSubscribe(ctx, "n*", "__keyevent@0__:*"))
			for range 3 {
				_, err := sub.Receive(ctx)
				require.NoError(t, err)
			}
			require.NoError(t, sub.Ping(ctx))
			_, err := sub.Receive(ctx)
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				publishAll(t, server, "news", 2)
			}()
			for i := range pubsubMessages {
				for _, pattern := range []string{"", "n*"} {
					message, err := sub.ReceiveMessage(ctx)
					require.NoError(t, err)
					require.Equal(t, goredis.Message{Channel: "news", Pattern: pattern, Payload: fmt.Sprint(i)}, *message)
				}
			}
			<-done
			require.NoError(t, client.Set(ctx, "short", "v", 10*time.Millisecond).Err())
			message, err := sub.ReceiveMessage(ctx)
			require.NoError(t, err)
			require.Equal(t, "__keyevent@0__:expired", message.Channel)
			require.Equal(t, "short", message.Payload)
			require.NoError(t, sub.Unsubscribe(ctx))
		})
	}
}

// TestRedigoPubSub: the same through redigo, with the connection back to commands in the end.
func TestRedigoPubSub(t *testing.T) {
	server := harness.Start(t)
	conn, err := redis.Dial("tcp", server.Addr, redis.DialReadTimeout(30*time.Second))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	sub := redis.PubSubConn{Conn: conn}
	require.NoError(t, sub.Subscribe("news", "other"))
	require.Equal(t, redis.Subscription{Kind: "subscribe", Channel: "news", Count: 1}, sub.Receive())
	require.Equal(t, redis.Subscription{Kind: "subscribe", Channel: "other", Count: 2}, sub.Receive())
	done := make(chan struct{})
	go func() {
		defer close(done)
		publishAll(t, server, "news", 1)
	}()
	for i := range pubsubMessages {
		require.Equal(t, redis.Message{Channel: "news", Data: []byte(fmt.Sprint(i))}, sub.Receive())
	}
	<-done
	require.NoError(t, sub.Ping("x"))
	require.Equal(t, redis.Pong{Data: "x"}, sub.Receive())
	require.NoError(t, sub.Unsubscribe())
	require.Equal(t, "unsubscribe", sub.Receive().(redis.Subscription).Kind)
	require.Equal(t, 0, sub.Receive().(redis.Subscription).Count)
	pong, err := redis.String(conn.Do("PING"))
	require.NoError(t, err)
	require.Equal(t, "PONG", pong)
}
