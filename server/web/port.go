package web

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits are those of an HTTP port.
type Limits struct {
	Header      time.Duration // for a request to arrive
	Write       time.Duration // for an answer to be made and taken
	Idle        time.Duration // between two requests of a connection
	HeaderBytes int           // of a request's line and headers
}

// Port answers HTTP requests on connections that are counted. Create it with [NewPort]; it is safe for concurrent use.
type Port struct {
	http    http.Server
	conns   *Conns
	serving sync.WaitGroup
}

// NewPort returns a port that listens nowhere yet.
func NewPort(handler http.Handler, conns *Conns, l Limits, log *slog.Logger) *Port {
	return &Port{conns: conns, http: http.Server{
		Handler: handler, ReadHeaderTimeout: l.Header, ReadTimeout: l.Header, WriteTimeout: l.Write, IdleTimeout: l.Idle,
		MaxHeaderBytes: l.HeaderBytes, ConnState: conns.Note,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what goes wrong there is the peer's doing
	}}
}

// Serve answers what comes over a listener, until Close. It returns at once.
func (p *Port) Serve(listener net.Listener) {
	p.serving.Go(func() {
		_ = p.http.Serve(p.conns.Listener(listener)) // always an error: http.ErrServerClosed, after Close
	})
}

// Close ends at once what is being answered, and returns when nothing is served any more.
func (p *Port) Close() {
	_ = p.http.Close() // of listeners and connections, of which nothing more is wanted
	p.serving.Wait()
}
