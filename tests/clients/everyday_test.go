package clients

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// everyByte is a value that no client may change.
var everyByte = func() string {
	var b strings.Builder
	for i := range 256 {
		b.WriteByte(byte(i))
	}
	return b.String()
}()

const stampScript = `return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1}`

// TestEverydayGoRedis: scripts by their digest first, a blocking pop, SCAN and binary values, as go-redis has them.
func TestEverydayGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx := context.Background()
			client := goredis.NewClient(&goredis.Options{Addr: harness.Start(t).Addr, Protocol: protocol})
			defer func() { _ = client.Close() }()

			stamp := goredis.NewScript(stampScript)
			require.ErrorContains(t, stamp.EvalSha(ctx, client, []string{"k"}, "x", 41).Err(), "NOSCRIPT")
			for range 2 {
				got, err := stamp.Run(ctx, client, []string{"k"}, "x", 41).Slice()
				require.NoError(t, err)
				require.Equal(t, []any{"k", "x", int64(42)}, got)
			}

			popped := make(chan []string, 1)
			go func() {
				got, _ := client.BLPop(ctx, 10*time.Second, "none", "queue").Result()
				popped <- got
			}()
			require.NoError(t, client.RPush(ctx, "queue", "job").Err())
			require.Equal(t, []string{"queue", "job"}, <-popped)
			require.ErrorIs(t, client.BRPop(ctx, time.Second, "none").Err(), goredis.Nil)

			pipe := client.Pipeline()
			for i := range 500 {
				pipe.Set(ctx, fmt.Sprint("scan:", i), i, 0)
			}
			_, err := pipe.Exec(ctx)
			require.NoError(t, err)
			names := make(map[string]bool)
			for each := client.Scan(ctx, 0, "scan:*", 50).Iterator(); each.Next(ctx); {
				names[each.Val()] = true
			}
			require.Len(t, names, 500)

			require.NoError(t, client.HSet(ctx, "binary", everyByte, everyByte).Err())
			fields, err := client.HGetAll(ctx, "binary").Result()
			require.NoError(t, err)
			require.Equal(t, map[string]string{everyByte: everyByte}, fields)
		})
	}
}

// TestEverydayRedigo: the same with redigo.
func TestEverydayRedigo(t *testing.T) {
	server := harness.Start(t)
	dial := func() redis.Conn {
		conn, err := redis.Dial("tcp", server.Addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conn := dial()

	stamp := redis.NewScript(1, stampScript)
	_, err := conn.Do("EVALSHA", stamp.Hash(), 1, "k", "x", 41)
	require.ErrorContains(t, err, "NOSCRIPT")
	for range 2 {
		got, err := redis.Values(stamp.Do(conn, "k", "x", 41))
		require.NoError(t, err)
		require.Equal(t, []any{[]byte("k"), []byte("x"), int64(42)}, got)
	}

	waiter := dial()
	require.NoError(t, waiter.Send("BLPOP", "none", "queue", 10))
	require.NoError(t, waiter.Flush())
	_, err = conn.Do("RPUSH", "queue", "job")
	require.NoError(t, err)
	popped, err := redis.Strings(waiter.Receive())
	require.NoError(t, err)
	require.Equal(t, []string{"queue", "job"}, popped)

	for i := range 500 {
		require.NoError(t, conn.Send("SET", fmt.Sprint("scan:", i), i))
	}
	_, err = conn.Do("")
	require.NoError(t, err)
	names := make(map[string]bool)
	for cursor := int64(0); ; {
		page, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", "scan:*", "COUNT", 50))
		require.NoError(t, err)
		var found []string
		_, err = redis.Scan(page, &cursor, &found)
		require.NoError(t, err)
		for _, name := range found {
			names[name] = true
		}
		if cursor == 0 {
			break
		}
	}
	require.Len(t, names, 500)

	_, err = conn.Do("HSET", "binary", everyByte, everyByte)
	require.NoError(t, err)
	fields, err := redis.StringMap(conn.Do("HGETALL", "binary"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{everyByte: everyByte}, fields)
}

// TestEverydayRueidis: the same with rueidis and its defaults, which are RESP3 and caching; and pipelines and WATCH besides.
func TestEverydayRueidis(t *testing.T) {
	ctx := context.Background()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{harness.Start(t).Addr}})
	require.NoError(t, err)
	defer client.Close()
	b := client.B

	commands := make(rueidis.Commands, 0, 1000)
	for range 1000 {
		commands = append(commands, b().Incr().Key("n").Build())
	}
	replies := client.DoMulti(ctx, commands...)
	n, err := replies[999].AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1000, n)

	require.NoError(t, client.Dedicated(func(c rueidis.DedicatedClient) error {
		require.NoError(t, c.Do(ctx, b().Watch().Key("watched").Build()).Error())
		require.NoError(t, client.Do(ctx, b().Set().Key("watched").Value("changed").Build()).Error())
		replies := c.DoMulti(ctx, b().Multi().Build(), b().Set().Key("watched").Value("mine").Build(), b().Exec().Build())
		require.True(t, rueidis.IsRedisNil(replies[2].Error()))
		return nil
	}))

	stamp := rueidis.NewLuaScript(stampScript)
	for range 2 {
		got, err := stamp.Exec(ctx, client, []string{"k"}, []string{"x", "41"}).ToArray()
		require.NoError(t, err)
		require.Len(t, got, 3)
		sum, err := got[2].AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 42, sum)
	}

	popped := make(chan []string, 1)
	go func() {
		got, _ := client.Do(ctx, b().Blpop().Key("none", "queue").Timeout(10).Build()).AsStrSlice()
		popped <- got
	}()
	require.NoError(t, client.Do(ctx, b().Rpush().Key("queue").Element("job").Build()).Error())
	require.Equal(t, []string{"queue", "job"}, <-popped)

	commands = commands[:0]
	for i := range 500 {
		commands = append(commands, b().Set().Key(fmt.Sprint("scan:", i)).Value("x").Build())
	}
	client.DoMulti(ctx, commands...)
	names := make(map[string]bool)
	for cursor := uint64(0); ; {
		page, err := client.Do(ctx, b().Scan().Cursor(cursor).Match("scan:*").Count(50).Build()).AsScanEntry()
		require.NoError(t, err)
		for _, name := range page.Elements {
			names[name] = true
		}
		if cursor = page.Cursor; cursor == 0 {
			break
		}
	}
	require.Len(t, names, 500)

	require.NoError(t, client.Do(ctx, b().Hset().Key("binary").FieldValue().FieldValue(everyByte, everyByte).Build()).Error())
	fields, err := client.Do(ctx, b().Hgetall().Key("binary").Build()).AsStrMap()
	require.NoError(t, err)
	require.Equal(t, map[string]string{everyByte: everyByte}, fields)
}
