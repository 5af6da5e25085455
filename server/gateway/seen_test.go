package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestWhatIsSeenOfAnUpstream: INFO, RL.UPSTREAM, /metrics, /readyz and the page's data agree on an upstream that works, and on one that
// has ceased to.
func TestWhatIsSeenOfAnUpstream(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	node, port := strings.TrimPrefix(r.url(), "redis://"), freePort(t)
	srv, gate := startGateway(t, r.url(), func(cfg *config.Config) {
		cfg.UpstreamTimeout, cfg.UpstreamRest = 300*time.Millisecond, time.Hour
		cfg.MetricsPort, cfg.MetricsBind = port, []string{"127.0.0.1"}
	})
	get := func(path string) (status int, body string) {
		reply, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		require.NoError(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, string(text)
	}
	require.Equal(t, "[0 8 7 -1 60]", gate.ask("CL.THROTTLE k 7 1 60"))
	status := gate.ask("RL.UPSTREAM STATUS")
	require.True(t, strings.HasPrefix(status, "[state up kind redis failure error nodes 1 nodes_down 0 calls "), status)
	require.Contains(t, status, " disagreements 0 ")
	require.Contains(t, status, " fallbacks_error 0 fallbacks_open 0 fallbacks_closed 0 fallbacks_local 0 ")
	nodes := gate.ask("RL.UPSTREAM NODES")
	require.True(t, strings.HasPrefix(nodes, "[[addr "+node+" role primary state up why  rest_ms 0 version 7."), nodes)
	info := gate.ask("INFO upstream")
	require.True(t, strings.HasPrefix(info, "# Upstream\r\nupstream_state:up\r\nupstream_kind:redis\r\nupstream_failure:error\r\nupstream_nodes:1\r\n"), info)
	require.Contains(t, info, "\r\nupstream_node_0:addr="+node+",role=primary,state=up,why=,")
	require.Contains(t, gate.ask("INFO"), "# Upstream\r\n")
	series := servertest.Scrape(t, srv)
	require.EqualValues(t, 1, series["headgate_upstream_up{}"])
	require.EqualValues(t, 1, series[fmt.Sprintf("headgate_upstream_node_up{node=%q}", node)])
	require.EqualValues(t, 100000, series["headgate_upstream_pending_max{}"])
	require.Positive(t, series["headgate_upstream_calls_total{}"])
	require.Positive(t, series["headgate_upstream_round_trip_seconds{}_count"])
	require.Equal(t, series["headgate_upstream_batch_calls{}_count"], series["headgate_upstream_batch_calls{}_6.7108863e+07"], "no batch is beyond the last bound")
	code, body := get("/readyz")
	require.Equal(t, "200 ready\n", fmt.Sprint(code, " ", body))
	_, body = get("/lookup?key=k&limit=GCRA+8+1+60s")
	require.Contains(t, body, "this is a gateway, and the key is stored upstream", "the keys here are not those that are meant")

	r.stall(true)
	require.Equal(t, "UPSTREAM no answer from "+node+" within 300 ms", gate.ask("CL.THROTTLE k 7 1 60"))
	status = gate.ask("RL.UPSTREAM STATUS")
	require.True(t, strings.HasPrefix(status, "[state down kind redis failure error "), status)
	require.Contains(t, status, " nodes 1 nodes_down 1 ")
	require.Contains(t, status, " fallbacks_error 1 ")
	require.Contains(t, gate.ask("RL.UPSTREAM NODES"), " state resting why no answer in time rest_ms ")
	series = servertest.Scrape(t, srv)
	require.Zero(t, series["headgate_upstream_up{}"])
	require.Zero(t, series["headgate_ready{}"])
	require.Zero(t, series[fmt.Sprintf("headgate_upstream_node_up{node=%q}", node)])
	require.EqualValues(t, 1, series[`headgate_upstream_fallbacks_total{failure="error"}`])
	require.EqualValues(t, 1, series["headgate_upstream_nodes_down{}"])
	code, body = get("/readyz")
	require.Equal(t, "503 upstream: no primary serves this gateway, and upstream-failure is error; upstream_problem in INFO says why\n", fmt.Sprint(code, " ", body))
	_, data := get("/data")
	require.Contains(t, data, `"state":"down"`)
	require.Contains(t, data, `"nodes":[{"addr":"`+node+`","role":"primary","state":"resting","why":"no answer in time"`)

	require.Equal(t, "OK", gate.ask("CONFIG SET upstream-failure open"))
	code, _ = get("/readyz")
	require.Equal(t, http.StatusOK, code, "limiters answer all the same")
	require.Equal(t, "[0 8 8 -1 0]", gate.ask("CL.THROTTLE k 7 1 60"))
	require.Contains(t, gate.ask("RL.UPSTREAM STATUS"), " fallbacks_error 1 fallbacks_open 1 ")
}

// TestNothingIsSeenWithoutUpstream: a server that keeps keys itself says so, and shows nothing of an upstream.
func TestNothingIsSeenWithoutUpstream(t *testing.T) {
	srv, addr := startServer(t)
	native := dial(t, addr)
	native.converse(`
		RL.UPSTREAM STATUS      | ERR upstream is not set: this server keeps its keys itself
		RL.UPSTREAM NODES       | ERR upstream is not set: this server keeps its keys itself
		RL.UPSTREAM LEASES      | ERR upstream is not set: this server keeps its keys itself
		RL.UPSTREAM RETURN k    | ERR upstream is not set: this server keeps its keys itself
		INFO upstream           |
	`)
	require.NotContains(t, strings.ToLower(native.ask("INFO everything")), "upstream_")
	for name := range servertest.Scrape(t, srv) {
		require.NotContains(t, name, "headgate_upstream")
	}
}
