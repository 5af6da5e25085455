package rls

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"headgate/server/web"
)

// conns are the connections of the port: the one gives way to a newcomer that is least useful.
type conns struct{ *web.Conns }

// listener counts what a listener accepts.
func (c conns) listener(ln net.Listener) net.Listener { return &listener{c.Listener(ln)} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return known{accepted, new(atomic.Int64)}, nil
}

// known is a connection whose address tells requests, which are shown nothing else of it, which one it is.
type known struct {
	net.Conn
	takenBack *atomic.Int64
}

// RemoteAddr implements net.Conn.
func (k known) RemoteAddr() net.Addr {
	addr := k.Conn.RemoteAddr()
	from := peerAddr{Addr: addr, conn: k.Conn, takenBack: k.takenBack}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		from.ip = tcp.AddrPort().Addr().Unmap()
	}
	return from
}

type peerAddr struct {
	net.Addr
	ip   netip.Addr // of a TCP connection
	conn net.Conn

	takenBack *atomic.Int64 // requests of the connection since one was answered
}

// MaxTakenBack is how many requests a connection may take back one after another. A gateway does that with those that take it too long, but some are
// answered. Whoever takes back all of them (CVE-2023-44487) has hung up, perhaps, behind megabytes more of them.
const MaxTakenBack = 200

// over notes that a request is over: it has been answered, or taken back before that, which closes the connection if all have been.
func (a peerAddr) over(ctx context.Context) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		if a.takenBack.Add(1) > MaxTakenBack {
			_ = a.conn.Close()
		}
	case a.takenBack.Load() > 0:
		a.takenBack.Store(0)
	}
}

// begin notes that a request is being answered. end is to follow.
func (c conns) begin(from peerAddr) { c.Begin(from.conn) }

// end notes that the request has been answered.
func (c conns) end(from peerAddr) { c.End(from.conn) }

// arrivals bounds the calls that have begun to arrive and are not answered, of all connections: each is a goroutine, and what has come of it.
type arrivals struct{ requests, checks, watches atomic.Int64 }

// errCrowded is what a call is answered with for which there is no room.
var errCrowded = status.Error(codes.ResourceExhausted, "too many requests at a time")

// admit is asked when the headers of a call have come. It gives requests and health checks a time in which to arrive and to be answered. Those who
// watch health, and reflection, may go on for as long as they like, and so are counted apart. The calls of health and reflection are counted until
// their contexts end.
func (a *arrivals) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	switch call.FullMethodName {
	case rls.RateLimitService_ShouldRateLimit_FullMethodName:
		return limited(ctx), nil
	case healthpb.Health_Check_FullMethodName, healthpb.Health_List_FullMethodName:
		return limited(ctx), count(ctx, &a.checks, maxChecks)
	}
	return ctx, count(ctx, &a.watches, maxWatches)
}

// limited gives a call the time that it may take.
func limited(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	_ = cancel // the call's own context ends this one when the call ends
	return ctx
}

// count counts a call until its context ends, or says that there is no room for it.
func count(ctx context.Context, calls *atomic.Int64, most int64) error {
	if calls.Add(1) > most {
		calls.Add(-1)
		return errCrowded
	}
	context.AfterFunc(ctx, func() { calls.Add(-1) })
	return nil
}

// beginRequest counts a request before its message is waited for, and reports whether there is room for it. endRequest is to follow if there is.
func (a *arrivals) beginRequest() bool {
	if a.requests.Add(1) > maxRequests {
		a.requests.Add(-1)
		return false
	}
	return true
}

// endRequest ends the count of a request that is answered, or did not come.
func (a *arrivals) endRequest() { a.requests.Add(-1) }

// requestTimeout is how long a request may take to arrive and to be answered, with an upstream for instance.
const requestTimeout = 5 * time.Second
