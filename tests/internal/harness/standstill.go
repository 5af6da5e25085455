package harness

import (
	"sync/atomic"
	"time"
)

// Standstill tells for how long a processor ran nothing at all, though a thread was to run that comes before others. The host of a virtual
// machine stops all of its processors for tens of milliseconds when they have had their share of a tenth of a second, and does not always say
// so in the account that Stolen reads.
type Standstill struct {
	longest atomic.Int64 // ns, since the last look
}

// note takes down how late a thread ran.
func (s *Standstill) note(late time.Duration) {
	for before := s.longest.Load(); int64(late) > before && !s.longest.CompareAndSwap(before, int64(late)); before = s.longest.Load() {
	}
}

// Look returns the longest standstill since the last look.
func (s *Standstill) Look() time.Duration { return time.Duration(s.longest.Swap(0)) }
