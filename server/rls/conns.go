package rls

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

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
	return known{accepted}, nil
}

// known is a connection whose address tells requests, which are shown nothing else of it, which one it is.
type known struct{ net.Conn }

// RemoteAddr implements net.Conn.
func (k known) RemoteAddr() net.Addr { return peerAddr{k.Conn.RemoteAddr(), k.Conn} }

type peerAddr struct {
	net.Addr
	conn net.Conn
}

// begin notes that a request is being answered, and returns what ends it.
func (c conns) begin(from *peer.Peer) (end func()) {
	addr, ok := from.Addr.(peerAddr)
	if !ok {
		return func() {}
	}
	c.Begin(addr.conn)
	return func() { c.End(addr.conn) }
}

// arrivals bounds the calls that have begun to arrive and are not answered, of all connections: each is a goroutine, and what has come of it.
type arrivals struct{ requests, others atomic.Int64 }

// admit is asked when the headers of a call have come. It gives requests a time in which to arrive and to be answered; the other calls, of health and
// reflection, may watch for as long as they like.
func (a *arrivals) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	count, most := &a.others, int64(maxOthers)
	cancel := context.CancelFunc(func() {})
	if call.FullMethodName == rls.RateLimitService_ShouldRateLimit_FullMethodName {
		count, most = &a.requests, maxRequests
		ctx, cancel = context.WithTimeout(ctx, requestTimeout)
	}
	if count.Add(1) > most {
		count.Add(-1)
		cancel()
		return nil, status.Error(codes.ResourceExhausted, "too many requests at a time")
	}
	forget := context.AfterFunc(ctx, func() {
		cancel()
		count.Add(-1)
	})
	return context.WithValue(ctx, arrivalKey{}, &arrival{forget, count}), nil
}

// arrival is a call that is counted until its context ends, or it is answered.
type arrival struct {
	forget func() bool // has the context's end do nothing, unless it has come
	count  *atomic.Int64
}

type arrivalKey struct{}

// answered ends the count of a call that has come whole and is answered, which costs less than waiting for the end of its context: that takes a goroutine.
func answered(ctx context.Context) {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok && a.forget() {
		a.count.Add(-1)
	}
}

// requestTimeout is how long a request may take to arrive and to be answered, with an upstream for instance.
const requestTimeout = 5 * time.Second
