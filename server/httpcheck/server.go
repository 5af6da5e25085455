package httpcheck

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

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
	maxChecks     = 256               // that are answered at a time
)

// MaxConns is how many connections there may be at a time. For one more the one gives way that has waited longest.
const MaxConns = 1024

// Options are what the port needs to know. The functions are called for each request, from any goroutine.
type Options struct {
	Dial      func() Client                      // a new client of the server
	NeedsAuth func() bool                        // whoever gives no password may do nothing
	Refuses   func(peer netip.Addr) (why string) // why a peer may not ask without a password, or ""; a Unix socket's has the zero Addr
	Log       *slog.Logger
}

// Server answers checks. Create it with [New]; it is safe for concurrent use.
type Server struct {
	options  Options
	sessions sessions
	windows  windows
	http     http.Server
	conns    *web.Conns
	checks   chan struct{} // holds one for each that is being answered
	serving  sync.WaitGroup
}

// New returns a server that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{options: o, sessions: sessions{dial: o.Dial}, conns: web.NewConns(MaxConns), checks: make(chan struct{}, maxChecks)}
	s.http = http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ConnState: s.conns.Note,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // what goes wrong there is the peer's doing
	}
	return s
}

// Serve answers what comes over a listener, until Close. It returns at once.
func (s *Server) Serve(listener net.Listener) {
	s.serving.Go(func() {
		_ = s.http.Serve(s.conns.Listener(listener)) // always an error: http.ErrServerClosed, after Close
	})
}

// Close ends at once what is being answered, and returns when nothing is served any more.
func (s *Server) Close() {
	_ = s.http.Close() // of listeners and connections, of which nothing more is wanted
	s.serving.Wait()
	s.sessions.end()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	var err error
	switch {
	case r.URL.Path == "/openapi.json" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // a peer that has gone wants nothing
	case r.URL.Path != "/check":
		err = &problem{Title: "Not found", Status: http.StatusNotFound, Detail: "there is /check and /openapi.json"}
	case r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		err = &problem{Title: "Method not allowed", Status: http.StatusMethodNotAllowed, Detail: "use GET or POST"}
	case r.ContentLength > maxBody:
		w.Header().Set("Connection", "close")
		err = &problem{Title: "Too large", Status: http.StatusRequestEntityTooLarge, Detail: "a check needs no body"}
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		err = s.check(w, r)
	}
	if err != nil {
		s.fail(w, err)
	}
}

// fail answers with what went wrong.
func (s *Server) fail(w http.ResponseWriter, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = unavailable(err.Error())
	}
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
	select {
	case s.checks <- struct{}{}:
		defer func() { <-s.checks }()
	default:
		return unavailable("too many checks at a time")
	}
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	limited, list, err := s.ask(ctx, who, &c)
	if err != nil {
		return err
	}
	s.answer(w, &c, limited, list)
	return nil
}

// authenticate returns whose check a request is. Where no password is needed the Authorization header is not looked at: it may be one that a
// gateway passes on for its client.
func (s *Server) authenticate(r *http.Request) (credentials, error) {
	if s.options.NeedsAuth() {
		user, password, given := r.BasicAuth()
		if !given {
			return credentials{}, &problem{Title: "Authentication required", Status: http.StatusUnauthorized, Detail: "a user and a password are asked for, by basic authentication"}
		}
		return credentials{user, password}, nil
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // a Unix socket's peer has none
	if why := s.options.Refuses(peer.Addr().Unmap()); why != "" {
		return credentials{}, &problem{Title: "Not permitted", Status: http.StatusForbidden, Detail: why}
	}
	return credentials{}, nil
}

// ask has the limits asked.
func (s *Server) ask(ctx context.Context, who credentials, c *check) (limited bool, list []verdict, err error) {
	one, err := s.sessions.take(ctx, who)
	if err != nil {
		return false, nil, err
	}
	unknown := s.windows.unknown(c.pairs)
	var request []byte
	for _, name := range unknown {
		request = appendBulk(appendBulk(appendBulk(appendHeader(request, '*', 3), "RL.POLICY"), "GET"), name)
	}
	answers, err := one.ask(ctx, c.appendCommand(request), len(unknown)+1)
	if err != nil {
		one.Close()
		return false, nil, err
	}
	for i, name := range unknown {
		s.windows.learn(name, answers[i])
	}
	taken := answers[len(unknown)]
	if taken.kind == '-' {
		err = problemOf(string(taken.text))
	} else if limited, list, err = verdicts(taken, len(c.pairs)); err != nil {
		err = unavailable(err.Error())
	}
	s.sessions.put(one)
	return limited, list, err
}

// answer sends what the limits have answered.
func (s *Server) answer(w http.ResponseWriter, c *check, limited bool, list []verdict) {
	s.setFields(w.Header(), c.pairs, list)
	status := http.StatusOK
	if limited {
		status = http.StatusTooManyRequests
		if retry := longestRetry(list); retry >= 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(retry, 10))
		}
	}
	if c.json {
		body, _ := json.Marshal(describe(c.pairs, limited, list)) // texts and numbers
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(body, '\n')) // a peer that has gone wants nothing
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	text := "allowed\n"
	if limited {
		text = "limited\n"
	}
	_, _ = w.Write([]byte(text)) // the same
}

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
}

func describe(pairs []pair, limited bool, list []verdict) answered {
	a := answered{limited, make([]limit, len(list))}
	for i, v := range list {
		a.Limits[i] = limit{pairs[i].policy, pairs[i].key, v.limited, v.limit, v.remaining, v.retryAfter, v.resetAfter}
	}
	return a
}
