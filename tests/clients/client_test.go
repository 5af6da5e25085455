// Package clients runs, against the built server and through the clients that people use, the limiters that people have
// written: each with many workers and a known limit.
package clients

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"

	"headgate/tests/internal/harness"
)

// limiterClient is what the limiters need of a client. All methods are safe for concurrent use.
type limiterClient interface {
	// do runs one command.
	do(args ...any) (any, error)
	// transaction runs the commands in MULTI and EXEC, sent in one go, and returns their replies.
	transaction(commands ...[]any) ([]any, error)
	// watched runs read under WATCH of the key, then what read returns in MULTI and EXEC. It reports whether EXEC took
	// place: not when the key was changed, and not when read returns nothing.
	watched(key string, read func(do func(args ...any) (any, error)) ([][]any, error)) (bool, error)
	// pipeline sends all commands before it reads the first reply.
	pipeline(commands ...[]any) ([]any, error)
}

// goRedis is go-redis in one of its two protocols.
type goRedis struct{ *goredis.Client }

func newGoRedis(t testing.TB, server *harness.Server, protocol int) goRedis {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: server.Addr, Protocol: protocol, PoolSize: workers, PoolTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return goRedis{c}
}

func (c goRedis) do(args ...any) (any, error) {
	return unlessNil(c.Do(context.Background(), args...).Result())
}

func (c goRedis) transaction(commands ...[]any) ([]any, error) {
	return c.batch(c.TxPipelined, commands)
}

func (c goRedis) pipeline(commands ...[]any) ([]any, error) {
	return c.batch(c.Pipelined, commands)
}

type pipelined func(ctx context.Context, fn func(goredis.Pipeliner) error) ([]goredis.Cmder, error)

func (c goRedis) batch(run pipelined, commands [][]any) ([]any, error) {
	results, err := run(context.Background(), func(p goredis.Pipeliner) error {
		for _, args := range commands {
			p.Do(context.Background(), args...)
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	replies := make([]any, len(results))
	for i, result := range results {
		// A null reply to the first command makes go-redis mark all the others as null too: look at their values.
		command := result.(*goredis.Cmd)
		if err := command.Err(); err != nil && !errors.Is(err, goredis.Nil) {
			return nil, err
		}
		replies[i] = command.Val()
	}
	return replies, nil
}

func (c goRedis) watched(key string, read func(func(args ...any) (any, error)) ([][]any, error)) (executed bool, err error) {
	ctx := context.Background()
	err = c.Watch(ctx, func(tx *goredis.Tx) error {
		commands, err := read(func(args ...any) (any, error) { return unlessNil(tx.Do(ctx, args...).Result()) })
		if err != nil || len(commands) == 0 {
			return err
		}
		if _, err = c.batch(tx.TxPipelined, commands); err == nil {
			executed = true
		}
		return err
	}, key)
	if errors.Is(err, goredis.TxFailedErr) {
		return false, nil
	}
	return executed, err
}

func unlessNil(v any, err error) (any, error) {
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	return v, err
}

// redigo is redigo, which speaks RESP2 only.
type redigo struct{ pool *redis.Pool }

func newRedigo(t testing.TB, server *harness.Server) redigo {
	t.Helper()
	pool := &redis.Pool{
		MaxActive: workers, MaxIdle: workers, Wait: true,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", server.Addr) },
	}
	t.Cleanup(func() { _ = pool.Close() })
	return redigo{pool}
}

func (c redigo) do(args ...any) (any, error) {
	conn := c.pool.Get()
	defer func() { _ = conn.Close() }()
	return conn.Do(args[0].(string), args[1:]...)
}

func (c redigo) transaction(commands ...[]any) ([]any, error) {
	conn := c.pool.Get()
	defer func() { _ = conn.Close() }()
	return redigoTransaction(conn, commands)
}

func redigoTransaction(conn redis.Conn, commands [][]any) ([]any, error) {
	if err := conn.Send("MULTI"); err != nil {
		return nil, err
	}
	for _, args := range commands {
		if err := conn.Send(args[0].(string), args[1:]...); err != nil {
			return nil, err
		}
	}
	return redis.Values(conn.Do("EXEC"))
}

func (c redigo) pipeline(commands ...[]any) ([]any, error) {
	conn := c.pool.Get()
	defer func() { _ = conn.Close() }()
	for _, args := range commands {
		if err := conn.Send(args[0].(string), args[1:]...); err != nil {
			return nil, err
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(commands))
	for i := range replies {
		var err error
		if replies[i], err = conn.Receive(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

func (c redigo) watched(key string, read func(func(args ...any) (any, error)) ([][]any, error)) (bool, error) {
	conn := c.pool.Get()
	defer func() { _ = conn.Close() }()
	if _, err := conn.Do("WATCH", key); err != nil {
		return false, err
	}
	commands, err := read(func(args ...any) (any, error) { return conn.Do(args[0].(string), args[1:]...) })
	if err != nil || len(commands) == 0 {
		_, unwatch := conn.Do("UNWATCH")
		return false, errors.Join(err, unwatch)
	}
	_, err = redigoTransaction(conn, commands)
	if errors.Is(err, redis.ErrNil) {
		return false, nil
	}
	return err == nil, err
}

// integer is a reply as a number, whatever the client made of it.
func integer(v any, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		return strconv.ParseInt(v, 10, 64)
	case []byte:
		return strconv.ParseInt(string(v), 10, 64)
	case nil:
		return 0, nil
	}
	return 0, fmt.Errorf("%T %v is no integer", v, v)
}

// fields is the reply to HGETALL: a map in RESP3, an array of pairs in RESP2.
func fields(v any, err error) (map[string]int64, error) {
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64)
	switch v := v.(type) {
	case map[any]any:
		for field, value := range v {
			if out[text(field)], err = integer(value, nil); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			if out[text(v[i])], err = integer(v[i+1], nil); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("%T is no map", v)
	}
	return out, nil
}

// text is a string reply, a string in go-redis and bytes in redigo.
func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

var throughGateway = flag.Bool("clients.gateway", false, "run what can be run so through a gateway before a cluster; make fleet does")

// startServer starts the server that the limiters run on, a gateway before a cluster of three if that is asked for, and returns what
// empties it.
func startServer(t testing.TB) (server *harness.Server, flush func()) {
	t.Helper()
	if *throughGateway {
		return startGateway(t)
	}
	server = harness.Start(t)
	return server, func() { harness.Dial(t, server.Addr).Do("FLUSHALL") }
}

// startGateway is startServer with a gateway.
func startGateway(t testing.TB) (server *harness.Server, flush func()) {
	t.Helper()
	cluster := harness.StartCluster(t, 3, 0, 10*time.Second)
	return harness.StartGateway(t, cluster.URL(), "--upstream-timeout-ms", "10000"), func() {
		for _, node := range cluster.Nodes {
			harness.Dial(t, node.Addr).Do("FLUSHALL")
		}
	}
}

// eachClient runs body once for each client and protocol, against one server.
func eachClient(t *testing.T, body func(t *testing.T, c limiterClient)) {
	t.Helper()
	server, flush := startServer(t)
	for _, kind := range []struct {
		name string
		make func(t testing.TB) limiterClient
	}{
		{"go-redis RESP2", func(t testing.TB) limiterClient { return newGoRedis(t, server, 2) }},
		{"go-redis RESP3", func(t testing.TB) limiterClient { return newGoRedis(t, server, 3) }},
		{"redigo RESP2", func(t testing.TB) limiterClient { return newRedigo(t, server) }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			flush()
			body(t, kind.make(t))
		})
	}
}
