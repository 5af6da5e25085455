package web

import (
	"runtime"
	"sync"
)

// turns has connections of which something has been read go on one after the other, and each time lets those goroutines run first that are ready
// to: what one connection has sent is mostly dealt with before the next one is looked at. Otherwise a crowd of connections is a crowd of
// goroutines that are ready, behind each of which the server's other clients would wait.
type turns struct{ mu sync.Mutex }

// next returns when it is the caller's turn.
func (t *turns) next() {
	t.mu.Lock()
	runtime.Gosched()
	t.mu.Unlock()
}
