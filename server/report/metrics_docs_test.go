package report_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"headgate/server/limiter"
	"headgate/server/report"
	"headgate/server/servertest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

//go:generate go test -run Documented$ -write .

// TestMetricsDocumented fails when docs/metrics.md is not what the table of metrics says.
func TestMetricsDocumented(t *testing.T) {
	const path = "../../docs/metrics.md"
	if *servertest.WriteDocs {
		require.NoError(t, os.WriteFile(path, []byte(metricsMarkdown()), 0o644))
		return
	}
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, metricsMarkdown(), string(document), "run: go generate ./server/report")
}

// metricsMarkdown renders docs/metrics.md.
func metricsMarkdown() string {
	var b strings.Builder
	b.WriteString(metricsHead)
	row := func(f *report.Family) {
		kind := map[prometheus.ValueType]string{prometheus.CounterValue: "counter", prometheus.GaugeValue: "gauge", prometheus.UntypedValue: "histogram"}[f.Kind]
		labels := ""
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, kind, labels, f.Help)
	}
	for _, f := range report.Families {
		row(f)
	}
	return b.String()
}

// algorithmLabels are the values of the label algorithm, each with its command where that has another name.
func algorithmLabels() string {
	var labels []string
	for _, a := range limiter.Standard.All() {
		label := "`" + a.Label + "`"
		if a.Label != strings.ToLower(a.Name) {
			label += " (of `RL." + a.Name + "`)"
		}
		labels = append(labels, label)
	}
	return strings.Join(labels, ", ")
}

var metricsHead = `<!-- Generated from server/report/figures_table.go and server/report/metrics.go by "go generate ./server/report"; do not edit. -->

# Metrics

` + "`metrics-port` opens an HTTP port, on loopback addresses unless `metrics-bind` names others. It answers GET and HEAD only:" + `

| Path | Answers |
|---|---|
` + "| `/metrics` | all counters in Prometheus' text format |" + `
` + "| `/` | a page for people: decisions, times, memory and keys of the last 15 minutes, the keys that are limited and called most, policies, slow commands, how memory, disk and certificate stand, and a box that looks a key up |" + `
` + "| `/healthz` | 200 as long as the process answers, also while a command takes long |" + `
` + "| `/readyz` | 200, or 503 with the reason in a line: data are loaded, data cannot be written (MISCONF), the server is shutting down, a replica has not got its primary's data yet (or its link is cut and `replica-serve-stale-data` is no), or a gateway with `upstream-failure error` reaches no node of its upstream |" + `

` + "The page shows keys and slow commands. Without a password it is only shown to those who could read these over the Redis protocol without a" + `
` + "password too: while the default user may do everything, and to other machines only with `protected-mode no`; and only under an IP address or" + `
` + "a name without dots, so that a foreign web page cannot read it through a visitor's browser." + `

` + "With `metrics-password` everything but the last two asks for `metrics-user` and that password by HTTP's basic authentication. With" + `
` + "`metrics-page-password` the page asks for that one instead, so that a scraper sees no keys; alone, it leaves `/metrics` open. There" + `
` + "is no TLS on this port: leave it on a loopback address or a private network, or put a proxy before it." + `

The port takes 80 connections at a time. For one more, the one gives way that has waited longest for its next request, or for its
` + "first to arrive whole. A request has five seconds to arrive, and ten seconds may pass between two. Of `/metrics` and the page 64 answers," + `
` + "two scrapes among them, are made at a time, and further ones are refused with 503; that leaves room for 16 probes, so that `/healthz` and" + `
` + "`/readyz` are answered however many connections others hold. Their answers close the connection." + `

    scrape_configs:
      - job_name: headgate
        static_configs:
          - targets: ["127.0.0.1:9121"]

Names are redis_exporter's where it has them, so that dashboards and alerts made for it keep working. Labels are bounded: by the
commands that there are (a command that does not exist counts as ` + "`unknown`" + `), the databases, 128 codes of errors, the algorithms, and
the names of policies. No key is ever a label: there is no bound to them, and a time series for each would outlive it. A command has
series once it has been called; ` + "CONFIG RESETSTAT" + ` resets counters to 0, as a restart does. A scrape reads the counters in slices, so that
no command waits for it longer than for other background work; what it shows is therefore not of one instant.

Go's and the process's own series (` + "`go_…`, `process_…`" + `) are there too.

` + "`algorithm` is one of " + algorithmLabels() + `; ` + "`CL.THROTTLE` and `GCRA` count as `gcra`." + `
` + "`result` of a limiter is `allowed`, `limited`, or `shadow_limited` for calls that a policy with SHADOW would have limited." + `

` + "`INFO limiters` has the same figures, since the start or `CONFIG RESETSTAT`:" + `

| Field | Meaning |
|---|---|
` + "| `limiter_calls_allowed`, `limiter_calls_near_limit`, `limiter_calls_limited`, `limiter_calls_shadow_limited` | calls of all limiters; near are allowed calls that left no more than a tenth of the limit, shadow_limited those that a policy with SHADOW would have limited |" + `
` + "| `limiter_blocks_failed` | blocks that could not be kept; the calls were limited without them |" + `
` + "| `limiter_changes_in_memory` | changes that were kept in memory alone, see `limiter-when-unwritable` |" + `
` + "| `reservations_open`, `reservations_reserved`, `reservations_settled`, `reservations_cancelled`, `reservations_timed_out`, `reservations_in_debt` | reservations (RL.RESERVE): how many are open now, were made, and were ended by whom; in debt are those that were settled for more than had been reserved |" + `
` + "| `limiter_waiting`, `limiter_waits_passed`, `limiter_waits_limited`, `limiter_waits_given_up` | calls that wait now, by WAIT; and those that have, by how it ended |" + `
` + "| `algorithm_<label>`, `policy_<name>` | `allowed=`, `near_limit=` and `limited=` of each that has decided anything; where they are not 0, `shadow_limited=` and `blocks=` (blocks and bans that have begun) |" + `
` + "| `top_seconds` | how far RL.TOP looks back |" + `
` + "| `top_limited_<n>`, `top_hot_<n>` | the first keys of RL.TOP: `db=`, `calls=`, `error=` (the most that calls may be too high by), `policy=` of a key that a policy limits, and `key=` |" + `
` + "| `top_limited_error`, `top_hot_error` | the most that any number of that list may be too high by |" + `

A gateway has the series ` + "`headgate_upstream_…`, and `INFO upstream` with the same figures, since its start; a server that keeps keys itself has neither." + `
` + "[Operations](operations.md#a-gateway-before-redis) says which of them to watch. `node` is the address of a node of the upstream." + `

` + "With `http-port` or `http-unixsocket` there are `headgate_http_checks_total` and `INFO httpcheck`, with `rls-port` `headgate_rls_…` and `INFO envoy`." + `

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`
