package report

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Families of the ports that gateways ask.
var (
	httpChecks = newFamily(prometheus.CounterValue, "headgate_http_checks_total",
		"Requests to http-port and http-unixsocket by result: allowed, limited, or failed.", "result")
	rlsRequests = newFamily(prometheus.CounterValue, "headgate_rls_requests_total",
		"Requests to Envoy's rate limit service by result: ok, over_limit, or failed with a gRPC error.", "result")
)

// answersChecks reports whether there is an HTTP check.
func answersChecks(r *Reports) bool {
	cfg := r.Config.Get()
	return cfg.HTTPPort != 0 || cfg.HTTPUnixSocket != ""
}

// answersEnvoy reports whether there is Envoy's rate limit service.
func answersEnvoy(r *Reports) bool { return r.Config.Get().RLSPort != 0 }

// collectChecks needs no lock.
func (m *Collector) collectChecks(out chan<- prometheus.Metric) {
	n := m.Checks.Counts()
	httpChecks.send(out, float64(n.Allowed.Load()), "allowed")
	httpChecks.send(out, float64(n.Limited.Load()), "limited")
	httpChecks.send(out, float64(n.Failed.Load()), "failed")
}

// collectEnvoy needs no lock.
func (m *Collector) collectEnvoy(out chan<- prometheus.Metric) {
	n := m.Envoy.Counts()
	rlsRequests.send(out, float64(n.OK.Load()), "ok")
	rlsRequests.send(out, float64(n.OverLimit.Load()), "over_limit")
	rlsRequests.send(out, float64(n.Failed.Load()), "failed")
}
