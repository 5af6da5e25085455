package exec_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// apart is a client with a front of its own, as another loop is.
type apart struct {
	*netpoll.Inner
	replies chan string
}

func dialApart(t *testing.T, w *servertest.AOFServer) *apart {
	inner := netpoll.NewInner(w.Srv.WithoutBackgroundWork(), "127.0.0.1:3", "127.0.0.1:4")
	t.Cleanup(inner.Close)
	return &apart{Inner: inner, replies: make(chan string, 1)}
}

// call sends a command. What comes back, or what has gone wrong, is in replies.
func (a *apart) call(words ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.WaitLong)
	defer cancel()
	whole := func(b []byte) bool { return bytes.HasSuffix(b, []byte("\r\n")) }
	reply, err := a.Do(ctx, servertest.EncodeCommand(words...), whole)
	if err != nil {
		reply = []byte(err.Error())
	}
	a.replies <- string(reply)
}

// awaitWaiting waits until a client is blocked.
func awaitWaiting(t *testing.T, w *servertest.AOFServer) {
	t.Helper()
	require.Eventually(t, func() bool {
		w.Srv.Lock()
		defer w.Srv.Unlock()
		return w.Srv.Blocking.Clients == 1
	}, servertest.WaitLong, servertest.WaitStep)
}

// lookAround is how long a test gives others to do what they must not do.
const lookAround = 20 * time.Millisecond

// TestServedAfterTheCommit: a client that waits is answered when that is on the disk and no earlier, though its front is not that of the batch
// which serves it; and it is not answered that what could not be written has happened.
func TestServedAfterTheCommit(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, wait []string
		serve        []string // by another client; none: time does
		want         string
	}{
		{"list", nil, []string{"BLPOP", "list", "0"}, []string{"RPUSH", "list", "a"}, "*2\r\n$4\r\nlist\r\n$1\r\na\r\n"},
		{"limit", []string{"RL.FIXED", "key", "1", "1h"}, []string{"RL.FIXED", "key", "1", "1h", "WAIT", "1h"}, []string{"DEL", "key"}, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600000\r\n"},
		{"time", []string{"RL.FIXED", "key", "1", "1s"}, []string{"RL.FIXED", "key", "1", "1s", "WAIT", "1h"}, nil, "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1000\r\n"},
	} {
		for _, broken := range []bool{false, true} {
			name := tt.name
			if broken {
				name += ", refused"
			}
			t.Run(name, func(t *testing.T) {
				disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
				w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
				require.NoError(t, err)
				t.Cleanup(w.Kill)
				if tt.before != nil {
					w.Words(tt.before...)
				}
				waits := dialApart(t, w)
				go waits.call(tt.wait...)
				awaitWaiting(t, w)
				var early atomic.Bool
				disk.SetFault(func(op crashfs.Op) error {
					switch {
					case op.Name == "write" && broken:
						return servertest.ErrPowerOff
					case op.Name == "sync":
						time.Sleep(lookAround)
						early.Store(len(waits.replies) > 0)
					}
					return nil
				})
				if tt.serve != nil {
					w.Words(tt.serve...)
				} else {
					w.Pass(time.Minute)
					w.Worker.Tick()
				}
				got := <-waits.replies
				require.False(t, early.Load(), "answered %q before it was on the disk", got)
				if broken {
					require.Equal(t, netpoll.ErrInnerClosed.Error(), got)
				} else {
					require.Equal(t, tt.want, got)
				}
			})
		}
	}
}
