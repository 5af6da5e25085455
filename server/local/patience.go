package local

import (
	"context"
	"time"
)

// Patience is a context that ends so long after something has begun to wait for it. Most requests are answered without a wait, and need no timer. It
// is for one goroutine, which calls End when it is done.
type Patience struct {
	context.Context
	Limit time.Duration // from the first wait on

	timed  context.Context // nil: nothing has waited yet
	cancel context.CancelFunc
}

// Done implements context.Context.
func (p *Patience) Done() <-chan struct{} {
	if p.timed == nil {
		p.timed, p.cancel = context.WithTimeout(p.Context, p.Limit)
	}
	return p.timed.Done()
}

// Err implements context.Context.
func (p *Patience) Err() error {
	if p.timed == nil {
		return p.Context.Err()
	}
	return p.timed.Err()
}

// End frees what a wait has needed.
func (p *Patience) End() {
	if p.cancel != nil {
		p.cancel()
	}
}
