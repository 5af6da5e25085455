package command

import (
	"time"
)

// Clock is the one clock of expiry and limiters. It starts at the wall's time and follows the monotonic clock from then on;
// it never goes back. When the wall is ahead it jumps forward with it, since keys are meant to expire at a date. When it is
// itself ahead of the wall, because the wall was set back, it runs at half speed until the wall has caught up, so that a wall
// clock set wrong and mended delays nobody by more than twice their own period.
//
// It is not safe for concurrent use: the executor's lock guards it.
type Clock struct {
	source func() (wall, mono int64) // both in ns
	Now    int64                     // ns since the Unix epoch
	wall   int64                     // what the wall said last
	mono   int64
}

// NewClock returns a clock over source, which gives the wall's time in nanoseconds since the Unix epoch and a monotonic time
// in nanoseconds; nil is the system's.
func NewClock(source func() (wall, mono int64)) *Clock {
	if source == nil {
		source = systemClock()
	}
	c := &Clock{source: source}
	c.wall, c.mono = source()
	c.Now = c.wall
	return c
}

// Read advances the clock and returns its time in nanoseconds since the Unix epoch.
func (c *Clock) Read() int64 {
	wall, mono := c.source()
	elapsed := mono - c.mono
	c.wall, c.mono = wall, mono
	if wall >= c.Now+elapsed {
		c.Now = wall
	} else {
		c.Now = max(c.Now+elapsed/2, wall)
	}
	return c.Now
}

// AtLeast has the clock go on from a time, in nanoseconds since the Unix epoch, if it has not reached that yet, and reports
// whether it had not.
func (c *Clock) AtLeast(ns int64) bool {
	behind := c.Read() < ns
	c.Now = max(c.Now, ns)
	return behind
}

// Mono is the monotonic time in nanoseconds when the clock was read last. It is what durations are measured by: it neither jumps when the
// clock does nor slows down with it.
func (c *Clock) Mono() int64 { return c.mono }

// Ahead reports whether the clock was ahead of the wall when it was read last.
func (c *Clock) Ahead() bool { return c.Now > c.wall }

func systemClock() func() (wall, mono int64) {
	start := time.Now()
	return func() (int64, int64) {
		t := time.Now()
		return t.UnixNano(), int64(t.Sub(start))
	}
}
