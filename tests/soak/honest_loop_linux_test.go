package soak

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"headgate/tests/internal/flood"
	"headgate/tests/internal/harness"
)

const (
	honestReads = 64 << 10              // bytes that are read from a connection at a time
	honestRests = 10 * time.Millisecond // at most, until somebody looks whether a call is due
)

// honestLoop serves all clients that limit, on one goroutine that waits for all of them at once. They share a processor with the server, of which a goroutine
// for each took more than the server did: on a machine that runs at half its speed they were late for their own sake.
type honestLoop struct {
	h       *honest
	epoll   int
	clients []*honestClient
	byFD    map[int]*honestClient
	buffer  []byte
	reader  *bufio.Reader
}

func newHonestLoop(h *honest) (*honestLoop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &honestLoop{h: h, epoll: fd, byFD: map[int]*honestClient{}, buffer: make([]byte, honestReads), reader: bufio.NewReaderSize(nil, honestReads)}, nil
}

// add connects a client.
func (l *honestLoop) add(c *honestClient, addr string) error {
	conn, err := net.DialTimeout("tcp", addr, honestWait)
	if err != nil {
		return err
	}
	defer conn.Close() // the loop has a descriptor of its own
	if _, err := conn.Write(harness.Command("AUTH", flood.Password)); err != nil {
		return err
	}
	if v, err := harness.Parse(bufio.NewReader(conn)); err != nil {
		return err
	} else if v.Text != "OK" {
		return fmt.Errorf("AUTH was answered %q", v.Text)
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	defer file.Close()
	c.conn.fd, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a descriptor: %w", err)
	}
	l.clients, l.byFD[c.conn.fd] = append(l.clients, c), c
	if err := unix.SetNonblock(c.conn.fd, true); err != nil {
		return err
	}
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, c.conn.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.conn.fd)})
}

// run sends what is due and takes what is answered, until the context ends.
func (l *honestLoop) run(ctx context.Context) {
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(l.epoll, events, l.sendDue())
		if err != nil && err != unix.EINTR {
			l.h.failed("waiting for answers", err)
			break
		}
		for i := range max(n, 0) {
			if c := l.byFD[int(events[i].Fd)]; c != nil {
				l.end(c, l.receive(c))
			}
		}
	}
	for fd := range l.byFD {
		_ = unix.Close(fd)
	}
	_ = unix.Close(l.epoll)
}

// sendDue sends all calls that are due, and returns in how many ms the next one is.
func (l *honestLoop) sendDue() (rest int) {
	now := time.Now()
	first := now.Add(honestRests)
	for _, c := range l.clients {
		switch {
		case c.conn.fd < 0:
		case !c.asked.IsZero():
			if now.Sub(c.asked) > honestWait {
				l.end(c, fmt.Errorf("no answer within %v", honestWait))
			}
		case !c.due.After(now):
			l.end(c, c.next())
		case c.due.Before(first):
			first = c.due
		}
	}
	return int(max(0, time.Until(first)+time.Millisecond-1) / time.Millisecond)
}

// receive takes what a client was sent, and with it the answer if that is whole.
func (l *honestLoop) receive(c *honestClient) error {
	n, err := unix.Read(c.conn.fd, l.buffer)
	switch {
	case err == unix.EAGAIN, err == unix.EINTR:
		return nil
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case n == 0:
		return errors.New("the server has ended the connection")
	case c.asked.IsZero():
		return fmt.Errorf("%q was not asked for", l.buffer[:n])
	}
	c.conn.in = append(c.conn.in, l.buffer[:n]...)
	l.reader.Reset(bytes.NewReader(c.conn.in))
	replies := make([]harness.Value, 0, c.waits)
	for range c.waits {
		v, err := harness.Parse(l.reader)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // the rest is still to come
		} else if err != nil {
			return err
		}
		replies = append(replies, v)
	}
	if rest, _ := io.ReadAll(l.reader); len(rest) > 0 {
		return fmt.Errorf("%q was not asked for", rest)
	}
	c.conn.in = c.conn.in[:0]
	return c.answer(replies)
}

// end ends a client with whom something went wrong.
func (l *honestLoop) end(c *honestClient, err error) {
	if err == nil || c.conn.fd < 0 {
		return
	}
	l.h.failed(c.kind.name, err)
	delete(l.byFD, c.conn.fd)
	_ = unix.Close(c.conn.fd)
	c.conn.fd = -1
}

// honestConn is a client's connection.
type honestConn struct {
	fd int    // -1: it has ended
	in []byte // of an answer that is not whole yet
}

// send sends a request, for which there is room since what came before it was answered.
func (c *honestConn) send(request []byte) error {
	n, err := unix.Write(c.fd, request)
	if err == nil && n < len(request) {
		err = io.ErrShortWrite
	}
	return err
}
