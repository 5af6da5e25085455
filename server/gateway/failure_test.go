package gateway_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// stalled starts a gateway to a redis-server that can be made to answer no more.
func stalled(t *testing.T, edits ...func(*config.Config)) (*relay, *client) {
	r := startRelay(t, socketOf(reference.Start(t)))
	_, gate := startGateway(t, r.url(), append([]func(*config.Config){func(cfg *config.Config) {
		cfg.UpstreamTimeout, cfg.UpstreamRest = 300*time.Millisecond, time.Hour
	}}, edits...)...)
	return r, gate
}

// TestLimitersWhoseNodeCannotWrite: a node that answers, and charges nothing for want of memory or replicas, or while a script does not end, is as good as
// none. What is no limiter's gets its error.
func TestLimitersWhoseNodeCannotWrite(t *testing.T) {
	redis := reference.Start(t)
	srv, gate := startGateway(t, "redis+unix://"+socketOf(redis), patient, func(cfg *config.Config) { cfg.UpstreamRest = time.Hour })
	set := func(name, value string) {
		_, err := redis.Do("CONFIG", "SET", name, value)
		require.NoError(t, err)
	}
	gate.converse(`
		RL.POLICY SET open FIXED 4 1h FAILURE OPEN             | OK
		RL.POLICY SET closed FIXED 4 1h FAILURE CLOSED         | OK
		RL.POLICY SET wrong FIXED 4 1h FAILURE ERROR           | OK
	`)
	for _, tc := range []struct{ name, value, back, code string }{
		{"maxmemory", "1", "0", "OOM"},
		{"min-replicas-to-write", "1", "0", "NOREPLICAS"},
	} {
		set(tc.name, tc.value)
		gate.converse(`
			RL.TAKE 1 open k           | [0 -1 [[0 4 4 -1 0]]]
			RL.TAKE 1 closed k         | [1 0 [[1 4 0 3600000 0]]]
		`)
		require.Equal(t, "OK", gate.ask("CONFIG SET upstream-failure closed"))
		gate.converse(`
			CL.THROTTLE k 7 1 60       | [1 8 0 3600 0]
			RL.GCRA k 8 1 60s          | [1 8 0 3600000 0]
		`)
		require.Equal(t, "OK", gate.ask("CONFIG SET upstream-failure error"))
		for _, call := range []string{"CL.THROTTLE k 7 1 60", "RL.TAKE 1 wrong k", "RL.FIXED k 4 1h"} {
			require.Contains(t, gate.ask(call), " cannot answer: "+tc.code+" ", call)
		}
		require.Equal(t, tc.code, strings.Fields(gate.ask("SET k v"))[0])
		require.Equal(t, "degraded", stateOf(srv), "of no use to limiters")
		set(tc.name, tc.back)
		gate.converse("RL.TAKE 1 closed " + tc.code + " | [0 -1 [[0 4 3 -1 3600000]]]")
	}
}

// TestLongCommandsAreNotCopiedInVain: one for a node that rests is refused before it is copied, which would hold everybody up.
func TestLongCommandsAreNotCopiedInVain(t *testing.T) {
	r, gate := stalled(t)
	r.stall(true)
	require.Eventually(t, func() bool { return strings.Contains(gate.ask("GET k"), "is resting") }, time.Minute, time.Millisecond)
	const bytes = 32 << 20
	set := servertest.EncodeCommand("SET", "k", strings.Repeat("v", bytes))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := gate.Write(set)
	require.NoError(t, err)
	require.Contains(t, gate.read(), "is resting after failures")
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(bytes/2))
	gate.converse("GET k | UPSTREAM " + strings.TrimPrefix(r.url(), "redis://") + " is resting after failures: no answer in time")
}

