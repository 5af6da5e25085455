package gateway_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// requireWaiting waits until so many calls wait at a server.
func requireWaiting(t *testing.T, srv *server.Server, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		srv.Lock()
		defer srv.Unlock()
		return srv.Limits.Waits.Now == n
	}, answerTime, time.Millisecond, "%d calls wait", n)
}

// TestWaitBeforeAHeadgate: a call that waits is answered in its turn, and keeps nobody else who asks through the same gateway.
func TestWaitBeforeAHeadgate(t *testing.T) {
	home, addr := startServer(t)
	srv, gate := startGateway(t, "redis://"+addr)
	gate.converse(`
		RL.POLICY SET p ACQUIRE 1 1h         | OK
		RL.ACQUIRE q 1 1h MEMBER a           | [0 1 0 -1 3600000 a]
		RL.ACQUIRE r 1 1h MEMBER a WAIT 1h   | [0 1 0 -1 3600000 a]
		RL.GCRA passes 1 1 1h WAIT 1m        | [0 1 0 -1 3600000]
		RL.GCRA passes 1 1 1h WAIT 2h        | ERR WAIT must not be longer than 1h
		RL.LOG named 1 1s MEMBER WAIT        | [0 1 0 -1 1000]
	`)
	for i, call := range []string{"RL.ACQUIRE q 1 1h MEMBER b WAIT 1m", "RL.TAKE 1 p taken WAIT 1m", "RL.RESERVE 1 p reserved TTL 1m ID work WAIT 1m"} {
		key := []string{"q", "taken", "reserved"}[i]
		if i > 0 {
			require.Equal(t, "[0 1 0 -1 3600000 a]", gate.ask("RL.ACQUIRE "+key+" 1 1h MEMBER a"))
		}
		waits := dial(t, gate.addr)
		waits.send(call, "SET behind "+key, "PING")
		requireWaiting(t, home, 1)
		gate.converse("GET behind | " + []string{"nil", "q", "taken"}[i] + "\nRL.RELEASE " + key + " a | 1")
		require.True(t, strings.HasPrefix(waits.read(), "[0 "), call)
		require.Equal(t, "OK", waits.read(), "what came behind it runs after it")
		require.Equal(t, "PONG", waits.read())
	}
	gate.converse(`
		MULTI                              | OK
		RL.ACQUIRE q 1 1h MEMBER c WAIT 1h | QUEUED
	`)
	require.True(t, strings.HasPrefix(gate.ask("EXEC"), "[[1 1 0 "), "a transaction does not wait")

	for _, behind := range [][]string{nil, {"PING", "GET a"}} {
		left := dial(t, gate.addr)
		left.send(append([]string{"RL.ACQUIRE q 1 1h MEMBER c WAIT 1h"}, behind...)...)
		requireWaiting(t, home, 1)
		require.NoError(t, left.Close())
		requireWaiting(t, home, 0)
	}
	require.Eventually(t, func() bool {
		srv.Lock()
		defer srv.Unlock()
		return srv.AnswersToCome() == 0
	}, answerTime, time.Millisecond)
}

// TestWaitsThroughAGatewayAreBounded: where so many wait that one more may not, it is limited at once.
func TestWaitsThroughAGatewayAreBounded(t *testing.T) {
	home, addr := startServer(t)
	_, gate := startGateway(t, "redis://"+addr, func(cfg *config.Config) { cfg.WaitMaxClients = 2 })
	require.Equal(t, "[0 1 0 -1 3600000 a]", gate.ask("RL.ACQUIRE q 1 1h MEMBER a"))
	var waiting []*client
	for i := range 2 {
		waits := dial(t, gate.addr)
		waits.send(fmt.Sprintf("RL.ACQUIRE q 1 1h MEMBER b%d WAIT 1h", i))
		requireWaiting(t, home, i+1)
		waiting = append(waiting, waits)
	}
	require.True(t, strings.HasPrefix(gate.ask("RL.ACQUIRE q 1 1h MEMBER c WAIT 1h"), "[1 1 0 "))
	gate.converse("RL.RELEASE q a | 1")
	require.Equal(t, "[0 1 0 -1 3600000 b0]", waiting[0].read())
	waiting[0].send("RL.ACQUIRE q 1 1h MEMBER c WAIT 1h")
	requireWaiting(t, home, 2)
	gate.converse("RL.RELEASE q b0 | 1")
	require.Equal(t, "[0 1 0 -1 3600000 b1]", waiting[1].read())
	gate.converse("RL.RELEASE q b1 | 1")
	require.Equal(t, "[0 1 0 -1 3600000 c]", waiting[0].read())
}

