package web

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// turnPause is after how long it is looked again whether fewer wait for their turn.
const turnPause = time.Millisecond

// turns has connections of which something has been read go on one after the other, and each time lets those goroutines run first that are ready
// to: what one connection has sent is mostly dealt with before the next one is looked at. Otherwise a crowd of connections is a crowd of
// goroutines that are ready, behind each of which the server's other clients would wait.
type turns struct {
	mu      sync.Mutex
	waiting atomic.Int64 // connections
}

// next returns when it is the caller's turn.
func (t *turns) next() {
	t.waiting.Add(1)
	t.mu.Lock()
	runtime.Gosched()
	t.mu.Unlock()
	t.waiting.Add(-1)
}

// below returns when fewer than most connections wait for their turn. Those that have been closed wait as well: beside peers that connect and hang up
// faster than turns are taken there would be ever more of them.
func (t *turns) below(most int) {
	for t.waiting.Load() >= int64(most) {
		time.Sleep(turnPause)
	}
}
