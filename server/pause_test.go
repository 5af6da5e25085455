package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPauseKeepsExpiredKeys: while writes are paused no key goes by itself, and afterwards those that are past their time do.
func TestPauseKeepsExpiredKeys(t *testing.T) {
	for _, mode := range []string{"WRITE", "ALL"} {
		p := newPipeServer(t)
		c := p.session()
		c.send("SET k 1 PX 20|SET l 1 PX 20|CLIENT PAUSE 100000 " + mode)
		c.want("+OK +OK +OK")
		keys := func() int {
			p.srv.cron()
			p.srv.Lock()
			defer p.srv.Unlock()
			p.srv.cronAt.expire = 0
			return p.srv.keys.DB(0).Len()
		}
		for end := time.Now().Add(60 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			require.Equal(t, 2, keys(), mode)
		}
		other := p.session()
		if mode == "ALL" {
			p.srv.Lock()
			p.srv.pause.until = 1
			p.srv.Unlock()
		} else {
			other.send("CLIENT UNPAUSE")
			other.want("+OK")
		}
		require.Eventually(t, func() bool { return keys() == 0 }, 10*time.Second, time.Millisecond)
	}
}

// TestPauseForgetsClientsThatGo: a client that has gone does not wait for the end of a pause any more, nor one that monitors for commands.
func TestPauseForgetsClientsThatGo(t *testing.T) {
	p := newPipeServer(t)
	admin := p.session()
	admin.send("CLIENT PAUSE 100000 WRITE")
	admin.want("+OK")
	var held, monitors []*session
	for range 5 {
		h, m := p.session(), p.session()
		h.send("INCR n")
		m.send("MONITOR")
		m.want("+OK")
		held, monitors = append(held, h), append(monitors, m)
	}
	waiting := func() (int, int) {
		p.srv.Lock()
		defer p.srv.Unlock()
		for i, cl := range p.srv.pause.held {
			require.Equal(t, i, cl.heldAt)
		}
		for i, cl := range p.srv.monitors {
			require.Equal(t, i, cl.monitorsAt)
		}
		return len(p.srv.pause.held), len(p.srv.monitors)
	}
	eventually := func(held, monitors int) {
		t.Helper()
		require.Eventually(t, func() bool { h, m := waiting(); return h == held && m == monitors }, 10*time.Second, time.Millisecond)
	}
	eventually(5, 5)
	for i, left := range []int{4, 3, 2} {
		require.NoError(t, held[2*i].conn.Close())
		require.NoError(t, monitors[2*i].conn.Close())
		eventually(left, left)
	}
	admin.send("CLIENT UNPAUSE")
	admin.want("+OK")
	for _, i := range []int{1, 3} {
		readLines(t, held[i].r, 1)
	}
	eventually(0, 2)
}

// TestBackgroundWorkRestsWhileKeysMayNotChange: what waits until keys may change again is not looked at without end meanwhile.
func TestBackgroundWorkRestsWhileKeysMayNotChange(t *testing.T) {
	for name, freeze := range map[string]func(w *workerClient){
		"paused":  func(w *workerClient) { w.run([]byte("CLIENT PAUSE 60000\r\n")) },
		"loading": func(w *workerClient) { w.srv.gate.refuse(gateLoading, errLoading) },
		"busy":    func(w *workerClient) { w.srv.gate.refuse(gateBusy, errBusyEval) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkerClient(t)
			w.srv.cron()
			freeze(w)
			w.srv.cronAt.expire = 0 // it is long due
			require.Positive(t, w.srv.cron())
		})
	}
}
