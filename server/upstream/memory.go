package upstream

import (
	"sync"
	"sync/atomic"
)

// replyMemory is what replies take up that are too large for the buffers that readers keep: while they come, and until their owners have let
// go of them. It counts towards Config.PendingBytes. Beyond that one reader at a time goes on, so that a reply may be larger than the
// limit, and several together are not.
type replyMemory struct {
	bytes  atomic.Int64 // changed with mu held
	mu     sync.Mutex
	beyond any // the reader, or then the call, whose reply goes beyond the limit; nil: none does
}

// reserve counts n bytes more for a holder, and reports false if there is no room for them now.
func (m *replyMemory) reserve(holder any, n, limit int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes.Load()+n > limit {
		if m.beyond != nil && m.beyond != holder {
			return false
		}
		m.beyond = holder
	}
	m.bytes.Add(n)
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
	m.bytes.Add(-n)
	if m.beyond == holder {
		m.beyond = nil
	}
}

// hold counts n bytes more of a reply that is being read, and reports false if there is no room for them now.
func (u *Upstream) hold(r *reader, n int64) bool {
	limit := u.bytesMax.Load()
	found := u.replies.reserve(r, n, limit)
	if !found || u.underWay() > limit {
		u.overloaded.Store(true)
	}
	return found
}

// underWay is how many bytes are, of requests and of large replies.
func (u *Upstream) underWay() int64 { return u.pendingBytes.Load() + u.replies.bytes.Load() }

// Release lets go of a Reply that the call's owner has kept. It may be called whether it has or not, but not before Done has been. Whether
// OnRelieved is due is seen when calls are answered, after OnDrained.
func (u *Upstream) Release(c *Call) {
	if c.held == 0 {
		return
	}
	u.replies.release(c, c.held)
	c.Reply, c.Kept, c.held = nil, false, 0
}
