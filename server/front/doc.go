// Package front is where clients come in: listeners, epoll loops, and connections that only a net.Conn can carry.
//
// crypto/tls wants a net.Conn, so these connections are goroutines (netfront.go, netpoll.ServeConn) beside the epoll
// loops, and hand batches of one to the same executor. Where there is no epoll, all connections are.
//
// Handshakes are the one thing that strangers can have the server compute. As many as there are processors but one may
// compute at a time (tls.go): a handshake gives its turn away while it waits for its peer, so slow peers hold nobody
// up. It has five seconds; at most 1,024 are under way, and one more cuts the oldest off, which has had the most time.
// The files are read every second and compared with those in use. A pair that does not fit together is left alone until
// it does.
package front
