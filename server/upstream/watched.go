package upstream

import (
	"sync/atomic"
	"syscall"
)

// Watcher says when something can be read from a descriptor, on a goroutine of its owner's that has other things to do as well.
type Watcher interface {
	// Watch has ready called again and again while something can be read from a descriptor, or its peer has gone; or left once, and ready no
	// more, when the watcher ends. It reports false, and calls nothing, if the watcher does not run.
	Watch(fd int, ready, left func()) bool
	// Unwatch ends that. A call of ready or left may just have begun.
	Unwatch(fd int)
}

// watchers are those that connections are shared out among.
type watchers struct {
	list atomic.Pointer[[]Watcher]
	turn atomic.Uint32
}

// ReadOn has replies read, as far as possible, on a watcher's goroutine. There, a client's commands and their answers are dealt with one after
// the other, and no goroutine has to be woken for either. It may be called after Start, for one watcher after the other, by one goroutine;
// connections that are there already move to a watcher after their next read.
func (u *Upstream) ReadOn(w Watcher) {
	var all []Watcher
	if have := u.watchers.list.Load(); have != nil {
		all = *have
	}
	all = append(all[:len(all):len(all)], w)
	u.watchers.list.Store(&all)
}

// next returns the watcher whose turn it is, nil if there are none.
func (w *watchers) next() Watcher {
	list := w.list.Load()
	if list == nil {
		return nil
	}
	return (*list)[int(w.turn.Add(1))%len(*list)]
}

// readsMax is how many reads are made of one connection when it may be that its watcher has been held up.
const readsMax = 64

// readerState is who reads.
type readerState uint8

const (
	readAlone   readerState = iota // a goroutine of the connection's
	readWatched                    // whoever holds mu, when the watcher says so
	readEnded                      // nobody any more
)

// moveToWatcher has a watcher call ready from now on, and reports whether it does: then the goroutine that has read so far ends. Replies that are large
// may have to wait for memory, and are read by a goroutine.
func (r *reader) moveToWatcher() bool {
	w := r.link.node.up.watchers.next()
	if w == nil || r.large() || r.socket == nil && !r.adopt() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watcher, r.state = w, readWatched
	if !w.Watch(r.socket.fd, r.ready, r.left) {
		r.state = readAlone
		return false
	}
	return true
}

// adopt has the link use its connection's socket itself, and reports false if that cannot be done, or not now.
func (r *reader) adopt() bool {
	l := r.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sending || l.broken != nil {
		return false
	}
	s := adopt(l.conn)
	if s == nil {
		return false
	}
	r.socket = s
	l.conn, l.direct, r.conn, r.in = s, directTo(s), s, s
	return true
}

// ready reads what has come, unless somebody does: its watcher has others to look after, and calls again while there is something.
func (r *reader) ready() {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	r.readOnce()
}

// left has a goroutine read again.
func (r *reader) left() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readAlone()
}

// lookNow reads what has come, in case that the watcher has been held up.
func (r *reader) lookNow() {
	if !r.mu.TryLock() {
		return // it is being read
	}
	defer r.mu.Unlock()
	for range readsMax {
		if !r.readOnce() {
			return
		}
	}
}

// readOnce reads what has come, and reports whether there was something. The caller holds mu.
func (r *reader) readOnce() bool {
	if r.state != readWatched {
		return false
	}
	if r.large() {
		r.watcher.Unwatch(r.socket.fd)
		r.readAlone()
		return false
	}
	r.makeRoom()
	n, err := r.socket.take(r.buf[len(r.buf):cap(r.buf)])
	if err == syscall.EAGAIN {
		return false
	}
	if err = r.came(n, err); err != nil {
		r.watcher.Unwatch(r.socket.fd)
		r.state = readEnded
		r.end(err)
	}
	return err == nil
}

// readAlone has a goroutine read from now on. The caller holds mu.
func (r *reader) readAlone() {
	if r.state == readWatched {
		r.state = readAlone
		go r.run()
	}
}

// large reports whether a reply is coming that needs a larger buffer than is kept, or had one.
func (r *reader) large() bool {
	if r.held > 0 {
		return true
	}
	needed := r.start
	if r.over {
		needed = r.scanned
	}
	return len(r.buf)-needed == cap(r.buf) && r.larger() > bufferKept
}
