package pubsub_test

import (
	"fmt"
	"testing"
	"time"

	"headgate/server/command"
	"headgate/server/pubsub"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestTrackingTableIsBounded: keys beyond tracking-table-max-keys are forgotten, and the client that has read them is told.
func TestTrackingTableIsBounded(t *testing.T) {
	const most, read = 10, 100
	p := servertest.NewPipeServer(t)
	conn, r := p.Dial()
	_, err := fmt.Fprintf(conn, "CONFIG SET tracking-table-max-keys %d\r\nHELLO 3\r\nCLIENT TRACKING ON\r\n", most)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, r, 1))
	for servertest.ReadLines(t, r, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, r, 1))
	for i := range read {
		_, err := fmt.Fprintf(conn, "GET key%d\r\n", i)
		require.NoError(t, err)
		require.Equal(t, "_\r\n", servertest.ReadLines(t, r, 1))
		if i >= most {
			require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n", servertest.ReadLines(t, r, 4))
			servertest.ReadLines(t, r, 2)
		}
	}
	p.Srv.Lock()
	require.Len(t, p.Srv.Tracking.Readers, most)
	require.Equal(t, most, p.Srv.Tracking.Items)
	names := 0
	for key := range p.Srv.Tracking.Readers {
		names += len(key)
	}
	require.Equal(t, names, p.Srv.Tracking.Names)
	p.Srv.Unlock()
	_, err = fmt.Fprint(conn, "CLIENT TRACKING OFF\r\n")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, r, 1))
	p.Srv.Lock()
	require.Empty(t, p.Srv.Tracking.Readers)
	require.Zero(t, p.Srv.Tracking.Memory())
	require.False(t, p.Srv.Gate.Has(command.GateAttended))
	p.Srv.Unlock()
}

// TestTrackingEndsWithTheConnection: nothing is kept of a client that is gone.
func TestTrackingEndsWithTheConnection(t *testing.T) {
	p := servertest.NewPipeServer(t)
	conn, r := p.Dial()
	_, err := fmt.Fprint(conn, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b\r\nSUBSCRIBE x\r\nQUIT\r\n")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, r, 1))
	servertest.ReadLines(t, r, 7)
	p.Conns.Wait()
	p.Srv.Lock()
	defer p.Srv.Unlock()
	require.Zero(t, p.Srv.Tracking.Clients)
	require.Empty(t, p.Srv.Tracking.Prefixes)
	require.Empty(t, p.Srv.Hub.Topics[pubsub.KindChannel])
	require.False(t, p.Srv.Gate.Has(command.GateAttended))
}

// TestLoweredTrackingTableForgetsByItself: when tracking-table-max-keys is lowered, keys beyond it are forgotten without anybody reading, in
// slices, and a table that has shrunk keeps no room for what it had.
func TestLoweredTrackingTableForgetsByItself(t *testing.T) {
	const read, most = 5000, 10
	p := servertest.NewPipeServer(t)
	c, other := p.Session(), p.Session()
	c.Send("HELLO 3")
	for servertest.ReadLines(t, c.R, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	c.Send("CLIENT TRACKING ON")
	c.Want("+OK")
	for i := range read {
		c.Send(fmt.Sprintf("GET %d", i))
		c.Want("_")
	}
	other.Send(fmt.Sprintf("CONFIG SET tracking-table-max-keys %d", most))
	other.Want("+OK")
	left := func() int {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return len(p.Srv.Tracking.Readers)
	}
	p.Srv.Lock()
	before := len(p.Srv.Tracking.Readers)
	p.Srv.LimitTracking(pubsub.ForgottenPerLook)
	require.Equal(t, before-pubsub.ForgottenPerLook, len(p.Srv.Tracking.Readers), "one step is bounded")
	p.Srv.Unlock()
	require.Eventually(t, func() bool { p.Srv.Cron(); return left() == most }, 10*time.Second, time.Millisecond)
	p.Srv.Lock()
	require.Less(t, p.Srv.Tracking.Peak, read/pubsub.ShrunkTable)
	require.Equal(t, most, p.Srv.Tracking.Items)
	p.Srv.Unlock()
	for range read - most {
		require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n", servertest.ReadLines(t, c.R, 4))
		servertest.ReadLines(t, c.R, 2)
	}
}

// TestChangedKeyLooksAtLengths: a key that changes is looked up once for each length of prefix, however many there are.
func TestChangedKeyLooksAtLengths(t *testing.T) {
	p := servertest.NewPipeServer(t)
	a, b, other := p.Session(), p.Session(), p.Session()
	for _, c := range []*servertest.Session{a, b} {
		c.Send("HELLO 3")
		for servertest.ReadLines(t, c.R, 1) != "*0\r\n" { // the end of HELLO's reply
		}
	}
	a.Send("CLIENT TRACKING ON BCAST PREFIX ab PREFIX cd PREFIX efg")
	a.Want("+OK")
	b.Send("CLIENT TRACKING ON BCAST PREFIX ab PREFIX a:long:one")
	b.Want("+OK")
	p.Srv.Lock()
	require.Equal(t, []int{2, 3, 10}, p.Srv.Tracking.Lengths)
	p.Srv.Unlock()
	other.Send("MSET a 1 ab 1 cdx 1 ef 1 efg 1 xab 1 a:long:one 1 a:long:on 1")
	other.Want("+OK")
	a.Want(">2 $10 invalidate *1 $2 ab")
	a.Want(">2 $10 invalidate *1 $3 cdx")
	a.Want(">2 $10 invalidate *1 $3 efg")
	b.Want(">2 $10 invalidate *1 $10 a:long:one")
	b.Want(">2 $10 invalidate *1 $2 ab")
	a.Send("CLIENT TRACKING OFF")
	a.Want("+OK")
	other.Send("SET ab 2")
	other.Want("+OK")
	b.Want(">2 $10 invalidate *1 $2 ab")
	p.Srv.Lock()
	require.Equal(t, []int{2, 10}, p.Srv.Tracking.Lengths)
	require.Len(t, p.Srv.Tracking.Prefixes, 2)
	p.Srv.Unlock()
}

// TestFirstClientHearsOfAnExpiry: the client with ID 1 that wants to hear nothing of its own changes hears of a key that expires, which is
// nobody's change.
func TestFirstClientHearsOfAnExpiry(t *testing.T) {
	p := servertest.NewPipeServer(t)
	first := p.Session()
	first.Send("CLIENT ID")
	first.Want(":1")
	first.Send("HELLO 3")
	for servertest.ReadLines(t, first.R, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	first.Send("CLIENT TRACKING ON BCAST NOLOOP")
	first.Want("+OK")
	first.Send("SET k v PX 1")
	first.Want("+OK")
	first.Want(">2 $10 invalidate *1 $1 k")
	first.Send("PING")
	first.Want("+PONG") // and of its own change it has not heard
}
