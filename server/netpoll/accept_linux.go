package netpoll

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	acceptsPerEvent = 128                  // connections accepted before the others get their turn, and
	acceptTime      = 1 * time.Millisecond // for how long: each takes some 50 µs
	queuedAccepts   = 1000                 // connections taken that wait at a listener which closes
)

// accepting is what a loop needs to take connections on.
type accepting struct {
	group         []*Loop // those among which new connections are shared out; empty: this one alone
	nextInGroup   int
	acceptPause   time.Duration // the last one, while accepting fails
	acceptAgain   time.Time     // when listeners paused for lack of descriptors are tried again; zero = not paused
	onAcceptError func(error)
}

// accept takes new connections. Without descriptors it stops listening for a while, so that a full table costs nothing.
func (l *Loop) accept(ln *listener) {
	begin := time.Now()
	for range acceptsPerEvent {
		fd, peer, errno := accept(ln.fd)
		switch errno {
		case 0:
			l.acceptPause = 0
			l.place(arrival{fd, peer, ln})
		case unix.EAGAIN, unix.EINVAL: // none any more, or Unlisten was called
			return
		case unix.EINTR, unix.ECONNABORTED:
		default:
			l.pauseAccepting(errno)
			return
		}
		if time.Since(begin) > acceptTime {
			return
		}
	}
}

// place gives a new connection to the loop whose turn it is.
func (l *Loop) place(a arrival) {
	if len(l.group) == 0 {
		l.add(a)
		return
	}
	to := l.group[l.nextInGroup]
	l.nextInGroup = (l.nextInGroup + 1) % len(l.group)
	if to == l {
		l.add(a)
		return
	}
	l.handler.Lock()
	defer l.handler.Unlock()
	if to.ended {
		closeSocket(a.fd)
		return
	}
	to.arrivals = append(to.arrivals, a)
	to.poke()
}

// add takes a new connection on.
func (l *Loop) add(a arrival) {
	fd, peer, ln := a.fd, a.peer, a.from
	if _, tcp := ln.Listener.(*net.TCPListener); tcp {
		setOption(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		if probes := KeepAlive(time.Duration(l.keepAlive.Load())); probes.Enable {
			setOption(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
			setOption(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(probes.Idle/time.Second))
			setOption(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(probes.Interval/time.Second))
			setOption(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, probes.Count)
		}
	}
	for fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*Conn, fd+1-len(l.conns)+64)...)
	}
	c := &Conn{FD: fd, front: l, Remote: address(peer, ln), Local: address(localAddress(fd), ln), turns: turns{slow: true}}
	_, c.Unix = ln.Listener.(*net.UnixListener)
	if err := l.control(unix.EPOLL_CTL_ADD, fd, readEvents); err != nil {
		closeSocket(fd)
		return
	}
	c.Out.SetBuffers(l.pool.Buffers)
	l.conns[fd] = c
	l.open++
	l.worker.Opened(c)
	l.flush = append(l.flush, c)
}

func (l *Loop) pauseAccepting(err error) {
	if l.acceptPause == 0 {
		l.onAcceptError(err)
	}
	l.acceptPause = AcceptPause(l.acceptPause)
	l.acceptAgain = time.Now().Add(l.acceptPause)
	l.watchListeners(0)
}

// watchListeners sets which events of the listeners the loop hears of.
func (l *Loop) watchListeners(events uint32) {
	l.handler.Lock()
	defer l.handler.Unlock()
	for _, ln := range l.listeners {
		l.control(unix.EPOLL_CTL_MOD, ln.fd, events)
	}
}

func (l *Loop) resumeAccepting() {
	if time.Now().Before(l.acceptAgain) {
		return
	}
	l.acceptAgain = time.Time{}
	l.watchListeners(unix.EPOLLIN)
}

func address(sa unix.Sockaddr, ln *listener) string {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return (&net.TCPAddr{IP: a.Addr[:], Port: a.Port}).String()
	case *unix.SockaddrInet6:
		return (&net.TCPAddr{IP: a.Addr[:], Port: a.Port}).String()
	default:
		return ln.Addr().String() + ":0"
	}
}
