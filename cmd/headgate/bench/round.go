package bench

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// round is one run of a load against one server.
type round struct {
	*Options
	load     Load
	template *template
	duration time.Duration
	stream   uint64 // of random numbers, different in each round
	began    time.Time
	end      int64 // ns after began
	stop     *atomic.Bool
	broken   atomic.Bool    // a worker has failed, which ends the others
	progress *atomic.Uint64 // operations so far
}

// measured is what a round has shown.
type measured struct {
	tally
	latency *hdrhistogram.Histogram
	elapsed time.Duration
	cpu     time.Duration // of the server, or 0 if it does not tell
	own     time.Duration // processor time of the loader
	threads int           // that it could use at once
	late    uint64        // operations that the schedule wanted and that were never sent
}

func (m *measured) perSecond() float64 { return float64(m.ops) / max(m.elapsed.Seconds(), 1e-9) }

// cpuPerOp is in microseconds.
func (m *measured) cpuPerOp() float64 {
	return float64(m.cpu.Nanoseconds()) / 1e3 / max(float64(m.ops), 1)
}

// busy is the share of their time for which the loader's threads have had something to do.
func (m *measured) busy() float64 {
	return m.own.Seconds() / max(m.elapsed.Seconds(), 1e-9) / float64(max(m.threads, 1))
}

func (m *measured) add(other *measured) {
	m.tally.add(&other.tally)
	m.latency.Merge(other.latency)
	m.elapsed += other.elapsed
	m.cpu += other.cpu
	m.own += other.own
	m.threads = max(m.threads, other.threads)
	m.late += other.late
}

// worker runs a share of a round's connections in a goroutine of its own.
type worker struct {
	*round
	filler   *filler
	schedule schedule
	latency  *hdrhistogram.Histogram
	clients  []*client
	begun    bool // something was sent
}

var errSilent = errors.New("the server has not answered for 10 s")

func (r *round) now() int64 { return int64(time.Since(r.began)) }

// ended reports whether the round ends before its time.
func (r *round) ended() bool { return r.stop.Load() || r.broken.Load() }

// over reports whether the worker has nothing more to send. What the schedule wanted before the end is sent even after it, for a
// while: if a stall took it out of the account, the latencies would be too good.
func (w *worker) over(now int64) bool {
	if w.ended() {
		return true
	}
	if w.schedule.open {
		return w.schedule.next() >= w.end || now >= w.end+int64(drainTime)
	}
	return now >= w.end && w.begun // however short the time and busy the machine, each connection has its turn
}

// newWorkers deals the clients out to n workers.
func (r *round) newWorkers(n int) []*worker {
	workers := make([]*worker, n)
	for i := range workers {
		w := &worker{round: r, filler: newFiller(r.Seed, r.stream<<32|uint64(i), r.Keys), latency: newHistogram()}
		if r.Rate > 0 {
			gap := float64(time.Second) * float64(r.Pipeline) / r.Rate
			w.schedule = schedule{open: true, first: int64(gap * float64(i)), gap: gap * float64(n)}
		}
		workers[i] = w
	}
	for i := range r.Clients {
		w := workers[i%n]
		w.clients = append(w.clients, newClient(r))
	}
	return workers
}

// run carries the round out against the server, with n workers. An error of one worker ends all of them.
func (r *round) run(t *target, drive driver, n int) (*measured, error) {
	workers := r.newWorkers(n)
	runs := make([]func() error, n)
	for i, w := range workers {
		run, closeAll, err := drive(w, t)
		if err != nil {
			return nil, err
		}
		defer closeAll()
		runs[i] = run
	}
	before, _ := t.cpu()
	own := processorTime()
	r.began, r.end = time.Now(), int64(r.duration)
	var running sync.WaitGroup
	errs := make([]error, n)
	for i, run := range runs {
		running.Go(func() {
			if errs[i] = run(); errs[i] != nil {
				r.broken.Store(true)
			}
		})
	}
	running.Wait()
	ended := r.now()
	m := &measured{latency: newHistogram(), elapsed: time.Duration(ended), own: processorTime() - own, threads: min(n, runtime.GOMAXPROCS(0))}
	if after, ok := t.cpu(); ok {
		m.cpu = after - before
	}
	for _, w := range workers {
		m.latency.Merge(w.latency)
		m.late += w.schedule.overdue(min(r.end, ended)) * uint64(r.Pipeline)
		for _, c := range w.clients {
			m.tally.add(&c.count)
		}
	}
	return m, errors.Join(errs...)
}
