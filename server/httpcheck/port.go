package httpcheck

import (
	"errors"
	"fmt"
	"net"

	"headgate/server/config"
	"headgate/server/front"
)

// Port is what http-port and http-unixsocket open. The zero Port serves nothing.
type Port struct {
	counts    Counts
	server    *Server
	listeners []net.Listener
}

// Counts returns what has become of checks. Without a port they stay 0.
func (p *Port) Counts() *Counts { return &p.counts }

// Open opens the listeners that the configuration names, if any. Nothing is answered before Serve.
func (p *Port) Open(o Options, cfg *config.Config) (err error) {
	if cfg.HTTPPort > 0 {
		if p.listeners, err = front.ListenOn(cfg.HTTPBind, cfg.HTTPPort, "--http-port"); err != nil {
			return fmt.Errorf("http-port: %w", err)
		}
		if len(p.listeners) == 0 {
			return errors.New("http-port: this machine has none of its addresses: correct --http-bind")
		}
	}
	if cfg.HTTPUnixSocket != "" {
		ln, err := front.ListenUnix(cfg.HTTPUnixSocket, cfg.HTTPUnixSocketPerm, "http-unixsocket")
		if err != nil {
			p.Close()
			return err
		}
		p.listeners = append(p.listeners, ln)
	}
	if len(p.listeners) > 0 {
		p.server = New(o, &p.counts)
	}
	return nil
}

// Serve begins to answer.
func (p *Port) Serve() {
	for _, ln := range p.listeners {
		p.server.Serve(ln)
	}
}

// Close ends all that Open and Serve have begun. It may be called again.
func (p *Port) Close() {
	for _, ln := range p.listeners {
		ln.Close()
	}
	if p.server != nil {
		p.server.Close()
	}
	p.listeners, p.server = nil, nil
}
