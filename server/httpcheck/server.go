package httpcheck

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"headgate/server/local"
	"headgate/server/web"
)

// Limits of the port.
const (
	headerTimeout = 5 * time.Second   // for a request's line and headers to arrive
	writeTimeout  = 10 * time.Second  // for an answer to be taken
	idleTimeout   = 120 * time.Second // between two requests: gateways keep connections; idle ones give way to newcomers
	checkTimeout  = 5 * time.Second   // for a check to be answered, by an upstream for instance
	maxHeader     = 16 << 10          // bytes of a request's line and headers: gateways pass on those of their clients
	maxBody       = 64 << 10          // bytes of a body, which is not looked at
	maxChecks     = 256               // that are answered at a time; others wait
)

// MaxConns is how many connections there may be at a time. For one more the one gives way that has waited longest, but keptConns of those that
// have asked before do not give way to strangers.
const (
	MaxConns  = 1024
	keptConns = MaxConns / 2
)

// Options are what the port needs to know. The functions are called for each request, from any goroutine.
type Options struct {
	Dial      func() local.Client                // a new client of the server
	Changes   func() uint64                      // counts the changes of users
	NeedsAuth func() bool                        // whoever gives no password may do nothing
	Refuses   func(peer netip.Addr) (why string) // why a peer may not ask without a password, or ""; a Unix socket's has the zero Addr
	Log       *slog.Logger
}

// Server answers checks. Create it with [New]; it is safe for concurrent use.
type Server struct {
	*web.Port
	options  Options
	counts   *Counts
	sessions local.Sessions
	windows  windows
	checks   chan struct{} // holds one for each that is being answered
}

// Counts are what has become of checks. They may be read at any time.
type Counts struct {
	Allowed, Limited, Failed atomic.Uint64
}

// New returns a server that listens nowhere yet, and counts what it answers.
func New(o Options, counts *Counts) *Server {
	s := &Server{options: o, counts: counts, sessions: local.Sessions{Dial: o.Dial, Changes: o.Changes}, checks: make(chan struct{}, maxChecks)}
	s.Port = web.NewPort(s, web.NewConns(MaxConns, keptConns, web.RequestBytes), web.Limits{Header: headerTimeout, Write: writeTimeout, Idle: idleTimeout, HeaderBytes: maxHeader}, o.Log)
	return s
}

