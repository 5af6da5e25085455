// Package front accepts clients: listeners, epoll loops, and connections that only a net.Conn can carry.
//
// crypto/tls wants a net.Conn, so these connections are goroutines (netfront.go, netpoll.ServeConn) beside the epoll
// loops, and hand batches of one to the same executor. Where there is no epoll, all connections are.
//
// TLS handshakes are the only work that strangers can cause. One processor fewer than the machine has may compute them at
// a time (tls.go). A handshake gives up its turn while it waits for its peer, so slow peers delay no one. It has five
// seconds. At most 1,024 are under way, and fewer where descriptors are short: an eighth of them, but at least 16. One more
// closes the oldest, but not before that has had 250 ms; until then no TLS connection is accepted.
//
// Certificate and key files are read every second and compared with those in use. A pair that does not match is ignored
// until it does.
package front
