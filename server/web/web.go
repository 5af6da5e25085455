// Package web is the HTTP port: it answers GET and HEAD, within limits, with the contents of its pages.
//
// It runs beside the Redis protocol and must never endanger it. So clients have little time, requests are small, there are
// few connections at a time, and nothing can be changed through it.
package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Limits of the HTTP port.
const (
	headerTimeout = 5 * time.Second  // for a request's line and headers to arrive
	writeTimeout  = 30 * time.Second // for an answer to be made and taken
	idleTimeout   = 10 * time.Second // between two requests of a connection
	maxHeader     = 8 << 10          // bytes of a request's line and headers
	maxAnswers    = 64               // that are made at a time, but for those of Open pages
	probeRoom     = 16               // connections beyond these, on which only Open pages are answered,
	waitRoom      = 192              // and beyond those, for requests that wait for their turn
)

// MaxConns is how many connections there may be at a time. For one more the one gives way that has waited longest.
const MaxConns = maxAnswers + probeRoom + waitRoom

// Access says what a page asks of those who want to see it.
type Access uint8

// The kinds of pages.
const (
	Open    Access = iota // for everybody: it tells of nothing but the server's health
	Guarded               // asks for the password, if there is one
	Private               // shows keys: asks for the password, and without one is only for peers that Options.Refuses does not refuse
)

// Options are what the port needs to know. The functions are called for each request, from any goroutine.
type Options struct {
	Credentials func(Access) (user, password string) // of Guarded or Private pages; an empty password means that none is asked for
	Refuses     func(peer netip.Addr) (why string)   // why a peer may not see a Private page without a password, or ""
	Log         *slog.Logger
}

// Server answers HTTP requests for pages. Create it with [New]; it is safe for concurrent use once its pages are there.
type Server struct {
	*Port
	options Options
	pages   map[string]page
	pace    pace
	answers chan struct{} // holds one for each that is being made
}

type page struct {
	access  Access
	handler http.Handler
}

// New returns a server without pages.
func New(o Options) *Server {
	s := &Server{options: o, pages: map[string]page{}, answers: make(chan struct{}, maxAnswers)}
	s.Port = NewPort(s, NewConns(MaxConns, 0, RequestBytes), Limits{Header: headerTimeout, Write: writeTimeout, Idle: idleTimeout, HeaderBytes: maxHeader}, o.Log)
	s.conns.crowded = s.pace.hurry
	return s
}

// Page has a path answered. All are to be there before Serve.
func (s *Server) Page(path string, access Access, handler http.Handler) {
	s.pages[path] = page{access, handler}
}

// headers go with every answer. A page may put a policy of its own in the place of the strictest one.
var headers = [][2]string{
	{"Cache-Control", "no-store"},
	{"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.pace.wait(r.Context())
	for _, h := range headers {
		w.Header().Set(h[0], h[1])
	}
	page, found := s.pages[r.URL.Path]
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD are answered here")
	case r.ContentLength != 0:
		refuse(w, http.StatusRequestEntityTooLarge, "requests have no body here")
	case !found:
		refuse(w, http.StatusNotFound, "there is no such page")
	case page.access == Open:
		// A connection that pipelines and does not read would be stuck in the midst of an answer. The first always has room.
		w.Header().Set("Connection", "close")
		page.handler.ServeHTTP(w, r)
	case s.admits(w, r, page.access):
		s.answer(w, r, page.handler)
	}
}

// answer has a page made that may take long, unless too many are.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	select {
	case s.answers <- struct{}{}:
		defer func() { <-s.answers }()
		handler.ServeHTTP(w, r)
	default:
		refuse(w, http.StatusServiceUnavailable, "too many requests at a time")
	}
}

// refuse answers with a line of text. What the client has not sent yet is not waited for.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Connection", "close")
	http.Error(w, text, status)
}

// wanted says what a page asks for.
var wanted = map[Access]string{
	Guarded: "metrics-user and metrics-password are asked for",
	Private: "metrics-user and metrics-page-password are asked for, or metrics-password if only that is set",
}

// admits reports whether a request may see a page that is not Open, or refuses it.
func (s *Server) admits(w http.ResponseWriter, r *http.Request, access Access) bool {
	user, password := s.options.Credentials(access)
	if password != "" {
		givenUser, givenPassword, _ := r.BasicAuth()
		if same(givenUser, user)&same(givenPassword, password) == 1 {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="headgate", charset="UTF-8"`)
		refuse(w, http.StatusUnauthorized, wanted[access])
		return false
	}
	if access == Guarded {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		refuse(w, http.StatusForbidden, "the peer has no address")
		return false
	}
	if why := s.options.Refuses(peer.Addr().Unmap()); why != "" {
		refuse(w, http.StatusForbidden, why)
		return false
	}
	if !plainHost(r.Host) {
		refuse(w, http.StatusForbidden, "without metrics-page-password this page is only shown under an IP address or a name without dots")
		return false
	}
	return true
}

// same is 1 if two texts are equal. Its time does not tell where they differ, nor how long they are.
func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

// plainHost reports whether a Host header names an IP address or a machine of this network. Somebody else's web page can have its own
// name point to this machine, and then a browser lets it read what is here; but that name has dots.
func plainHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return !strings.Contains(strings.TrimSuffix(strings.ToLower(name), ".localhost"), ".")
}
