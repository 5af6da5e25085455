package upstream

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// testWatcher is a Watcher with a goroutine of its own, which a test may hold up.
type testWatcher struct {
	epfd   int
	told   atomic.Int64 // calls of ready
	heldUp sync.Mutex   // while it is locked nothing is told

	mu      sync.Mutex
	watched map[int][2]func() // ready, left; nil: it does not run
}

// watch returns a watcher that runs until it is stopped, or the test ends.
func watch(t *testing.T) *testWatcher {
	t.Helper()
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(t, err)
	w := &testWatcher{epfd: epfd, watched: map[int][2]func(){}}
	var running sync.WaitGroup
	running.Go(w.run)
	t.Cleanup(func() {
		w.stop()
		running.Wait()
		_ = unix.Close(epfd)
	})
	return w
}

func (w *testWatcher) run() {
	events := make([]unix.EpollEvent, 8)
	for {
		n, _ := unix.EpollWait(w.epfd, events, 5)
		w.heldUp.Lock()
		for _, event := range events[:max(n, 0)] {
			w.mu.Lock()
			of, found := w.watched[int(event.Fd)]
			w.mu.Unlock()
			if found {
				w.told.Add(1)
				of[0]()
			}
		}
		w.heldUp.Unlock()
		w.mu.Lock()
		ended := w.watched == nil
		w.mu.Unlock()
		if ended {
			return
		}
	}
}

// stop leaves all descriptors to their owners.
func (w *testWatcher) stop() {
	w.mu.Lock()
	left := w.watched
	w.watched = nil
	w.mu.Unlock()
	for fd, of := range left {
		_ = unix.EpollCtl(w.epfd, unix.EPOLL_CTL_DEL, fd, nil)
		of[1]()
	}
}

func (w *testWatcher) Watch(fd int, ready, left func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil || unix.EpollCtl(w.epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}) != nil {
		return false
	}
	w.watched[fd] = [2]func(){ready, left}
	return true
}

func (w *testWatcher) Unwatch(fd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, found := w.watched[fd]; found {
		delete(w.watched, fd)
		_ = unix.EpollCtl(w.epfd, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

func (w *testWatcher) watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watched)
}

// readByWatcher has an Upstream's replies read by a watcher.
func readByWatcher(t *testing.T, u *Upstream) { u.ReadOn(watch(t)) }

// TestRepliesAreReadByAWatcher as long as it runs, but for large ones; connections that were there before are handed to it.
func TestRepliesAreReadByAWatcher(t *testing.T) {
	const size = 1 << 20
	node := startFake(t, on("STRLEN", func([]string) string { return bulk(strings.Repeat("x", size)) }))
	u := New(Config{Addrs: []string{node.addr}, Timeout: 10 * time.Second}, testLog)
	t.Cleanup(u.Close)
	require.NoError(t, u.Start(t.Context()))
	w := watch(t)
	u.ReadOn(w)
	eventually(t, "the connection is the watcher's", func() bool { return do(t, u, "PING").failure == nil && w.watches() == 1 })
	told := w.told.Load()
	require.Equal(t, bulk("value of k"), do(t, u, "GET", "k").reply)
	require.Greater(t, w.told.Load(), told)
	require.Len(t, do(t, u, "STRLEN", "k").reply, len(bulk(strings.Repeat("x", size))))
	eventually(t, "after a large reply it is the watcher's again", func() bool { return w.watches() == 1 })
	require.Equal(t, bulk("value of k"), do(t, u, "GET", "k").reply)
	w.stop()
	require.Equal(t, bulk("value of k"), do(t, u, "GET", "k").reply)
	require.EqualValues(t, 1, node.accepted.Load(), "all of it on one connection")
}

// TestAWatcherThatIsHeldUp: replies that have come count, although nobody had the time to read them before their calls' deadlines.
func TestAWatcherThatIsHeldUp(t *testing.T) {
	node := startFake(t, nil)
	u := open(t, Config{Addrs: []string{node.addr}, Timeout: 100 * time.Millisecond})
	w := watch(t)
	u.ReadOn(w)
	require.NoError(t, u.Start(t.Context()))
	eventually(t, "the connection is the watcher's", func() bool { return do(t, u, "PING").failure == nil && w.watches() == 1 })
	w.heldUp.Lock()
	r := do(t, u, "GET", "k")
	w.heldUp.Unlock()
	require.Nil(t, r.failure)
	require.Equal(t, bulk("value of k"), r.reply)
	require.Zero(t, u.Status().Nodes[0].Rests)
}

// TestAWatcherWaitsForNobody: while somebody else deals with a connection's replies, a watcher tells of the others.
func TestAWatcherWaitsForNobody(t *testing.T) {
	node := startFake(t, nil)
	u := open(t, Config{Addrs: []string{node.addr}})
	w := watch(t)
	u.ReadOn(w)
	require.NoError(t, u.Start(t.Context()))
	eventually(t, "the connection is the watcher's", func() bool { return do(t, u, "PING").failure == nil && w.watches() == 1 })
	w.heldUp.Lock()
	c := newCall("GET", "k")
	var answered atomic.Bool
	goOn := make(chan struct{})
	var looking sync.WaitGroup
	defer looking.Wait()
	defer close(goOn)
	c.Done = func(*Call) {
		answered.Store(true)
		<-goOn
	}
	c.send(u)
	looking.Go(func() { // as when deadlines are looked at
		for !answered.Load() {
			u.fleet.Load().nodeFor(anySlot).own[0].lookNow()
		}
	})
	eventually(t, "the reply is read", answered.Load)
	newCall("GET", "k").send(u)
	eventually(t, "the node has answered", func() bool { return node.count("GET") == 2 })
	told := w.told.Load()
	w.heldUp.Unlock()
	eventually(t, "the watcher tells of that", func() bool { return w.told.Load() > told })

	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	var other atomic.Bool
	require.True(t, w.Watch(pipe[0], func() { other.Store(true) }, func() {}))
	defer w.Unwatch(pipe[0])
	_, err := unix.Write(pipe[1], []byte("x"))
	require.NoError(t, err)
	eventually(t, "it tells of another one", other.Load)
}

// TestASocketIsClosedOnce: nodes that hang up again and again cost no descriptors.
func TestASocketIsClosedOnce(t *testing.T) {
	node := startFake(t, nil)
	u := started(t, Config{Addrs: []string{node.addr}, Rest: time.Millisecond})
	lowest := func() int {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
		return fd
	}
	before := lowest()
	for range 100 {
		node.hangUp()
		eventually(t, "it answers again", func() bool { return do(t, u, "PING").failure == nil })
	}
	require.Less(t, lowest(), before+50)
}

// TestWriteWaits: a socket that takes nothing is waited for, until the connection ends.
func TestWriteWaits(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	s := adopt(conn)
	require.NotNil(t, s)
	defer s.free()
	done := make(chan error, 1)
	go func() {
		_, err := s.Write(make([]byte, 64<<20))
		done <- err
	}()
	theirs, err := listener.Accept()
	require.NoError(t, err)
	_, err = theirs.Read(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Error(t, <-done)
	require.NoError(t, theirs.Close())
}
