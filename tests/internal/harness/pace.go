package harness

import (
	"sync"
	"time"
)

// Pace tells how fast the processors compute. Beside other machines of their host those of a virtual machine run at half their speed for minutes,
// and no account has that: Stolen is the time in which they do not run at all.
type Pace struct {
	mu    sync.Mutex
	best  time.Duration // the least processor time that the same work has taken
	sums  map[int]time.Duration
	count map[int]int // of what each processor's sum is of, since the last look
}

const (
	paceEvery = 200 * time.Millisecond // the time between two looks at a processor
	paceSteps = 50_000                 // of computing, each of which needs the one before it: a tenth of a millisecond
)

func newPace() *Pace { return &Pace{sums: map[int]time.Duration{}, count: map[int]int{}} }

// note takes down what the work has taken on a processor.
func (p *Pace) note(processor int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.best == 0 || took < p.best {
		p.best = took
	}
	p.sums[processor] += took
	p.count[processor]++
}

// Look returns how fast the slowest processor has been since the last look, in percent of the fastest that was ever seen; 100 if nothing was.
func (p *Pace) Look() (percent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	percent = 100
	for processor, sum := range p.sums {
		percent = min(percent, int(100*p.best*time.Duration(p.count[processor])/sum))
	}
	clear(p.sums)
	clear(p.count)
	return percent
}
