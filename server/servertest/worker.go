package servertest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/netpoll"
	"headgate/server/report"
	"headgate/server/resp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// WorkerClient drives a worker as a front does, without a socket.
type WorkerClient struct {
	T      testing.TB
	Srv    *server.Server
	Worker netpoll.Worker
	Conn   *netpoll.Conn
	Ready  []*netpoll.Conn
	Pool   resp.Pool
}

// Unsaved is the usual configuration without save points, so that nothing is written to the working directory.
func Unsaved() *config.Config {
	cfg := config.Default()
	cfg.Save = nil
	return cfg
}

func NewWorkerClient(t testing.TB) *WorkerClient {
	return NewWorkerClientOf(t, server.New(config.NewLive(Unsaved()), server.Options{}))
}

// NewWorkerClientOf is newWorkerClient for a server that is not the usual one.
func NewWorkerClientOf(t testing.TB, s *server.Server) *WorkerClient {
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
	w := &WorkerClient{T: t, Srv: s, Worker: s.NewWorker(), Conn: conn, Ready: []*netpoll.Conn{conn}}
	w.Worker.Opened(conn)
	t.Cleanup(func() {
		w.Worker.Closed(conn)
		s.Keys.Close()
	})
	return w
}

// Run has the worker execute the input's commands and returns the replies, which are valid until the next call.
func (w *WorkerClient) Run(input []byte) []byte {
	w.Conn.Out.Reset()
	n := copy(w.Conn.In.Space(&w.Pool), input)
	if n < len(input) {
		w.T.Fatalf("room for %d of %d bytes", n, len(input)) // what package require does would count as allocations
	}
	w.Conn.In.Received(n)
	for more := true; more; more = w.Conn.TakePostponed() {
		w.Worker.Batch(w.Ready)
	}
	w.Conn.In.Compact(&w.Pool)
	return w.Conn.Out.Bytes()
}

// EncodeCommand returns a command as clients send it.
func EncodeCommand(words ...string) []byte {
	b := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
	for _, word := range words {
		b = append(b, "$"+strconv.Itoa(len(word))+"\r\n"+word+"\r\n"...)
	}
	return b
}

// Sha1Hex returns the name by which EVALSHA knows a script.
func Sha1Hex(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

// Turn gives the worker input and has it run one batch: what a connection gets of one iteration.
func (w *WorkerClient) Turn(input []byte) (replies []byte, more bool) {
	w.Conn.Out.Reset()
	for len(input) > 0 {
		n := copy(w.Conn.In.Space(&w.Pool), input)
		w.Conn.In.Received(n)
		input = input[n:]
	}
	w.Worker.Batch(w.Ready)
	return w.Conn.Out.Bytes(), w.Conn.TakePostponed()
}

// DrainTurns runs batches until nothing is left over, and returns how many there were, the longest replies of one and all of them.
func (w *WorkerClient) DrainTurns(input []byte) (turns, longest int, all []byte) {
	replies, more := w.Turn(input)
	for {
		turns, longest, all = turns+1, max(longest, len(replies)), append(all, replies...)
		if !more {
			return turns, longest, all
		}
		replies, more = w.Turn(nil)
	}
}

// CarriedConn is a connection that comes after others, with input.
func (w *WorkerClient) CarriedConn(input []byte) *netpoll.Conn {
	conn := netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", true)
	w.Worker.Opened(conn)
	w.T.Cleanup(func() { w.Worker.Closed(conn) })
	conn.In.Received(copy(conn.In.Space(&w.Pool), input))
	return conn
}

// Ask runs one command and returns its reply.
func (w *WorkerClient) Ask(words ...string) string { return string(w.Run(EncodeCommand(words...))) }

// Uses is the logarithmic counter of a key's uses.
func (w *ClockClient) Uses(name string) int {
	e, ok := w.Srv.Keys.DB(0).Peek(w.Srv.Keys.Key([]byte(name)))
	require.True(w.T, ok)
	return e.Uses()
}

// Scrape returns the values of all series, by their names and labels as Prometheus writes them.
func Scrape(t *testing.T, s *server.Server) map[string]float64 {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&report.Collector{Reports: s.Reports})
	families, err := registry.Gather()
	require.NoError(t, err)
	series := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			if h := m.GetHistogram(); h != nil {
				series[name+"_count"], series[name+"_sum"] = float64(h.GetSampleCount()), h.GetSampleSum()
				for _, b := range h.GetBucket() {
					series[fmt.Sprintf("%s_%g", name, b.GetUpperBound())] = float64(b.GetCumulativeCount())
				}
				continue
			}
			series[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return series
}