// TestLoweredWaitsAreAWarningIfAsked: every start of a gateway warned that wait-max-clients was lowered, although it was the default that was.
func TestLoweredWaitsAreAWarningIfAsked(t *testing.T) {
	var log lines
	cfg := servertest.Unsaved()
	cfg.Upstream = "redis://127.0.0.1:1"
	s := server.New(config.NewLive(cfg), server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(s.Keys.Close)
	t.Cleanup(s.Gateway.Close)
	s.Lock()
	defer s.Unlock()
	s.Gateway.SetWaitRoom(11, config.Default().WaitMaxClients)
	require.Contains(t, log.String(), `level=INFO msg="wait-max-clients lowered to what the limit on open files leaves" wait-max-clients=11 asked=10000`)
	s.Gateway.SetWaitRoom(11, 9999)
	require.Contains(t, log.String(), `level=WARN msg="wait-max-clients lowered to what the limit on open files leaves" wait-max-clients=11 asked=9999`)
}

// TestWaitsLeaveDescriptors: no more wait than have a descriptor kept for them, so that nodes can always be connected.
func TestWaitsLeaveDescriptors(t *testing.T) {
	home, addr := startServer(t)
	srv, gate := startGateway(t, "redis://"+addr)
	srv.Lock()
	srv.Gateway.SetWaitRoom(1, 10)
	srv.Unlock()
	figures := func(waiting, most int) {
		t.Helper()
		require.Contains(t, gate.ask("INFO limiters"), fmt.Sprintf("limiter_waiting:%d\r\n", waiting))
		srv.Lock()
		defer srv.Unlock()
		require.Equal(t, most, srv.Gateway.WaitingMax())
	}
	figures(0, 1)
	require.Equal(t, "[0 1 0 -1 3600000 a]", gate.ask("RL.ACQUIRE q 1 1h MEMBER a"))
	waits := dial(t, gate.addr)
	waits.send("RL.ACQUIRE q 1 1h MEMBER b WAIT 1h")
	requireWaiting(t, home, 1)
	require.True(t, strings.HasPrefix(gate.ask("RL.ACQUIRE q 1 1h MEMBER c WAIT 1h"), "[1 1 0 "))
	figures(1, 1)
	require.Equal(t, 1, strings.Count(gate.ask("CLIENT LIST"), " waits-for=q waits-ms="))
	gate.converse("RL.RELEASE q a | 1")
	require.Equal(t, "[0 1 0 -1 3600000 b]", waits.read())
	figures(0, 1)
	require.NotContains(t, gate.ask("CLIENT LIST"), "waits-for")
}

// TestWaitsWhereNoConnectionIsLeft: where the server behind serves as many clients as it may, one more call that would wait is limited at once, as if too
// many waited, whatever upstream-failure says; nothing else is kept from that server.
func TestWaitsWhereNoConnectionIsLeft(t *testing.T) {
	home, addr := startServer(t, func(cfg *config.Config) { cfg.MaxClients = 6 })
	_, gate := startGateway(t, "redis://"+addr, func(cfg *config.Config) { cfg.UpstreamFailure = limiter.FailOpen })
	require.Equal(t, "[0 1 0 -1 3600000 a]", gate.ask("RL.ACQUIRE q 1 1h MEMBER a"))
	full := func() bool {
		home.Lock()
		defer home.Unlock()
		return len(home.Clients.ByID) == 6
	}
	var waiting []*client
	for n := 1; !full(); n++ {
		waits := dial(t, gate.addr)
		waits.send(fmt.Sprintf("RL.ACQUIRE q 1 1h MEMBER b%d WAIT 1h", n))
		requireWaiting(t, home, n)
		waiting = append(waiting, waits)
	}
	require.True(t, strings.HasPrefix(gate.ask("RL.ACQUIRE q 1 1h MEMBER c WAIT 1h"), "[1 1 0 "))
	require.True(t, strings.HasPrefix(gate.ask("RL.ACQUIRE free 1 1h MEMBER c WAIT 1h"), "[0 1 0 "), "which limits nobody")
	require.Contains(t, gate.ask("INFO upstream"), "upstream_state:up\r\n")
	gate.converse("SET x y | OK\nRL.RELEASE q a | 1")
	require.Equal(t, "[0 1 0 -1 3600000 b1]", waiting[0].read())
}

// TestWaitWhoseNodeIsAReplica: a node that is no primary any more serves calls that wait as little as others.
func TestWaitWhoseNodeIsAReplica(t *testing.T) {
	_, addr := startServer(t)
	_, gate := startGateway(t, "redis://"+addr, patient)
	node := dial(t, addr)
	require.Equal(t, "OK", node.ask("REPLICAOF 127.0.0.1 1"))
	require.Contains(t, gate.ask("RL.FIXED k 5 1h WAIT 100ms"), " cannot answer: ")
	gate.converse(`
		CONFIG SET upstream-failure closed | OK
		RL.FIXED k 5 1h WAIT 100ms         | [1 5 0 1000 0]
		CONFIG SET upstream-failure open   | OK
		RL.FIXED k 5 1h WAIT 100ms         | [0 5 5 -1 0]
	`)
}

// TestWaitWithoutItsUpstream: a call that waits is answered when its connection breaks, and one that comes then as upstream-failure says.
func TestWaitWithoutItsUpstream(t *testing.T) {
	home, addr := startServer(t)
	r := startRelay(t, addr)
	_, gate := startGateway(t, r.url(), func(cfg *config.Config) { cfg.UpstreamTimeout, cfg.UpstreamRest = 300*time.Millisecond, time.Hour })
	require.Equal(t, "[0 1 0 -1 3600000 a]", gate.ask("RL.ACQUIRE q 1 1h MEMBER a"))
	waits := dial(t, gate.addr)
	waits.send("RL.ACQUIRE q 1 1h MEMBER b WAIT 1h")
	requireWaiting(t, home, 1)
	r.ln.Close()
	r.cut()
	require.Regexp(t, "^UPSTREAM the connection to .* broke .*; the command may have been executed$", waits.read())
	requireWaiting(t, home, 0)
	require.Regexp(t, "^UPSTREAM ", waits.ask("RL.ACQUIRE q 1 1h MEMBER b WAIT 1h"))
}

// TestWaitOutlivesAFailover: a call that waits is sent to the new primary, which may come some time after the former one has ceased to be one, for the
// rest of its time, and is not let through meanwhile.
func TestWaitOutlivesAFailover(t *testing.T) {
	first, firstAddr := startServer(t)
	second, secondAddr := startServer(t)
	a, b := dial(t, firstAddr), dial(t, secondAddr)
	follow := func(c *client, addr string) {
		host, port, _ := strings.Cut(addr, ":")
		require.Equal(t, "OK", c.ask("REPLICAOF "+host+" "+port))
	}
	follow(b, firstAddr)
	has := func(c *client, line string) {
		require.Eventually(t, func() bool { return strings.Contains(c.ask("INFO replication"), line+"\r\n") }, answerTime, time.Millisecond, line)
	}
	has(b, "master_link_status:up")
	_, gate := startGateway(t, "redis://"+firstAddr+","+secondAddr, func(cfg *config.Config) {
		cfg.UpstreamFailure, cfg.UpstreamRest = limiter.FailOpen, 50*time.Millisecond
	})
	require.Equal(t, "[0 1 0 -1 3600000 a]", gate.ask("RL.ACQUIRE q 1 1h MEMBER a"))
	waits := dial(t, gate.addr)
	waits.send("RL.ACQUIRE q 1 1h MEMBER b WAIT 1h")
	requireWaiting(t, first, 1)
	require.Eventually(t, func() bool { return b.ask("EXISTS q") == "1" }, answerTime, time.Millisecond, "it is replicated")
	follow(a, secondAddr) // there is no primary now
	requireWaiting(t, first, 0)
	time.Sleep(100 * time.Millisecond) // it is refused meanwhile
	require.Equal(t, "OK", b.ask("REPLICAOF NO ONE"))
	requireWaiting(t, second, 1)
	require.Equal(t, "1", b.ask("RL.RELEASE q a"))
	require.Equal(t, "[0 1 0 -1 3600000 b]", waits.read())
	require.Contains(t, gate.ask("INFO upstream"), "upstream_fallbacks_open:0\r\n")
}
