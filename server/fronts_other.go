//go:build !linux

package server

import (
	"net"
	"sync"
	"time"

	"headgate/server/config"
	"headgate/server/netpoll"
)

// fronts on systems without epoll: a pair of goroutines for each connection.
type fronts struct {
	listeners []net.Listener
	conns     sync.WaitGroup
	nudges    chan struct{}
}

func (f *fronts) listen(_ *Server, open []net.Listener, _ *config.Config) error {
	f.listeners, f.nudges = open, make(chan struct{}, 1)
	return nil
}

func (f *fronts) apply(*config.Config) {}

func (f *fronts) count() int { return 0 }

// multiplexing is how the fronts wait for many connections at once.
const multiplexing = "goroutines"

// traffic would return what was read from clients and written to them, which nobody counts here.
func (f *fronts) traffic() netpoll.Traffic { return netpoll.Traffic{} }

// nudge has background work looked after without delay.
func (f *fronts) nudge() {
	select {
	case f.nudges <- struct{}{}:
	default:
	}
}

// Run serves until Stop. Listen comes before it.
func (s *Server) Run() {
	s.logReady()
	s.http.serve()
	defer s.http.close() // at the very end, so that /readyz tells of it
	for _, ln := range s.fronts.listeners {
		go s.acceptFrom(ln)
	}
	w := s.NewWorker()
	for {
		select {
		case <-s.stop:
			s.closeAll()
			s.fronts.conns.Wait()
			s.endKeeper()
			s.endSaving()
			s.closeLog()
			return
		case <-s.fronts.nudges:
		case <-time.After(w.Tick()):
		}
	}
}

// acceptPause is how long a failing accept waits before the next.
const acceptPause = 50 * time.Millisecond

func (s *Server) acceptFrom(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		select {
		case <-s.stop:
			if err == nil {
				conn.Close()
			}
			return
		default:
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		s.fronts.conns.Go(func() { netpoll.ServeConn(s, conn) })
	}
}

func (s *Server) closeAll() {
	for _, ln := range s.fronts.listeners {
		ln.Close()
	}
	s.Lock()
	defer s.Unlock()
	for _, cl := range s.clients.list {
		cl.conn.CloseAfterReply()
	}
}
