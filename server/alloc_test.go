package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"testing"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// renewScript gives a lease more time if it exists.
const renewScript = "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return 0"

// TestHotPathDoesNotAllocate covers the whole way of a command from its bytes to its reply, alone and in a pipeline.
func TestHotPathDoesNotAllocate(t *testing.T) {
	const pipeline = 16
	text := "a value that is no number"
	tests := []struct {
		name    string
		command []string
	}{
		{"SET text", []string{"SET", "text", text}},
		{"SET number", []string{"SET", "number", "1234567"}},
		{"SET PX", []string{"SET", "lease", text, "PX", "60000"}},
		{"SET NX EX", []string{"SET", "lock", text, "NX", "EX", "60"}},
		{"SET KEEPTTL", []string{"SET", "lease", text, "KEEPTTL"}},
		{"SETEX", []string{"SETEX", "lease", "60", text}},
		{"GET text", []string{"GET", "text"}},
		{"GET number", []string{"GET", "number"}},
		{"GET of a missing key", []string{"GET", "missing"}},
		{"MGET", []string{"MGET", "text", "number", "missing"}},
		{"GETRANGE", []string{"GETRANGE", "number", "1", "-2"}},
		{"INCR", []string{"INCR", "counter"}},
		{"INCRBY", []string{"INCRBY", "counter", "-3"}},
		{"EXPIRE", []string{"EXPIRE", "counter", "60"}},
		{"PEXPIRE NX", []string{"PEXPIRE", "counter", "60000", "NX"}},
		{"TTL", []string{"TTL", "lease"}},
		{"EXISTS", []string{"EXISTS", "text", "missing"}},
		{"DEL of a missing key", []string{"DEL", "missing"}},
		{"CL.THROTTLE", []string{"CL.THROTTLE", "user", "1000000", "1000000", "60", "1"}},
		{"EVALSHA", []string{"EVALSHA", servertest.Sha1Hex(renewScript), "1", "lease", "60000"}},
		{"RL.GCRA", []string{"RL.GCRA", "user:g", "1000000", "1000000", "60s", "COST", "1"}},
		{"RL.GCRA of a limited key", []string{"RL.GCRA", "busy:g", "1", "1", "1h"}},
		{"RL.QUEUE", []string{"RL.QUEUE", "user:q", "1000000", "1000000", "1m"}},
		{"RL.FIXED", []string{"RL.FIXED", "user:f", "1000000", "60s"}},
		{"RL.FIXED of a limited key", []string{"RL.FIXED", "busy:f", "1", "60s"}},
		{"RL.FIXED by the calendar", []string{"RL.FIXED", "user:c", "1000000", "MONTH", "TZ", "Europe/Berlin"}},
		{"RL.SLIDING", []string{"RL.SLIDING", "user:s", "1000000", "60s", "SLICES", "10"}},
		{"RL.LOG", []string{"RL.LOG", "user:l", "20", "1ms"}},
		{"RL.LOG of a limited key", []string{"RL.LOG", "busy:l", "3", "60s"}},
		{"RL.TAKE", []string{"RL.TAKE", "3", "user", "take:u", "ip", "take:i", "endpoint", "take:e", "COST", "1"}},
		{"RL.TAKE of limited keys", []string{"RL.TAKE", "2", "once", "take:1", "user", "take:2"}},
		{"RL.TAKE of a key with an override", []string{"RL.TAKE", "2", "plan", "take:o", "plan", "take:p", "COSTS", "1", "0"}},
		{"RL.TAKE of a blocked key", []string{"RL.TAKE", "1", "strict", "take:b"}},
		{"RL.TAKE of a banned key", []string{"RL.TAKE", "1", "ip", "take:x"}},
		{"RL.TAKE of a policy in the shadow", []string{"RL.TAKE", "1", "shadow", "take:s"}},
		{"RL.ACQUIRE", []string{"RL.ACQUIRE", "leases", "10", "60s", "MEMBER", "a"}},
		{"GCRA", []string{"GCRA", "user:r", "1000000", "1000000", "60"}},
		{"INCREX", []string{"INCREX", "user:i", "BYINT", "1", "UBOUND", "1000000", "EX", "60", "ENX"}},
		{"CL.THROTTLE of a limited key", []string{"CL.THROTTLE", "busy", "0", "1", "60"}},
	}
	w := servertest.NewWorkerClient(t)
	w.Run(servertest.EncodeCommand("SET", "text", text))
	w.Run(servertest.EncodeCommand("SET", "number", "1234567"))
	w.Run(servertest.EncodeCommand("SCRIPT", "LOAD", renewScript))
	for name, limit := range map[string][]string{
		"user": {"GCRA", "1000000", "1000000", "60s"}, "ip": {"FIXED", "1000000", "60s"}, "endpoint": {"LOG", "20", "1ms"}, "once": {"FIXED", "1", "1h"},
		"plan": {"FIXED", "1", "1h"}, "strict": {"FIXED", "0", "1h", "BLOCK", "1h", "DOUBLE", "1d"}, "shadow": {"FIXED", "0", "1h", "SHADOW"},
	} {
		w.Run(servertest.EncodeCommand(append([]string{"RL.POLICY", "SET", name}, limit...)...))
	}
	w.Run(servertest.EncodeCommand("RL.POLICY", "OVERRIDE", "SET", "plan", "take:o", "FIXED", "1000000", "1h"))
	w.Run(servertest.EncodeCommand("RL.BLOCK", "ip", "take:x", "1h"))
	run := func(input []byte) {
		w.Run(input)
		w.Srv.Effects.Buf = w.Srv.Effects.Buf[:0]
	}
	for _, logged := range []bool{false, true} {
		if logged {
			w.Srv.Effects.Enable(math.MaxInt64)
		}
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s, logged %v", test.name, logged), func(t *testing.T) {
				one := servertest.EncodeCommand(test.command...)
				many := bytes.Repeat(one, pipeline)
				require.NotContains(t, string(w.Run(one)), "ERR ")
				run(many)
				require.Zero(t, testing.AllocsPerRun(200, func() { run(one) }), "alone")
				require.Zero(t, testing.AllocsPerRun(200, func() { run(many) }), "in a pipeline")
			})
		}
	}
}

