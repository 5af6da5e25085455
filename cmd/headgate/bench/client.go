package bench

import (
	"errors"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// client is one connection without its socket: what it sends, and what it makes of the replies.
type client struct {
	replies
	out      []byte // a pipeline's bytes
	sent     int    // of out
	blocked  bool   // the socket takes no more for now
	awaited  int    // operations that have not been answered
	since    int64  // when they were meant to begin
	pipeline int
}

func newClient(r *round) *client {
	c := &client{pipeline: r.Pipeline, replies: replies{verdict: r.load.verdict, perOp: r.template.replies}}
	for range r.Pipeline {
		c.out = append(c.out, r.template.bytes...)
	}
	return c
}

// begin prepares the next pipeline, which was meant to begin at since.
func (c *client) begin(t *template, f *filler, since int64) {
	for at := 0; at < len(c.out); at += len(t.bytes) {
		f.fill(t, c.out[at:at+len(t.bytes)])
	}
	c.sent, c.awaited, c.since = 0, c.pipeline, since
}

// received takes bytes that came at now, notes the latency of the operations that they end, and says how many these are.
func (c *client) received(b []byte, now int64, h *hdrhistogram.Histogram) (int, error) {
	ops, err := c.read(b)
	if err != nil {
		return 0, err
	}
	if c.awaited -= ops; c.awaited < 0 {
		return 0, errors.New("the server sent replies that were not asked for")
	}
	if ops > 0 {
		if err := h.RecordValues(min(max(now-c.since, 1), longestLatency), int64(ops)); err != nil {
			return 0, err
		}
	}
	return ops, nil
}

// newHistogram returns one for latencies in nanoseconds.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestLatency, latencyDigits)
}

// schedule says when the pipelines of one loop are meant to begin. In a closed loop that is as soon as a connection is free.
type schedule struct {
	open  bool
	first int64   // ns
	gap   float64 // ns
	taken int64
}

// next is when the first pipeline that was not taken is due.
func (s *schedule) next() int64 { return s.first + int64(float64(s.taken)*s.gap) }

// overdue is how many pipelines should have begun before end and have not.
func (s *schedule) overdue(end int64) uint64 {
	if !s.open || s.next() >= end {
		return 0
	}
	return uint64(float64(end-s.first)/s.gap) - uint64(s.taken)
}