// TestLimitersWithoutTheirNode: what they answer is the policy's to say, or else the configuration's.
func TestLimitersWithoutTheirNode(t *testing.T) {
	r, gate := stalled(t, func(cfg *config.Config) { cfg.UpstreamLocalShare = 0.5 })
	gate.converse(`
		RL.POLICY SET open FIXED 4 1h FAILURE OPEN             | OK
		RL.POLICY SET closed FIXED 4 1h FAILURE CLOSED         | OK
		RL.POLICY SET local FIXED 4 1h FAILURE LOCAL           | OK
		RL.POLICY SET wrong FIXED 4 1h FAILURE ERROR           | OK
		RL.POLICY SET unsaid FIXED 4 1h                        | OK
		RL.POLICY SET lease ACQUIRE 4 1h FAILURE OPEN          | OK
		RL.POLICY SET none UNLIMITED                           | OK
		CL.THROTTLE k 7 1 60                                   | [0 8 7 -1 60]
	`)
	r.stall(true)
	node := strings.TrimPrefix(r.url(), "redis://")
	require.Equal(t, "UPSTREAM no answer from "+node+" within 300 ms", gate.ask("CL.THROTTLE k 7 1 60"))
	rests := "UPSTREAM " + node + " is resting after failures: no answer in time"
	gate.converse(`
		CL.THROTTLE k 7 1 60                 | ` + rests + `
		GET k                                | ` + rests + `
		RL.RESET k                           | ` + rests + `
		RL.RELEASE k x                       | ` + rests + `
		RL.TAKE 1 wrong k                    | ` + rests + `
		RL.TAKE 2 open k wrong l             | ` + rests + `
		RL.TAKE 1 unsaid k                   | ` + rests + `
		RL.TAKE 1 open k                     | [0 -1 [[0 4 4 -1 0]]]
		RL.TAKE 1 closed k                   | [1 0 [[1 4 0 3600000 0]]]
		RL.TAKE 2 open k closed l            | [1 1 [[0 4 4 -1 0] [1 4 0 3600000 0]]]
		RL.TAKE 1 none k                     | [0 -1 [[0 -1 -1 -1 0]]]
		RL.TAKE 2 local m open k PEEK        | [0 -1 [[0 2 2 -1 0] [0 4 4 -1 0]]]
	`)
	require.Equal(t, "[0 -1 [[0 2 1 -1", gate.ask("RL.TAKE 2 local m open k")[:len("[0 -1 [[0 2 1 -1")])
	require.Equal(t, "[1 1 [[0 2 1 -1", gate.ask("RL.TAKE 2 local m closed k")[:len("[1 1 [[0 2 1 -1")], "what another limits is not charged here")
	require.Equal(t, "[0 -1 [[0 2 0 -1", gate.ask("RL.TAKE 1 local m")[:len("[0 -1 [[0 2 0 -1")])
	require.Equal(t, "[1 0 [[1 2 0 3", gate.ask("RL.TAKE 1 local m")[:len("[1 0 [[1 2 0 3")])

	lease := gate.ask("RL.TAKE 1 lease k")
	id := strings.Trim(lease[strings.LastIndex(lease, "[")+1:], "]")
	require.Len(t, id, 32, lease)
	require.Equal(t, "1", gate.ask("RL.RELEASE k "+id), "whoever has it can give it back")

	require.Equal(t, "OK", gate.ask("CONFIG SET upstream-failure open"))
	gate.converse(`
		CL.THROTTLE k 7 1 60              | [0 8 8 -1 0]
		GCRA k 7 1 60                     | [0 8 8 -1 0]
		RL.GCRA k 8 1 60s                 | [0 8 8 -1 0]
		RL.QUEUE k 8 1 60s                | [0 8 8 -1 0 0]
		RL.ACQUIRE k 8 60s PEEK           | [0 8 8 -1 0 nil]
		RL.ACQUIRE k 8 60s MEMBER me      | [0 8 8 -1 0 me]
		RL.RELEASE k x                    | 1
		RL.TAKE 1 wrong k                 | ` + rests + `
		INCR k                            | ` + rests + `
		MULTI                             | OK
		CL.THROTTLE k 7 1 60              | QUEUED
		EXEC                              | ` + rests + `
	`)
	require.Equal(t, "OK", gate.ask("CONFIG SET upstream-failure closed"))
	gate.converse(`
		CL.THROTTLE k 7 1 60              | [1 8 0 3600 0]
		RL.GCRA k 8 1 60s                 | [1 8 0 3600000 0]
		RL.QUEUE k 8 1 60s                | [1 8 0 3600000 0 -1]
		RL.ACQUIRE k 8 60s                | [1 8 0 3600000 0 nil]
	`)
	require.Equal(t, "OK", gate.ask("CONFIG SET upstream-failure local"))
	gate.converse(`
		CL.THROTTLE here 7 1 60           | [0 4 3 -1 120]
		CL.THROTTLE here 7 1 60           | [0 4 2 -1 240]
		RL.ACQUIRE leases 4 1h MEMBER a   | [0 2 1 -1 3600000 a]
		RL.RELEASE leases a               | 1
		RL.RELEASE leases a               | 0
		RL.GCRA one 1 1 60s               | [0 1 0 -1 120000]
		RL.GCRA nothing 0 1 60s           | [1 0 0 -1 0]
	`)
}