// TestRepliesReuseTheirBuffers: a front of one connection writes replies into memory that it has sent before. Else each reply would cost a new buffer,
// and what was sent would be kept, up to what suffices for a loop's connections together.
func TestRepliesReuseTheirBuffers(t *testing.T) {
	open := func(t *testing.T) *server.Server {
		srv := server.New(config.NewLive(servertest.Unsaved()), server.Options{})
		t.Cleanup(srv.Keys.Close)
		return srv
	}
	const rounds = 500
	ping, pong := []byte("PING\r\n"), []byte("+PONG\r\n")
	t.Run("within the process", func(t *testing.T) {
		srv := open(t)
		inner := netpoll.NewInner(srv.WithoutBackgroundWork(), "127.0.0.1:0", "127.0.0.1:0")
		defer inner.Close()
		whole := func(replies []byte) bool { return bytes.Equal(replies, pong) }
		require.Zero(t, testing.AllocsPerRun(rounds, func() {
			_, err := inner.Do(context.Background(), ping, whole)
			require.NoError(t, err)
			require.True(t, inner.Open())
		}))
	})
	t.Run("behind a net.Conn", func(t *testing.T) {
		srv := open(t)
		client, served := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			netpoll.ServeConn(srv, served)
		}()
		reply := make([]byte, len(pong))
		require.Zero(t, testing.AllocsPerRun(rounds, func() {
			_, err := client.Write(ping)
			require.NoError(t, err)
			_, err = io.ReadFull(client, reply)
			require.NoError(t, err)
		}))
		require.NoError(t, client.Close())
		<-ended
	})
}
