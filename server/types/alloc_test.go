package types_test

import (
	"strconv"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestTypesDoNotAllocate covers the commands that limiters run on hashes, lists, sets and sorted sets, packed and not. Each round is the whole
// of a limiter's step, so that values neither grow nor empty from round to round.
func TestTypesDoNotAllocate(t *testing.T) {
	const rounds = 200
	tests := []struct {
		name string
		step [][]string
	}{
		{"HGET", [][]string{{"HGET", "hash", "count"}}},
		{"HINCRBY", [][]string{{"HINCRBY", "hash", "count", "1"}}},
		{"HSET", [][]string{{"HSET", "hash", "count", "1000000"}}},
		{"HMGET", [][]string{{"HMGET", "hash", "count", "missing"}}},
		{"HGETALL", [][]string{{"HGETALL", "hash"}}},
		{"HEXISTS", [][]string{{"HEXISTS", "hash", "count"}}},
		{"ZADD of a member that is there", [][]string{{"ZADD", "zset", "1", "m1"}, {"ZADD", "zset", "2", "m1"}}},
		{"ZADD with conditions", [][]string{{"ZADD", "zset", "XX", "GT", "CH", "0", "m1"}}},
		{"ZCARD", [][]string{{"ZCARD", "zset"}}},
		{"ZCOUNT", [][]string{{"ZCOUNT", "zset", "-inf", "(5"}}},
		{"ZSCORE", [][]string{{"ZSCORE", "zset", "m1"}}},
		{"ZINCRBY", [][]string{{"ZINCRBY", "zset", "1", "m2"}}},
		{"ZRANGE", [][]string{{"ZRANGE", "zset", "0", "0", "WITHSCORES"}}},
		{"ZRANK", [][]string{{"ZRANK", "zset", "m1"}}},
		{"RPUSH and LPOP", [][]string{{"RPUSH", "list", "value"}, {"LPOP", "list"}}},
		{"LPUSH and LTRIM", [][]string{{"LPUSH", "list", "value"}, {"LTRIM", "list", "1", "-1"}}},
		{"LMOVE", [][]string{{"LMOVE", "list", "list", "LEFT", "RIGHT"}}},
		{"LLEN", [][]string{{"LLEN", "list"}}},
		{"LRANGE", [][]string{{"LRANGE", "list", "0", "5"}}},
		{"LINDEX", [][]string{{"LINDEX", "list", "-3"}}},
		{"SADD and SREM", [][]string{{"SADD", "set", "x"}, {"SREM", "set", "x"}}},
		{"SADD of a member that is there", [][]string{{"SADD", "set", "m1"}}},
		{"SISMEMBER", [][]string{{"SISMEMBER", "set", "m1"}}},
		{"SMISMEMBER", [][]string{{"SMISMEMBER", "set", "m1", "missing"}}},
		{"SCARD", [][]string{{"SCARD", "set"}}},
		{"SMEMBERS", [][]string{{"SMEMBERS", "set"}}},
		{"whole numbers", [][]string{{"SADD", "numbers", "7"}, {"SISMEMBER", "numbers", "8"}, {"SREM", "numbers", "7"}, {"SMEMBERS", "numbers"}}},
		{"ZREMRANGEBYSCORE of nothing", [][]string{{"ZREMRANGEBYSCORE", "zset", "-inf", "(-1"}}},
	}
	for _, members := range []int{8, 1000} {
		w := servertest.NewWorkerClient(t)
		for i := range members {
			w.Run(servertest.EncodeCommand("HSET", "hash", "f"+strconv.Itoa(i), "value"))
			w.Run(servertest.EncodeCommand("ZADD", "zset", strconv.Itoa(i), "m"+strconv.Itoa(i)))
			w.Run(servertest.EncodeCommand("RPUSH", "list", "v"+strconv.Itoa(i)))
			w.Run(servertest.EncodeCommand("SADD", "set", "m"+strconv.Itoa(i)))
			w.Run(servertest.EncodeCommand("SADD", "numbers", strconv.Itoa(1000*i)))
		}
		w.Run(servertest.EncodeCommand("HSET", "hash", "count", "1000000"))
		for _, test := range tests {
			t.Run(strconv.Itoa(members)+" members: "+test.name, func(t *testing.T) {
				var input []byte
				for _, command := range test.step {
					input = append(input, servertest.EncodeCommand(command...)...)
				}
				require.NotContains(t, string(w.Run(input)), "ERR ")
				w.Run(input)
				require.Zero(t, testing.AllocsPerRun(rounds, func() { w.Run(input) }))
			})
		}
	}
}

// TestPackedWindowDoesNotAllocate runs the sliding window that most limiters use, on a set that stays small.
func TestPackedWindowDoesNotAllocate(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	const rounds, width = 200, 20
	var steps [][]byte
	for i := range rounds + 2*width + 1 {
		now, old := strconv.Itoa(1700000000000+i), strconv.Itoa(1700000000000+i-width)
		var step []byte
		step = append(step, servertest.EncodeCommand("ZREMRANGEBYSCORE", "window", "-inf", old)...)
		step = append(step, servertest.EncodeCommand("ZCARD", "window")...)
		step = append(step, servertest.EncodeCommand("ZADD", "window", now, now)...)
		steps = append(steps, step)
	}
	next := 0
	run := func() []byte {
		next++
		return w.Run(steps[next-1])
	}
	for range 2*width - 1 {
		run()
	}
	require.Equal(t, ":1\r\n:19\r\n:1\r\n", string(run()))
	require.Zero(t, testing.AllocsPerRun(rounds, func() { run() }))
}