// TestOpenLeases are told from others by their ids alone, and given back without the upstream.
func TestOpenLeases(t *testing.T) {
	r, gate := stalled(t, func(cfg *config.Config) { cfg.UpstreamFailure = limiter.FailOpen })
	r.stall(true)
	answer := gate.ask("RL.ACQUIRE k 3 60s")
	fields := strings.Fields(strings.Trim(answer, "[]"))
	require.Equal(t, []string{"0", "3", "3", "-1", "0"}, fields[:5], answer)
	_, other := overRedis(t)
	require.Equal(t, "1", other.ask("RL.RELEASE k "+fields[5]))
	require.Equal(t, "1", other.ask("RL.RENEW k "+fields[5]+" 60s"))
	require.Equal(t, "0", other.ask("RL.RELEASE k 0123456789abcdef0123456789abcdef"))
}

// TestTheUpstreamComesBack: after its rest a node is tried again, and clients notice nothing else.
func TestTheUpstreamComesBack(t *testing.T) {
	r, gate := stalled(t, func(cfg *config.Config) { cfg.UpstreamRest = 50 * time.Millisecond })
	require.Equal(t, "OK", gate.ask("SET k v"))
	r.cut()
	require.Eventually(t, func() bool { return gate.ask("GET k") == "v" }, answerTime, 10*time.Millisecond)
	r.stall(true)
	require.True(t, strings.HasPrefix(gate.ask("GET k"), "UPSTREAM "))
	r.stall(false)
	require.Eventually(t, func() bool { return gate.ask("GET k") == "v" }, answerTime, 10*time.Millisecond)
}

// TestClientsThatGoWhileTheirCommandsAreUnderWay leave nothing behind.
func TestClientsThatGoWhileTheirCommandsAreUnderWay(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	srv, gate := startGateway(t, r.url(), func(cfg *config.Config) { cfg.UpstreamTimeout = 500 * time.Millisecond })
	require.Equal(t, "OK", gate.ask("SET k v"))
	r.stall(true)
	for i := range 20 {
		c := dial(t, gate.addr)
		c.send(fmt.Sprintf("CL.THROTTLE k%d 5 1 60", i), "GET k", "PING", "GET k")
		if i%2 == 0 {
			require.Contains(t, c.read(), "UPSTREAM ")
		}
		c.Close()
	}
	require.Eventually(t, func() bool {
		srv.Lock()
		defer srv.Unlock()
		return srv.AnswersToCome() == 0 && len(srv.Clients.List) == 1
	}, answerTime, 10*time.Millisecond)
}

