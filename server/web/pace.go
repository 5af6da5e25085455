package web

import (
	"context"
	"sync"
	"time"
)

const (
	// answerEvery is the time between the beginnings of two answers where more is asked for: a probe or a scrape does not notice it, and who asks
	// without end leaves most of a processor to those that the server is for.
	answerEvery = time.Millisecond
	// paceMax is for how long a request may wait for that. A longer queue is one of peers that have gone.
	paceMax = MaxConns * answerEvery
)

// pace has requests answered one after another, in their order, with time between them. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	next    time.Time     // when the next answer may begin
	waiting int           // requests
	hurried chan struct{} // closed: those that wait go on at once
}

// wait returns when a request's turn has come, when its peer has gone, or after hurry.
func (p *pace) wait(ctx context.Context) {
	turn, hurried := p.enter(time.Now())
	if turn <= 0 {
		return
	}
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-hurried:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// enter returns for how long a request that comes now has to wait, unless it is to hurry. One that has to is counted as waiting.
func (p *pace) enter(now time.Time) (turn time.Duration, hurried <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turn = max(p.next.Sub(now), 0); turn > paceMax {
		p.release()
		turn = 0
	}
	p.next = now.Add(turn + answerEvery)
	if turn > 0 {
		p.waiting++
		if p.hurried == nil {
			p.hurried = make(chan struct{})
		}
	}
	return turn, p.hurried
}

// hurry has all requests go on that wait, since somebody else needs their connections.
func (p *pace) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting > 0 {
		p.release()
	}
}

func (p *pace) release() {
	if p.hurried != nil {
		close(p.hurried)
	}
	p.hurried, p.next = nil, time.Time{}
}
