package servertest

import (
	"math"
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/resp"

	"github.com/stretchr/testify/require"
)

// EffectsClient is a worker's client on a server with a clock that stands still, which notes all effects and writes them nowhere.
type EffectsClient struct {
	WorkerClient
	Now int64 // ns
}

// NewEffectsClient returns a client of a server with the usual configuration.
func NewEffectsClient(t *testing.T) *EffectsClient {
	w := &EffectsClient{Now: 1_700_000_000_123 * 1e6}
	clock := command.NewClock(func() (wall, mono int64) { return w.Now, w.Now })
	s := server.New(config.NewLive(Unsaved()), server.Options{Clock: clock})
	conn := &netpoll.Conn{Remote: "127.0.0.1:1", Local: "127.0.0.1:2"}
	w.WorkerClient = WorkerClient{T: t, Srv: s, Worker: s.NewWorker(), Conn: conn, Ready: []*netpoll.Conn{conn}}
	w.Worker.Opened(conn)
	t.Cleanup(func() {
		w.Worker.Closed(conn)
		s.Keys.Close()
	})
	s.Effects.Enable(math.MaxInt64)
	s.Effects.DB = 0
	return w
}

// EffectsOf runs commands, each given as words between spaces, and returns what they have logged, in the same form.
func (w *EffectsClient) EffectsOf(commands ...string) []string {
	for _, command := range commands {
		w.Run(EncodeCommand(strings.Split(command, " ")...))
	}
	return w.TakeEffects()
}

// TakeEffects parses what was logged and forgets it.
func (w *EffectsClient) TakeEffects() []string {
	e := &w.Srv.Effects
	var list []string
	var in resp.Reader
	var pool resp.Pool
	limits := resp.DefaultLimits()
	for rest := e.Buf; ; {
		if n := copy(in.Space(&pool), rest); n > 0 {
			in.Received(n)
			rest = rest[n:]
		}
		args, ok, err := in.Next(nil, &limits)
		require.NoError(w.T, err)
		if !ok {
			require.Empty(w.T, rest)
			require.Zero(w.T, in.Buffered(), "half a command was logged")
			break
		}
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = string(arg)
		}
		list = append(list, strings.Join(words, " "))
	}
	e.Buf = e.Buf[:0]
	return list
}
