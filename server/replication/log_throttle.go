package replication

import (
	"strings"
	"time"
)

const (
	repeatLog = time.Minute      // between two lines in the log that say the same
	maxTold   = 16               // kinds of errors that are remembered
	steady    = 10 * time.Second // a link that has lasted so long ends another story: its end is told, whatever was told before it
)

// logThrottle remembers which errors the log has lately been told of, so that a primary which is away for hours does not fill it.
type logThrottle map[string]time.Time

// again reports whether an error has to be told now: its kind has not been for a while.
func (t logThrottle) again(err error, now time.Time) bool {
	kind := kindOf(err)
	if at, known := t[kind]; known && now.Sub(at) < repeatLog {
		return false
	}
	if len(t) >= maxTold {
		clear(t)
	}
	t[kind] = now
	return true
}

// kindOf is an error without its numbers: with each attempt the local port is another one, and so are the bytes that have come.
func kindOf(err error) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}
