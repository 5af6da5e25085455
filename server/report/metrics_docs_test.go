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

` + "`metrics-port` opens an HTTP port, on loopback addresses unless `metrics-bind` names others. It answers only GET and HEAD:" + `

| Path | Answers |
|---|---|
` + "| `/metrics` | all counters in Prometheus' text format |" + `
` + "| `/` | a [page](page.md) for people: decisions, latency, memory and keys of the last 15 minutes, the keys that are limited and called most, policies, slow commands, the state of memory, disk and certificate, and a box to look up a key |" + `
` + "| `/healthz` | 200 while the process answers, even during a long command |" + `
` + "| `/readyz` | 200, or 503 and the reason: data are being loaded, data cannot be written (MISCONF), the server is shutting down, a replica does not have its primary's data yet (or its link is down and `replica-serve-stale-data` is no), or a gateway with `upstream-failure error` reaches no node of its upstream |" + `

` + "The page shows keys and slow commands. Without a password it is shown only to clients that could also read them over the Redis protocol" + `
` + "without a password: while the default user may do everything, and to other machines only with `protected-mode no`. The `Host` must be an IP" + `
` + "address or a name without dots, so that a foreign web page cannot read the page through a visitor's browser." + `

` + "With `metrics-password`, `/metrics` and the page require `metrics-user` and that password (HTTP basic authentication). With" + `
` + "`metrics-page-password`, the page requires that one instead, so that a scraper cannot see keys; set alone, it leaves `/metrics` open. The" + `
` + "port has no TLS: keep it on a loopback address or a private network, or put a proxy in front of it." + `

The port accepts 272 connections at a time; for a new one, the connection that has been idle longest is closed. A request has five seconds
to arrive, and at most ten seconds may pass between two. Requests that come faster than 1,000 a second wait for their turn, so that they take
` + "little from those who ask for limits. For `/metrics` and the page, 64 replies are prepared at a time, at most two of them scrapes, and" + `
` + "further requests get 503. That leaves room for probes: `/healthz` and `/readyz` wait for their turn for 0.3 s at most, and are answered" + `
` + "while the port has connections left. Where a thousand peers ask without end, many probes fail. Their replies close the connection." + `

    scrape_configs:
      - job_name: headgate
        static_configs:
          - targets: ["127.0.0.1:9121"]

Names are those of redis_exporter where it has them, so that its dashboards and alerts keep working. Labels are bounded: the existing
commands (any other counts as ` + "`unknown`" + `), the databases, 128 error codes, the algorithms, and the names of policies. Keys are never
labels, because their number is unbounded and each time series would outlive its key. A command has series once it has been called;
` + "`CONFIG RESETSTAT`" + ` resets the counters of commands, keys, clients' errors and limiters to 0, as a restart does; those of bytes, TLS, snapshots, rewrites and the upstream continue. A scrape reads the counters in slices, so that it delays no command by more than
other background work does; its figures are therefore not from a single instant.

The usual series of the Go runtime and the process (` + "`go_…`, `process_…`" + `) are included.

` + "`algorithm` is one of " + algorithmLabels() + `; ` + "`CL.THROTTLE` and `GCRA` count as `gcra`." + `
` + "`result` of a limiter is `allowed`, `limited`, or `shadow_limited` for calls that a policy with SHADOW would have limited." + `
` + "`policy` is a policy's name, or the NAME that is written out behind a limit, as rules for Envoy have it; `(written)` counts limits without one (and beyond 500 names)," + `
` + "`(missing)` those that `unknown-policy allow` let pass." + `

` + "`INFO limiters` has the same figures, since the start or `CONFIG RESETSTAT`:" + `

| Field | Meaning |
|---|---|
` + "| `limiter_calls_allowed`, `limiter_calls_near_limit`, `limiter_calls_limited`, `limiter_calls_shadow_limited` | calls of all limiters; near_limit counts allowed calls that left at most a tenth of the limit, shadow_limited those that a policy with SHADOW would have limited |" + `
` + "| `limiter_blocks_failed` | blocks that could not be stored; the calls were limited without them |" + `
` + "| `limiter_changes_in_memory` | changes that were kept in memory only, see `limiter-when-unwritable` |" + `
` + "| `reservations_open`, `reservations_reserved`, `reservations_settled`, `reservations_cancelled`, `reservations_timed_out`, `reservations_in_debt` | reservations (RL.RESERVE): open now, made, and how they ended; in_debt counts those that were settled for more than was reserved |" + `
` + "| `limiter_waiting`, `limiter_waits_passed`, `limiter_waits_limited`, `limiter_waits_given_up` | calls that are waiting now (WAIT), and those that have waited, by outcome |" + `
` + "| `algorithm_<label>`, `policy_<name>` | `allowed=`, `near_limit=` and `limited=` of each that has been called; `shadow_limited=` if it is not 0, and so of a policy `blocks=` (blocks and bans that were started) |" + `
` + "| `top_seconds` | how far RL.TOP looks back |" + `
` + "| `top_limited_<n>`, `top_hot_<n>` | the first keys of RL.TOP: `db=`, `calls=`, `error=` (by how much calls may be too high at most), `policy=` of a key that a policy limits, and `key=` |" + `
` + "| `top_limited_error`, `top_hot_error` | the maximum error of the counts in that list |" + `

A gateway has the series ` + "`headgate_upstream_…`, and `INFO upstream` with the same figures since its start; a server that keeps keys itself has neither." + `
` + "[Operations](operations.md#a-gateway-in-front-of-redis) says which ones to watch. `node` is the address of a node of the upstream." + `

` + "With `http-port` or `http-unixsocket` there are `headgate_http_checks_total` and `INFO httpcheck`, with `rls-port` `headgate_rls_…` and `INFO envoy`." + `

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`
