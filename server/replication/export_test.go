package replication

import (
	"errors"
	"time"
)

// Told returns a func that reports whether the log has to be told of an error at a time.
func Told() func(err error, now time.Time) bool { return logThrottle{}.again }

// Attempt follows a primary by one link, and returns why that has ended.
func (r *Replica) Attempt(primary Address) error {
	r.Lock()
	if r.follow == nil || r.follow.Address != primary {
		r.begin(primary, r.Config.Get())
	}
	f := r.follow
	r.Unlock()
	l := &link{replica: r, follow: f}
	err := l.run()
	r.update(f, func() { r.failed(err, 0) })
	return err
}

// FinishUnderLock gives up a snapshot for replicas as the journal does: with the executor's lock held.
func (p *Primary) FinishUnderLock() error {
	p.Lock()
	defer p.Unlock()
	t := &transfer{primary: p}
	err := t.Finish(errors.New("it is given up"))
	t.done(err)
	return err
}

// Behind returns what the stream has behind an offset, which has to be something.
func (p *Primary) Behind(offset int64) string {
	p.Lock()
	defer p.Unlock()
	reader, ok := p.backlog.Read(offset, func() {})
	if !ok {
		return ""
	}
	defer reader.Close()
	text, _ := reader.Next()
	return string(text)
}