// Close ends at once what is being answered, and returns when nothing is served any more.
func (s *Server) Close() {
	s.Port.Close()
	s.sessions.End()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	runtime.Gosched() // whoever has sent many requests at once does not have them all answered before others are looked at
	w.Header()["Cache-Control"] = noStore
	var err error
	switch {
	case r.URL.Path == "/openapi.json" && r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		err = &problem{Title: "Method not allowed", Status: http.StatusMethodNotAllowed, Detail: "use GET or HEAD"}
	case r.URL.Path == "/openapi.json":
		setType(w, "application/json")
		_, _ = w.Write(openAPI) // a peer that has gone wants nothing
	case r.URL.Path != "/check":
		err = &problem{Title: "Not found", Status: http.StatusNotFound, Detail: "the paths are /check and /openapi.json"}
	case r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		err = &problem{Title: "Method not allowed", Status: http.StatusMethodNotAllowed, Detail: "use GET, HEAD or POST"}
	case r.ContentLength > maxBody:
		w.Header().Set("Connection", "close")
		err = &problem{Title: "Too large", Status: http.StatusRequestEntityTooLarge, Detail: "a check needs no body"}
	default:
		if r.ContentLength != 0 {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		err = s.check(w, r)
	}
	if err != nil {
		s.fail(w, err)
	}
}

// fail answers with what went wrong.
func (s *Server) fail(w http.ResponseWriter, err error) {
	s.counts.Failed.Add(1)
	p := problemOf(err)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="headgate", charset="UTF-8"`)
	}
	p.send(w)
}

// check answers a check, or returns the problem.
func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	who, err := s.authenticate(r)
	if err != nil {
		return err
	}
	c, err := readCheck(r)
	if err != nil {
		return err
	}
	patience := local.Patience{Context: r.Context(), Limit: checkTimeout}
	defer patience.End()
	if !s.begin(&patience) {
		return unavailable("too many checks at a time")
	}
	defer func() { <-s.checks }()
	limited, list, err := s.ask(&patience, who, &c)
	if err != nil {
		return err
	}
	s.answer(w, &c, limited, list)
	return nil
}

// begin waits until there is room for one more check, and reports false if there is none in time.
func (s *Server) begin(ctx context.Context) bool {
	select {
	case s.checks <- struct{}{}:
		return true
	default:
	}
	select {
	case s.checks <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// authenticate returns whose check a request is. Where no password is needed the Authorization header is not looked at: it may be one that a
// gateway passes on for its client.
func (s *Server) authenticate(r *http.Request) (local.Credentials, error) {
	if s.options.NeedsAuth() {
		user, password, given := r.BasicAuth()
		if !given {
			return local.Credentials{}, &problem{Title: "Authentication required", Status: http.StatusUnauthorized, Detail: "a user and a password are required, by basic authentication"}
		}
		return local.Credentials{User: user, Password: password}, nil
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // a Unix socket's peer has none
	if peer.IsValid() && fromOtherSite(r) {
		return local.Credentials{}, &problem{Title: "Not permitted", Status: http.StatusForbidden,
			Detail: "Sec-Fetch-Site is cross-site, so a browser asks for a page of another site; a gateway sets X-Forwarded-For, or leaves its client's Sec-Fetch-Site out"}
	}
	if why := s.options.Refuses(peer.Addr().Unmap()); why != "" {
		return local.Credentials{}, &problem{Title: "Not permitted", Status: http.StatusForbidden, Detail: why}
	}
	return local.Credentials{}, nil
}

// fromOtherSite reports whether a browser asks since a page of somebody else's has it do so, as by an image with this address: such a page has no right
// to charge limits on the machine of whoever looks at it. Gateways pass on what their clients' browsers have sent, Sec-Fetch-Site included, but add
// a header that no page can have a browser send without asking first, which is refused.
func fromOtherSite(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && firstOf(r, gatewayHeaders...) == ""
}

// gatewayHeaders are what gateways say of their clients' requests by.
var gatewayHeaders = []string{"X-Forwarded-For", "X-Forwarded-Method", "X-Forwarded-Host", "X-Forwarded-Uri", "X-Original-Method", "X-Original-URI"}

// ask has the limits asked.
func (s *Server) ask(ctx context.Context, who local.Credentials, c *check) (limited bool, list []local.Verdict, err error) {
	one, err := s.sessions.Take(ctx, who)
	if err != nil {
		return false, nil, problemOf(err)
	}
	unknown := s.windows.unknown(c.pairs)
	limited, list, texts, err := one.Take(ctx, c.pairs, c.peek, unknown)
	if _, refused := local.Refusal(err); err != nil && !refused {
		one.Close()
		return false, nil, problemOf(err)
	}
	s.sessions.Put(one)
	if err != nil {
		return false, nil, problemOf(err)
	}
	for i, name := range unknown {
		s.windows.learn(name, texts[i])
	}
	return limited, list, nil
}

// answer sends what the limits have answered.
func (s *Server) answer(w http.ResponseWriter, c *check, limited bool, list []local.Verdict) {
	s.setFields(w.Header(), c.pairs, list)
	status, counted := http.StatusOK, &s.counts.Allowed
	if limited {
		counted = &s.counts.Limited
		status = http.StatusTooManyRequests
		if retry := longestRetry(list); retry >= 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(retry, 10))
		}
	}
	counted.Add(1)
	if c.json {
		body, _ := json.Marshal(describe(c.pairs, limited, list)) // texts and numbers
		setType(w, "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(body, '\n')) // a peer that has gone wants nothing
		return
	}
	text := textAllowed
	if limited {
		text = textLimited
	}
	w.Header()["Content-Type"] = plainText
	w.WriteHeader(status)
	_, _ = w.Write(text) // the same
}

// setType says what an answer is that may hold what somebody has sent. Nobody is to take it for something else.
func setType(w http.ResponseWriter, mediaType string) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// What is the same in each answer is not made for each. Nobody changes it.
var (
	noStore, plainText       = []string{"no-store"}, []string{"text/plain; charset=utf-8"}
	textAllowed, textLimited = []byte("allowed\n"), []byte("limited\n")
)

// answered is the JSON form of an answer.
type answered struct {
	Limited bool    `json:"limited"`
	Limits  []limit `json:"limits"`
}

// limit is the JSON form of what one limit has answered.
type limit struct {
	Policy     string `json:"policy"`
	Key        string `json:"key"`
	Limited    bool   `json:"limited"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	RetryAfter int64  `json:"retry_after_ms"`
	ResetAfter int64  `json:"reset_after_ms"`
	Lease      string `json:"lease,omitempty"`
}

func describe(pairs []local.Pair, limited bool, list []local.Verdict) answered {
	a := answered{limited, make([]limit, len(list))}
	for i, v := range list {
		a.Limits[i] = limit{pairs[i].Policy, pairs[i].Key, v.Limited, v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter, v.Lease}
	}
	return a
}
