package upstream

import (
	"sync"
	"sync/atomic"
)

// replyMemory is what replies take up that are too large for the buffers that readers keep: while they come, and until their owners have let
// go of them. It counts towards Config.PendingBytes. One reply at a time may go beyond that, so that a reply may be larger than the limit, and
// several together are not. That one counts for nothing: nobody else waits for a reply that comes slowly.
type replyMemory struct {
	counted atomic.Int64 // bytes, changed with mu held
	extra   atomic.Int64 // bytes of the reply that goes beyond the limit, likewise
	waiting atomic.Int64 // readers that wait for room
	mu      sync.Mutex
	beyond  any // the reader, or then the call, whose reply that is; nil: none does
}

// bytes is how many there are.
func (m *replyMemory) bytes() int64 { return m.counted.Load() + m.extra.Load() }

// reserve counts n bytes more for a holder that has some already, and reports false if there is no room for them now.
func (m *replyMemory) reserve(holder any, has, n, limit int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.beyond == holder:
		m.extra.Add(n)
	case m.counted.Load()+n <= limit:
		m.counted.Add(n)
	case m.beyond != nil:
		return false
	default:
		m.beyond = holder
		m.counted.Add(-has)
		m.extra.Add(has + n)
	}
	return true
}

// pass has what was counted for one holder be another's.
func (m *replyMemory) pass(from, to any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.beyond == from {
		m.beyond = to
	}
}

// release counts n bytes of a holder no longer, which are all that it has.
func (m *replyMemory) release(holder any, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.beyond == holder {
		m.beyond = nil
		m.extra.Add(-n)
		return
	}
	m.counted.Add(-n)
}

// hold counts n bytes more of a reply that is being read, and reports false if there is no room for them now.
func (u *Upstream) hold(r *reader, n int64) bool {
	limit := u.bytesMax.Load()
	found := u.replies.reserve(r, r.held, n, limit)
	if !found || u.crowding() > limit {
		u.overloaded.Store(true)
	}
	return found
}

// underWay is how many bytes are, of requests and of large replies.
func (u *Upstream) underWay() int64 { return u.pendingBytes.Load() + u.replies.bytes() }

// crowding is how many of these count towards Config.PendingBytes.
func (u *Upstream) crowding() int64 { return u.pendingBytes.Load() + u.replies.counted.Load() }

// Release lets go of a Reply that the call's owner has kept. It may be called whether it has or not, but not before Done has been. Whether
// OnRelieved is due is seen when calls are answered, after OnDrained.
func (u *Upstream) Release(c *Call) {
	if c.held == 0 {
		return
	}
	u.replies.release(c, c.held)
	c.Reply, c.Kept, c.held = nil, false, 0
}
