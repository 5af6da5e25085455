package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// A driver connects a worker's clients to a server and returns what runs them until the round is over, and what closes them.
type driver func(w *worker, t *target) (run func() error, closeAll func(), err error)

// dialAll opens the connections of a worker.
func dialAll(w *worker, t *target) ([]net.Conn, error) {
	conns := make([]net.Conn, 0, len(w.clients))
	for range w.clients {
		conn, err := t.dial()
		if err != nil {
			closeConns(conns)
			return nil, err
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

func closeConns(conns []net.Conn) {
	for _, conn := range conns {
		conn.Close()
	}
}

// driveConn serves the one connection of its worker through a net.Conn.
func driveConn(w *worker, t *target) (func() error, func(), error) {
	conns, err := dialAll(w, t)
	if err != nil {
		return nil, nil, err
	}
	run := func() error {
		err := w.serve(conns[0], w.clients[0])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%s: %w", t.addr, errSilent)
		}
		return err
	}
	return run, func() { closeConns(conns) }, nil
}

// serve sends pipelines and reads their replies until the round is over.
func (w *worker) serve(conn net.Conn, c *client) error {
	in := make([]byte, readBytes)
	for {
		now := w.now()
		since := now
		if w.schedule.open {
			since = w.schedule.next()
			for since > now && !w.over(now) {
				time.Sleep(min(time.Duration(since-now), stopCheck))
				now = w.now()
			}
		}
		if w.over(now) {
			return nil
		}
		w.schedule.taken++
		w.begun = true
		w.filler.tick()
		c.begin(w.template, w.filler, since)
		conn.SetDeadline(time.Now().Add(replyTimeout))
		if _, err := conn.Write(c.out); err != nil {
			n, _ := conn.Read(in)
			return closedBy(in[:n], err)
		}
		for c.awaited > 0 {
			n, err := conn.Read(in)
			if err != nil {
				return fmt.Errorf("the server has closed a connection: %w", err)
			}
			ops, err := c.received(in[:n], w.now(), w.latency)
			if err != nil {
				return err
			}
			w.progress.Add(uint64(ops))
		}
	}
}

// closedBy is the error for a connection to which nothing could be written: said, if that is an error with which the server has closed it, or why.
func closedBy(said []byte, why error) error {
	if line, _, whole := bytes.Cut(said, []byte("\r\n")); whole && len(line) > 0 && line[0] == '-' {
		return fmt.Errorf("the server has closed a connection: %w", serverError(line[1:]))
	}
	return fmt.Errorf("the server has closed a connection: %w", why)
}

// stopCheck is how long a goroutine sleeps at most before it looks whether it should end.
const stopCheck = 100 * time.Millisecond
