package upstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// halfReplies is a node that sends half of a long string in reply to GET, and the rest when release is closed.
func halfReplies(t *testing.T, size int, release chan struct{}) *fakeNode {
	node := startFake(t, nil)
	node.answer(on("GET", func([]string) string { return half + fmt.Sprint(size) }))
	node.release = release
	return node
}

// TestLargeRepliesCount as what is under way while they come, and until their owner has let go of them. One of them may be larger than the
// limit and holds up nobody; more have all others wait.
func TestLargeRepliesCount(t *testing.T) {
	const size = 4 << 20
	release := make(chan struct{})
	u := open(t, Config{Addrs: []string{halfReplies(t, size, release).addr}, PendingBytes: 1 << 20})
	relieved := make(chan struct{}, 10)
	u.OnRelieved = func() { relieved <- struct{}{} }
	require.NoError(t, u.Start(t.Context()))
	kept := make(chan *Call, 1)
	c := newCall("GET", "k")
	c.Keeps, c.Done = true, func(c *Call) { kept <- c }
	c.send(u)
	eventually(t, "half of it has come", func() bool { return u.Status().PendingBytes >= size/2 })
	require.False(t, u.Overloaded())
	second := newCall("GET", "k")
	second.Proto = 3 // a connection of its own
	second.send(u)
	eventually(t, "the second one waits for room", u.Overloaded)
	close(release)
	<-kept
	require.Nil(t, c.Err)
	require.True(t, c.Kept)
	require.Equal(t, bulk(strings.Repeat("x", size)), string(c.Reply))
	require.GreaterOrEqual(t, u.Status().PendingBytes, int64(size))
	require.Nil(t, do(t, u, "PING").failure)
	require.True(t, u.Overloaded())
	require.Len(t, c.Reply, size+len(fmt.Sprintf("$%d\r\n\r\n", size)), "nobody else has written there")
	u.Release(&c.Call)
	require.Nil(t, second.wait(t).failure)
	require.Nil(t, do(t, u, "PING").failure)
	eventually(t, "it is relieved", func() bool { return !u.Overloaded() })
	<-relieved
	eventually(t, "all is let go of", func() bool { return u.Status().PendingBytes == 0 })
}

// TestNobodyWaitsForRoomAnyMore: when the last one that waited is given up, those who are held back go on, though nothing else is answered.
func TestNobodyWaitsForRoomAnyMore(t *testing.T) {
	const size = 4 << 20
	release := make(chan struct{})
	u := open(t, Config{Addrs: []string{halfReplies(t, size, release).addr}, PendingBytes: 1 << 20, Timeout: time.Minute})
	defer close(release)
	relieved := make(chan struct{}, 10)
	u.OnRelieved = func() { relieved <- struct{}{} }
	require.NoError(t, u.Start(t.Context()))
	newCall("GET", "k").send(u)
	eventually(t, "half of it has come", func() bool { return u.Status().PendingBytes >= size/2 })
	second := newCall("GET", "k")
	second.Proto, second.Deadline = 3, Now()+int64(300*time.Millisecond)
	second.send(u)
	eventually(t, "the second one waits for room", u.Overloaded)
	require.Equal(t, Timeout, second.wait(t).failure.Kind)
	select {
	case <-relieved:
	case <-time.After(time.Minute):
		t.Fatal("nobody has said that there is room")
	}
	require.False(t, u.Overloaded())
}

// TestLargeRepliesTakeTurns: beyond the limit one is read at a time, whoever sends them.
func TestLargeRepliesTakeTurns(t *testing.T) {
	const size = 4 << 20
	release := make(chan struct{})
	u := started(t, Config{Addrs: []string{halfReplies(t, size, release).addr}, PendingBytes: 1 << 20})
	calls := []*pending{newCall("GET", "k"), newCall("GET", "k")}
	for i, c := range calls {
		c.Proto = 2 + i // connections of their own
		c.send(u)
	}
	eventually(t, "half of one has come", func() bool { return u.Status().PendingBytes >= size/2 })
	eventually(t, "the other one waits", func() bool { return u.replies.waiting.Load() == 1 })
	require.Less(t, u.Status().PendingBytes, int64(size+size/2))
	close(release)
	for _, c := range calls {
		require.Len(t, c.wait(t).reply, size+len(fmt.Sprintf("$%d\r\n\r\n", size)))
	}
	eventually(t, "all is let go of", func() bool { return u.Status().PendingBytes == 0 })
}

// TestRepliesThatNobodyKeeps: of one that is too large, and of one whose call was given up, nothing is kept, and what follows is read.
func TestRepliesThatNobodyKeeps(t *testing.T) {
	const size = 4 << 20
	release := make(chan struct{})
	node := halfReplies(t, size, release)
	u := started(t, Config{Addrs: []string{node.addr}, ReplyMax: 1 << 20})
	large := newCall("GET", "k").send(u)
	small := newCall("PING").send(u)
	from := u.fleet.Load().named(node.addr)
	eventually(t, "more has come than may be kept", func() bool { // since the node may be at work for as long as that takes
		return from.busy.Load()-from.heard.Load() >= size*3/8*workPerMiB>>20
	})
	require.Less(t, u.Status().PendingBytes, int64(1<<20))
	close(release)
	require.Equal(t, TooLarge, large.wait(t).failure.Kind)
	require.Equal(t, "+PONG\r\n", small.wait(t).reply)

	release = make(chan struct{})
	u = started(t, Config{Addrs: []string{halfReplies(t, size, release).addr}})
	large = newCall("GET", "k")
	large.Deadline = Now() + int64(100*time.Millisecond)
	large.send(u)
	require.Equal(t, Timeout, large.wait(t).failure.Kind)
	small = newCall("PING").send(u)
	close(release)
	require.Equal(t, "+PONG\r\n", small.wait(t).reply)
	eventually(t, "what was held is let go of", func() bool { return u.Status().PendingBytes == 0 })
}

// TestReplyThatDribbles: its memory comes back when its call is given up, however slowly the rest comes, and the node is no more at work then.
func TestReplyThatDribbles(t *testing.T) {
	const size = 4 << 20
	node := startFake(t, on("GET", func([]string) string { return dribble + fmt.Sprint(size) }))
	u := started(t, Config{Addrs: []string{node.addr}, PendingBytes: 1 << 20, Timeout: time.Minute})
	large := newCall("GET", "k")
	large.Deadline = Now() + int64(300*time.Millisecond)
	large.send(u)
	eventually(t, "a part of it has come", func() bool { return u.Status().PendingBytes >= size })
	require.False(t, u.Overloaded())
	require.Equal(t, Timeout, large.wait(t).failure.Kind)
	eventually(t, "its memory is let go of", func() bool { return u.Status().PendingBytes == 0 })
}
