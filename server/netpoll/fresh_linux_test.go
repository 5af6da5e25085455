package netpoll

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"headgate/server/resp"
)

// stepHandler is a turnRecorder whose Workers have no time for anybody while busy, and no command may run while holding.
type stepHandler struct {
	*turnRecorder
	busy, holding bool
	last          *Conn
}

type stepWorker struct {
	turnWorker
	of *stepHandler
}

func (h *stepHandler) NewWorker() Worker { return stepWorker{turnWorker{h.turnRecorder}, h} }

func (w stepWorker) Opened(c *Conn) { w.of.last = c }

func (w stepWorker) Batch(ready []*Conn) (served int) {
	switch {
	case w.of.holding:
		for _, c := range ready {
			c.Rest(resp.BufferSize)
		}
		return len(ready)
	case w.of.busy:
		return 0
	}
	return w.turnWorker.Batch(ready)
}

// steps does iterations of a loop one by one.
type steps struct {
	*Loop
	*stepHandler
	events [eventsPerYield]unix.EpollEvent
}

// step does an iteration, which has no time left to read from new connections if it is late.
func (s *steps) step(late bool) {
	n := s.wait(s.events[:], 0)
	s.begin()
	if late {
		s.meeting.begin = time.Now().Add(-time.Hour)
	}
	s.gather(s.events[:n])
	s.batch(s.worker)
	s.answer()
}

// until does iterations until something has come about.
func (s *steps) until(t *testing.T, late bool, what func() bool) {
	for range 1000 {
		if s.step(late); what() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.Fail(t, "it has not come about")
}

// TestCommandOfANewConnectionIsNotForgotten: a new connection whose command an iteration has no time for, nor for reading what comes next, keeps
// the command, even if what comes next is that its peer sends no more.
func TestCommandOfANewConnectionIsNotForgotten(t *testing.T) {
	for name, holding := range map[string]bool{"passed over": false, "resumed and passed over": true} {
		t.Run(name, func(t *testing.T) {
			h := &stepHandler{turnRecorder: newTurnRecorder()}
			loop, err := NewLoop(h, nil)
			require.NoError(t, err)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, loop.Listen(ln, 0))
			defer loop.shutdown()
			s := &steps{Loop: loop, stepHandler: h}

			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			s.until(t, false, func() bool { return h.last != nil })
			h.busy, h.holding = true, holding
			_, err = conn.Write([]byte("PING\r\n"))
			require.NoError(t, err)
			s.until(t, false, func() bool { return h.last.In.Buffered() > 0 })
			if h.holding = false; holding {
				h.Lock()
				h.last.Resume()
				h.Unlock()
			}
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			s.until(t, true, func() bool { return h.last.unread })
			h.busy = false
			s.until(t, false, func() bool { return h.last.dead.Load() })
			require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, "+PONG\r\n", string(got))
		})
	}
}
