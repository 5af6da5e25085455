package exec_test

import (
	"testing"
	"time"

	"headgate/server/command"
	"headgate/server/journal"
	"headgate/server/scripting"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestPauseKeepsExpiredKeys: while writes are paused no key goes by itself, and afterwards those that are past their time do.
func TestPauseKeepsExpiredKeys(t *testing.T) {
	for _, mode := range []string{"WRITE", "ALL"} {
		p := servertest.NewPipeServer(t)
		c := p.Session()
		c.Send("SET k 1 PX 20|SET l 1 PX 20|CLIENT PAUSE 100000 " + mode)
		c.Want("+OK +OK +OK")
		keys := func() int {
			p.Srv.Cron()
			p.Srv.Lock()
			defer p.Srv.Unlock()
			p.Srv.CronAt.Expire = 0
			return p.Srv.Keys.DB(0).Len()
		}
		for end := time.Now().Add(60 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
			require.Equal(t, 2, keys(), mode)
		}
		other := p.Session()
		if mode == "ALL" {
			p.Srv.Lock()
			p.Srv.Pause.Until = 1
			p.Srv.Unlock()
		} else {
			other.Send("CLIENT UNPAUSE")
			other.Want("+OK")
		}
		require.Eventually(t, func() bool { return keys() == 0 }, 10*time.Second, time.Millisecond)
	}
}

// TestPauseKeepsExpiredKeysThatAreLookedFor: while clients are paused a key past its time counts as absent and stays where it is, whoever looks
// for it, as redis-server has it. What a transaction writes behind its own CLIENT PAUSE finds it gone.
func TestPauseKeepsExpiredKeysThatAreLookedFor(t *testing.T) {
	servertest.Converse(t, servertest.NewClockClient(t), `
		MSET a 1 b 1 c 1 d 1                                | OK
		PEXPIRE a 20                                        | 1
		PEXPIRE b 20                                        | 1
		PEXPIRE c 20                                        | 1
		PEXPIRE d 20                                        | 1
		CLIENT PAUSE 100000 WRITE                           | OK
		+50 GET a                                           | nil
		EXISTS a b c d                                      | 0
		TTL b                                               | -2
		TYPE c                                              | none
		HLEN a                                              | 0
		OBJECT ENCODING b                                   | nil
		RANDOMKEY                                           | nil
		KEYS *                                              | []
		EVAL_RO return~redis.call('EXISTS','c') 0           | 0
		DBSIZE                                              | 4
		CLIENT UNPAUSE                                      | OK
		GET a                                               | nil
		DBSIZE                                              | 3
		MULTI                                               | OK
		CLIENT PAUSE 100000 WRITE                           | QUEUED
		SET b new NX                                        | QUEUED
		GET b                                               | QUEUED
		GET c                                               | QUEUED
		DBSIZE                                              | QUEUED
		EXEC                                                | [OK OK new nil 3]
		CLIENT UNPAUSE                                      | OK
		DEL b                                               | 1
		DEL c                                               | 0
		DBSIZE                                              | 1
	`)
}

// TestPauseForgetsClientsThatGo: a client that has gone does not wait for the end of a pause any more, nor one that monitors for commands.
func TestPauseForgetsClientsThatGo(t *testing.T) {
	p := servertest.NewPipeServer(t)
	admin := p.Session()
	admin.Send("CLIENT PAUSE 100000 WRITE")
	admin.Want("+OK")
	var held, monitors []*servertest.Session
	for range 5 {
		h, m := p.Session(), p.Session()
		h.Send("INCR n")
		m.Send("MONITOR")
		m.Want("+OK")
		held, monitors = append(held, h), append(monitors, m)
	}
	waiting := func() (int, int) {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		for i, cl := range p.Srv.Pause.Held {
			require.Equal(t, i, cl.HeldAt)
		}
		for i, cl := range p.Srv.Monitors {
			require.Equal(t, i, cl.MonitorsAt)
		}
		return len(p.Srv.Pause.Held), len(p.Srv.Monitors)
	}
	eventually := func(held, monitors int) {
		t.Helper()
		require.Eventually(t, func() bool { h, m := waiting(); return h == held && m == monitors }, 10*time.Second, time.Millisecond)
	}
	eventually(5, 5)
	for i, left := range []int{4, 3, 2} {
		require.NoError(t, held[2*i].Conn.Close())
		require.NoError(t, monitors[2*i].Conn.Close())
		eventually(left, left)
	}
	admin.Send("CLIENT UNPAUSE")
	admin.Want("+OK")
	for _, i := range []int{1, 3} {
		servertest.ReadLines(t, held[i].R, 1)
	}
	eventually(0, 2)
}

// TestBackgroundWorkRestsWhileKeysMayNotChange: what waits until keys may change again is not looked at without end meanwhile.
func TestBackgroundWorkRestsWhileKeysMayNotChange(t *testing.T) {
	for name, freeze := range map[string]func(w *servertest.WorkerClient){
		"paused":  func(w *servertest.WorkerClient) { w.Run([]byte("CLIENT PAUSE 60000\r\n")) },
		"loading": func(w *servertest.WorkerClient) { w.Srv.Gate.Refuse(command.GateLoading, journal.ErrLoading) },
		"busy":    func(w *servertest.WorkerClient) { w.Srv.Gate.Refuse(command.GateBusy, scripting.ErrBusyEval) },
	} {
		t.Run(name, func(t *testing.T) {
			w := servertest.NewWorkerClient(t)
			w.Srv.Cron()
			freeze(w)
			w.Srv.CronAt.Expire = 0 // it is long due
			require.Positive(t, w.Srv.Cron())
		})
	}
}
