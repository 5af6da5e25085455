package replication

import "time"

// Told returns a func that reports whether the log has to be told of an error at a time.
func Told() func(err error, now time.Time) bool { return told{}.again }

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
