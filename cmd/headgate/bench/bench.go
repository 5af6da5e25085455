package bench

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// Bench is a run of headgate bench.
type Bench struct {
	*Options
	// Program is the path of headgate, which --vs redis starts.
	Program string
	// Progress gets a line that is written over again and again; nil = nobody looks.
	Progress io.Writer
	// Stop ends the run early when it becomes true: what was measured until then is reported.
	Stop *atomic.Bool
}

// side is what one server has shown.
type side struct {
	*target
	rounds []*measured
	total  *measured
}

// Run measures, and writes the table to out and the files that were asked for. It returns an error when nothing could be measured or
// the server answered with errors.
func (b *Bench) Run(out io.Writer) error {
	for _, path := range []string{b.JSON, b.SVG} {
		if err := tryFile(path); err != nil {
			return err
		}
	}
	network, first, err := b.Address()
	if err != nil {
		return err
	}
	if network == "unix" {
		first = "unix:" + first
	}
	addrs := []string{first, b.Versus}
	if b.Versus == VersusRedis {
		servers, err := startPair(b.Program)
		if err != nil {
			return err
		}
		defer servers.stop()
		addrs = servers.addrs
	}
	var sides []*side
	for _, addr := range addrs {
		if addr == "" {
			continue
		}
		t, err := newTarget(b.Options, addr)
		if err != nil {
			return err
		}
		defer t.close()
		if err := t.prepare(b.Load); err != nil {
			return err
		}
		sides = append(sides, &side{target: t, total: &measured{latency: newHistogram()}})
	}
	if err := b.measure(sides); err != nil { // figures until a connection broke are those of another load
		return errors.Join(err, answeredErrors(sides))
	}
	if sides[0].total.ops == 0 {
		return errors.New("no operation was answered")
	}
	r := newReport(b, sides)
	failed := r.writeTable(out)
	if b.JSON != "" {
		failed = errors.Join(failed, r.writeJSON(b.JSON))
	}
	if b.SVG != "" {
		failed = errors.Join(failed, r.writeSVG(b.SVG))
	}
	return errors.Join(failed, answeredErrors(sides))
}

// answeredErrors is the error for errors that servers have answered with, or nil.
func answeredErrors(sides []*side) (err error) {
	for _, s := range sides {
		if n := s.total.errors; n > 0 {
			err = errors.Join(err, fmt.Errorf("the server at %s answered %d times with an error, first: %s", s.addr, n, s.total.firstError))
		}
	}
	return err
}

// measure runs all rounds. In every second one the servers' order is swapped, so that neither profits from its place.
func (b *Bench) measure(sides []*side) error {
	for i := range b.Rounds {
		for j := range sides {
			s := sides[j]
			if i%2 == 1 {
				s = sides[len(sides)-1-j]
			}
			if b.Stop.Load() {
				return nil
			}
			m, err := b.round(s, i)
			if m != nil {
				s.rounds = append(s.rounds, m)
				s.total.add(m)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// round runs one round against one server.
func (b *Bench) round(s *side, i int) (*measured, error) {
	var progress atomic.Uint64
	r := &round{
		Options: b.Options, load: s.load, template: newTemplate(s.load.Commands), stream: uint64(i),
		duration: b.Duration / time.Duration(b.Rounds), stop: b.Stop, progress: &progress,
	}
	done := b.show(s, i, &progress)
	defer done()
	drive, workers := chooseDriver(b.Options)
	return r.run(s.target, drive, workers)
}

// progressEvery is how often the progress line is written anew.
const progressEvery = 250 * time.Millisecond

// show writes how far a round is until the function that it returns is called.
func (b *Bench) show(s *side, i int, progress *atomic.Uint64) (done func()) {
	if b.Progress == nil {
		return func() {}
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		last, lastAt := uint64(0), time.Now()
		for {
			select {
			case <-ended:
				fmt.Fprint(b.Progress, "\r\x1b[K")
				return
			case at := <-tick.C:
				n := progress.Load()
				fmt.Fprintf(b.Progress, "\r%s, round %d of %d: %s operations, %s a second\x1b[K", s.name, i+1, b.Rounds,
					grouped(float64(n)), grouped(float64(n-last)/at.Sub(lastAt).Seconds()))
				last, lastAt = n, at
			}
		}
	}()
	return func() {
		close(ended)
		<-gone
	}
}
