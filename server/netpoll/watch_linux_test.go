package netpoll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWatch: a loop tells of descriptors that are others', from Run until Stop.
func TestWatch(t *testing.T) {
	loop, err := NewLoop(&recorder{}, nil)
	require.NoError(t, err)
	var pairs [2][2]int
	for i := range pairs {
		pairs[i], err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		defer unix.Close(pairs[i][0])
		defer unix.Close(pairs[i][1])
	}
	nothing := func() {}
	require.False(t, loop.Watch(pairs[0][0], nothing, nothing), "nobody would look before it runs")
	go loop.Run()

	bytes, left := make(chan byte, 16), make(chan int, 2)
	for i, pair := range pairs {
		ready := func() {
			var b [1]byte
			if n, _ := unix.Read(pair[0], b[:]); n == 1 {
				bytes <- b[0]
			}
		}
		require.Eventually(t, func() bool { return loop.Watch(pair[0], ready, func() { left <- i }) }, 10*time.Second, time.Millisecond)
	}
	_, err = unix.Write(pairs[0][1], []byte("abc"))
	require.NoError(t, err)
	for _, want := range "abc" {
		require.EqualValues(t, want, <-bytes, "it is told again while there is more")
	}

	loop.Unwatch(pairs[0][0])
	loop.Unwatch(pairs[0][0])
	_, err = unix.Write(pairs[0][1], []byte("d"))
	require.NoError(t, err)
	_, err = unix.Write(pairs[1][1], []byte("e"))
	require.NoError(t, err)
	require.EqualValues(t, 'e', <-bytes)

	loop.Stop()
	<-loop.Done()
	require.Equal(t, 1, <-left)
	require.Empty(t, left)
	require.Empty(t, bytes)
	require.False(t, loop.Watch(pairs[1][0], nothing, nothing))
	loop.Unwatch(pairs[1][0])
}
