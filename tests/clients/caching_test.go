package clients

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestClientSideCache: rueidis with its defaults, in which it tracks what it has read and would not connect otherwise, takes values
// from its memory until another client has changed them.
func TestClientSideCache(t *testing.T) {
	const ttl = time.Hour
	server := harness.Start(t)
	ctx := context.Background()
	reader, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}})
	require.NoError(t, err)
	defer reader.Close()
	writer := harness.Dial(t, server.Addr)
	read := func(key string) (value string, cached bool) {
		result := reader.DoCache(ctx, reader.B().Get().Key(key).Cache(), ttl)
		value, err := result.ToString()
		if rueidis.IsRedisNil(err) {
			return "", result.IsCacheHit()
		}
		require.NoError(t, err)
		return value, result.IsCacheHit()
	}
	// expect waits until the new value is read from memory. A value whose time has passed may be invalidated right behind the first
	// read, since that read removes it.
	expect := func(key, want string) {
		require.Eventually(t, func() bool {
			value, cached := read(key)
			return value == want && cached
		}, 10*time.Second, time.Millisecond, "%s: %s", key, want)
	}
	expect("k", "")
	for _, change := range []struct {
		want    string
		command []string
	}{
		{"1", []string{"SET", "k", "1"}},
		{"2", []string{"INCR", "k"}},
		{"3", []string{"EVAL", "return redis.call('set', KEYS[1], 3)", "1", "k"}},
		{"", []string{"DEL", "k"}},
		{"4", []string{"SET", "k", "4", "PX", "50"}},
		{"", []string{"PING"}}, // its time passes
		{"5", []string{"SET", "k", "5"}},
		{"", []string{"FLUSHALL"}},
	} {
		writer.Do(change.command...)
		if change.want == "4" {
			continue // it may be gone before it is read twice
		}
		expect("k", change.want)
	}
}

// TestRueidisPubSub: subscriptions beside commands on one connection, as RESP3 has them.
func TestRueidisPubSub(t *testing.T) {
	server := harness.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}})
	require.NoError(t, err)
	defer client.Close()
	publisher := harness.Dial(t, server.Addr)
	messages := make(chan rueidis.PubSubMessage, 2)
	go func() {
		_ = client.Receive(ctx, client.B().Psubscribe().Pattern("news.*").Build(), func(m rueidis.PubSubMessage) { messages <- m })
	}()
	require.Eventually(t, func() bool { return publisher.Ask("PUBLISH", "news.today", "x").Text == "1" }, 10*time.Second, time.Millisecond)
	message := <-messages
	require.Equal(t, rueidis.PubSubMessage{Pattern: "news.*", Channel: "news.today", Message: "x"}, message)
	require.NoError(t, client.Do(ctx, client.B().Set().Key("k").Value("v").Build()).Error())
}
