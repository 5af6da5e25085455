package netpoll

import (
	"net"
	"sync"
	"time"

	"headgate/server/resp"
)

// Handler is what a front serves. It is shared by all fronts.
type Handler interface {
	sync.Locker // the executor's lock: guards Conn.Out and the marks set on a Conn

	// NewWorker returns the state with which one front runs batches.
	NewWorker() Worker
	// Buffers returns where connections get their memory from; nil is the Go heap.
	Buffers() *resp.Buffers
}

// Worker runs the commands of the connections of one front. Its methods are called from one goroutine at a time and
// without the Handler's lock, which they take themselves.
type Worker interface {
	// Opened is called once for a new connection, before any of its bytes are read.
	Opened(c *Conn)
	// Batch is called with the connections that have new bytes, that were resumed, or that were postponed; each of them stands there
	// once. Their complete commands are to be executed before it returns, but for those of connections that it postpones. It
	// returns how many connections it came to: those that follow are postponed ones, for which it had no time left.
	Batch(ready []*Conn) (served int)
	// Closed is called once when a connection is gone.
	Closed(c *Conn)
	// Tick does background work that is due, and returns how long until it wants to be called again.
	Tick() time.Duration
}

// Watcher looks at descriptors for others, on a goroutine that serves clients. It is safe for concurrent use.
type Watcher interface {
	// Watch has ready called in each iteration in which something can be read from a descriptor that does not block, or its peer has gone: on
	// the front's goroutine and without the Handler's lock. left is called, and ready no more, when the front ends. It reports false, and
	// calls nothing, if the front does not run.
	Watch(fd int, ready, left func()) bool
	// Unwatch ends that, before the descriptor is closed. A call of ready or left may just have begun.
	Unwatch(fd int)
}

// Traffic counts what a front has moved between sockets and buffers.
type Traffic struct {
	BytesIn, BytesOut uint64 // from sockets and to them
	Reads, Writes     uint64 // system calls, or calls of a net.Conn, that moved something
}

// Add counts what another front has moved as well.
func (t *Traffic) Add(other Traffic) {
	t.BytesIn += other.BytesIn
	t.BytesOut += other.BytesOut
	t.Reads += other.Reads
	t.Writes += other.Writes
}

const (
	readMax    = 64 << 10             // bytes read from a connection in one iteration, or by one Read
	stallPause = 5 * time.Millisecond // how long a connection whose peer does not take its replies rests before more commands are run
	stallBytes = 128 << 10            // bytes of replies that such a connection may add between two rests
)

const (
	acceptPauseMin  = 10 * time.Millisecond
	acceptPauseMax  = time.Second
	keepAliveProbes = 3 // unanswered probes after which a peer counts as gone
)

// AcceptPause returns how long a front waits after an accept that has failed, as one without descriptors does, until it tries again: twice
// as long as it has waited before that one, up to a second. last is zero if the accept before it has worked.
func AcceptPause(last time.Duration) time.Duration {
	return min(max(2*last, acceptPauseMin), acceptPauseMax)
}

// KeepAlive returns how the kernel probes a peer that has been silent for idle, in whole seconds; not at all for zero.
func KeepAlive(idle time.Duration) net.KeepAliveConfig {
	idle = idle.Truncate(time.Second)
	return net.KeepAliveConfig{
		Enable: idle > 0, Idle: idle, Count: keepAliveProbes,
		Interval: max(idle/keepAliveProbes, time.Second).Truncate(time.Second),
	}
}
