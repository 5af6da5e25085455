package netpoll

import (
	"sync"

	"golang.org/x/sys/unix"
)

// watching is the descriptors that a loop looks at for others. They are no clients' connections, and belong to whoever has them watched.
type watching struct {
	mu      sync.Mutex
	watched map[int]watched
	runs    bool // the loop takes descriptors
}

// watched is what is called for a descriptor.
type watched struct{ ready, left func() }

// Watch implements Watcher.
func (l *Loop) Watch(fd int, ready, left func()) bool {
	w := &l.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.runs || l.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN) != nil {
		return false
	}
	w.watched[fd] = watched{ready, left}
	return true
}

// Unwatch implements Watcher.
func (l *Loop) Unwatch(fd int) {
	w := &l.watching
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, found := w.watched[fd]; found {
		delete(w.watched, fd)
		_ = l.control(unix.EPOLL_CTL_DEL, fd, 0)
	}
}

// begin has descriptors taken from now on.
func (w *watching) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched, w.runs = map[int]watched{}, true
}

// of returns what is called for a descriptor.
func (w *watching) of(fd int) (watched, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, is := w.watched[fd]
	return found, is
}

// otherEvent sees to a descriptor that is no client's.
func (l *Loop) otherEvent(fd int) {
	if found, is := l.watching.of(fd); is {
		l.awake()
		found.ready()
	} else if ln := l.listenerAt(fd); ln != nil {
		l.accept(ln)
	}
}

// awake notes that this iteration is going to look at connections that are woken, so that nobody need poke the loop.
func (l *Loop) awake() {
	l.handler.Lock()
	defer l.handler.Unlock()
	l.asleep = false
}

// leave tells the owners of all descriptors that they are on their own.
func (l *Loop) leave() {
	w := &l.watching
	w.mu.Lock()
	left := w.watched
	for fd := range left {
		_ = l.control(unix.EPOLL_CTL_DEL, fd, 0)
	}
	w.watched, w.runs = nil, false
	w.mu.Unlock()
	for _, of := range left {
		of.left()
	}
}
