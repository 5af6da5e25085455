package report

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"headgate/server/config"
	"headgate/server/front"
	"headgate/server/web"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// httpPort is what metrics-port has opened. It never changes once the server runs.
type httpPort struct {
	web       *web.Server // nil: there is none
	listeners []net.Listener
}

// scrapesAtATime bounds how many answers to /metrics are made at once.
const scrapesAtATime = 2

// Open opens the listeners of metrics-port, if it is set.
func (h *httpPort) Open(r *Reports, cfg *config.Config) (err error) {
	if cfg.MetricsPort == 0 {
		return nil
	}
	if h.listeners, err = front.ListenOn(cfg.MetricsBind, cfg.MetricsPort, "--metrics-port"); err != nil {
		return fmt.Errorf("metrics-port: %w", err)
	}
	if len(h.listeners) == 0 {
		return errors.New("metrics-port: this machine has none of its addresses: correct --metrics-bind")
	}
	h.web = web.New(web.Options{
		Credentials: func(access web.Access) (user, password string) {
			cfg := r.Config.Get()
			if access == web.Private && cfg.MetricsPagePassword != "" {
				return cfg.MetricsUser, cfg.MetricsPagePassword
			}
			return cfg.MetricsUser, cfg.MetricsPassword
		},
		Refuses: r.refusesPeer,
		Log:     r.Logger,
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Collector{Reports: r}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h.web.Page("/metrics", web.Guarded, promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: scrapesAtATime}))
	h.web.Page("/healthz", web.Open, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sendLine(w, http.StatusOK, "ok") }))
	h.web.Page("/readyz", web.Open, http.HandlerFunc(r.readyz))
	r.addPage(h.web)
	return nil
}

// Serve begins to answer.
func (h *httpPort) Serve() {
	for _, ln := range h.listeners {
		h.web.Serve(ln)
	}
}

// Close ends all that Open and Serve have begun.
func (h *httpPort) Close() {
	for _, ln := range h.listeners {
		ln.Close()
	}
	if h.web != nil {
		h.web.Close()
	}
}

// refusesPeer says why a peer may not see keys without a password: it could not read them over the Redis protocol either.
func (r *Reports) refusesPeer(peer netip.Addr) (why string) {
	r.Lock()
	user := r.Access.Users.Default()
	open := user.Open() && user.MayAll()
	r.Unlock()
	cfg := r.Config.Get()
	switch {
	case !open:
		return "not every client may see all keys, so this page needs a password: set metrics-page-password"
	case cfg.ProtectedMode && !peer.IsLoopback():
		return "protected-mode lets clients of other machines see no keys, so they do not see this page: set metrics-page-password"
	}
	return ""
}

// readyz answers whether the server can do all of its work. A gateway that some of its upstream does not serve is ready, or that would be taken
// from all clients, and says so.
func (r *Reports) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := r.unready(); why != "" {
		sendLine(w, http.StatusServiceUnavailable, string(why))
		return
	}
	sendLine(w, http.StatusOK, r.readiness())
}

// sendLine answers with a line of text.
func sendLine(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // a peer that has gone wants nothing
}