// TestAnswersUnderWayAtTheEnd: a gateway that ends waits for what its upstream is about to answer, since that has run.
func TestAnswersUnderWayAtTheEnd(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	srv, gate := startGateway(t, r.url())
	require.Equal(t, "OK", gate.ask("SET n 1"))
	r.stall(true)
	gate.send("INCR n")
	require.Eventually(t, func() bool { return srv.Gateway.Up.Status().PendingCalls > 0 }, answerTime, time.Millisecond)
	srv.Stop()
	r.stall(false)
	require.Equal(t, "2", gate.read())
}

// TestAnswersUnderWayAtTheEndOverTLS: likewise to clients behind a net.Conn, as those of TLS are.
func TestAnswersUnderWayAtTheEndOverTLS(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	srv, gate := startGateway(t, r.url())
	require.Equal(t, "OK", gate.ask("SET n 1"))
	client, served := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		netpoll.ServeConn(srv, served)
	}()
	require.NoError(t, client.SetDeadline(time.Now().Add(answerTime)))
	r.stall(true)
	_, err := client.Write([]byte("INCR n\r\nINCR n\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return srv.Gateway.Up.Status().PendingCalls == 2 }, answerTime, time.Millisecond)
	srv.Stop()
	r.stall(false)
	replies, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, ":2\r\n:3\r\n", string(replies))
	<-ended
}

// TestTooMuchUnderWay: clients are not read while as much is under way as may be, and all are answered.
func TestTooMuchUnderWay(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	srv, gate := startGateway(t, r.url(), func(cfg *config.Config) { cfg.UpstreamPendingMax = config.PendingLimit{Bytes: 64 << 10, Commands: 100} })
	require.Equal(t, "OK", gate.ask("SET k v"))
	r.stall(true)
	var clients []*client
	const each = 400
	for range 8 {
		c := dial(t, gate.addr)
		for range each {
			c.send("GET k")
		}
		clients = append(clients, c)
	}
	require.Eventually(t, func() bool { return srv.Gateway.Up.Overloaded() }, answerTime, time.Millisecond)
	r.stall(false)
	for i, c := range clients {
		for n := range each {
			require.Equal(t, "v", c.read(), "client %d, reply %d", i, n)
		}
	}
	require.False(t, srv.Gateway.Up.Overloaded())
}

// TestStartWithoutUpstream: limits that the gateway knows by itself are answered as upstream-failure says, before the upstream has told anything.
func TestStartWithoutUpstream(t *testing.T) {
	dead := startRelay(t, "/nowhere")
	_, gate := startGateway(t, dead.url(), func(cfg *config.Config) {
		cfg.UpstreamFailure = limiter.FailOpen
		require.NoError(t, addPolicy(cfg, "infile", "GCRA 5 5 1m"))
		require.NoError(t, addPolicy(cfg, "shut", "FIXED 5 1m FAILURE CLOSED"))
	})
	require.Equal(t, "[0 5 5 -1 0]", gate.ask("RL.GCRA k 5 5 1m"))
	require.Equal(t, "[0 -1 [[0 5 5 -1 0]]]", gate.ask("RL.TAKE 1 infile k"))
	require.True(t, strings.HasPrefix(gate.ask("RL.TAKE 1 shut k"), "[1 0 [[1 5 0 "))
	_, err := io.WriteString(gate, "*4\r\n$7\r\nRL.TAKE\r\n$1\r\n1\r\n$11\r\nGCRA 5 5 1m\r\n$1\r\nk\r\n")
	require.NoError(t, err)
	require.Equal(t, "[0 -1 [[0 5 5 -1 0]]]", gate.read())
	require.Equal(t, "UPSTREAM the policies are not known yet, since the upstream has not answered with them since the start", gate.ask("RL.TAKE 1 inhash k"))
	require.Equal(t, "ERR 'SHUTDOWN SAVE' is not served while upstream is set", gate.ask("SHUTDOWN SAVE"))
}
