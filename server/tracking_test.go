package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTrackingTableIsBounded: keys beyond tracking-table-max-keys are forgotten, and the client that has read them is told.
func TestTrackingTableIsBounded(t *testing.T) {
	const most, read = 10, 100
	p := newPipeServer(t)
	conn, r := p.dial()
	_, err := fmt.Fprintf(conn, "CONFIG SET tracking-table-max-keys %d\r\nHELLO 3\r\nCLIENT TRACKING ON\r\n", most)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	for readLines(t, r, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	for i := range read {
		_, err := fmt.Fprintf(conn, "GET key%d\r\n", i)
		require.NoError(t, err)
		require.Equal(t, "_\r\n", readLines(t, r, 1))
		if i >= most {
			require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n", readLines(t, r, 4))
			readLines(t, r, 2)
		}
	}
	p.srv.Lock()
	require.Len(t, p.srv.tracking.readers, most)
	require.Equal(t, most, p.srv.tracking.items)
	names := 0
	for key := range p.srv.tracking.readers {
		names += len(key)
	}
	require.Equal(t, names, p.srv.tracking.names)
	p.srv.Unlock()
	_, err = fmt.Fprint(conn, "CLIENT TRACKING OFF\r\n")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	p.srv.Lock()
	require.Empty(t, p.srv.tracking.readers)
	require.Zero(t, p.srv.tracking.memory())
	require.False(t, p.srv.gate.has(gateAttended))
	p.srv.Unlock()
}

// TestTrackingEndsWithTheConnection: nothing is kept of a client that is gone.
func TestTrackingEndsWithTheConnection(t *testing.T) {
	p := newPipeServer(t)
	conn, r := p.dial()
	_, err := fmt.Fprint(conn, "CLIENT TRACKING ON BCAST PREFIX a PREFIX b\r\nSUBSCRIBE x\r\nQUIT\r\n")
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", readLines(t, r, 1))
	readLines(t, r, 7)
	p.conns.Wait()
	p.srv.Lock()
	defer p.srv.Unlock()
	require.Zero(t, p.srv.tracking.clients)
	require.Empty(t, p.srv.tracking.prefixes)
	require.Empty(t, p.srv.Hub.topics[kindChannel])
	require.False(t, p.srv.gate.has(gateAttended))
}

// TestLoweredTrackingTableForgetsByItself: when tracking-table-max-keys is lowered, keys beyond it are forgotten without anybody reading, in
// slices, and a table that has shrunk keeps no room for what it had.
func TestLoweredTrackingTableForgetsByItself(t *testing.T) {
	const read, most = 5000, 10
	p := newPipeServer(t)
	c, other := p.session(), p.session()
	c.send("HELLO 3")
	for readLines(t, c.r, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	c.send("CLIENT TRACKING ON")
	c.want("+OK")
	for i := range read {
		c.send(fmt.Sprintf("GET %d", i))
		c.want("_")
	}
	other.send(fmt.Sprintf("CONFIG SET tracking-table-max-keys %d", most))
	other.want("+OK")
	left := func() int {
		p.srv.Lock()
		defer p.srv.Unlock()
		return len(p.srv.tracking.readers)
	}
	p.srv.Lock()
	before := len(p.srv.tracking.readers)
	p.srv.limitTracking(forgottenPerLook)
	require.Equal(t, before-forgottenPerLook, len(p.srv.tracking.readers), "one step is bounded")
	p.srv.Unlock()
	require.Eventually(t, func() bool { p.srv.cron(); return left() == most }, 10*time.Second, time.Millisecond)
	p.srv.Lock()
	require.Less(t, p.srv.tracking.peak, read/shrunkTable)
	require.Equal(t, most, p.srv.tracking.items)
	p.srv.Unlock()
	for range read - most {
		require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n", readLines(t, c.r, 4))
		readLines(t, c.r, 2)
	}
}

// TestChangedKeyLooksAtLengths: a key that changes is looked up once for each length of prefix, however many there are.
func TestChangedKeyLooksAtLengths(t *testing.T) {
	p := newPipeServer(t)
	a, b, other := p.session(), p.session(), p.session()
	for _, c := range []*session{a, b} {
		c.send("HELLO 3")
		for readLines(t, c.r, 1) != "*0\r\n" { // the end of HELLO's reply
		}
	}
	a.send("CLIENT TRACKING ON BCAST PREFIX ab PREFIX cd PREFIX efg")
	a.want("+OK")
	b.send("CLIENT TRACKING ON BCAST PREFIX ab PREFIX a:long:one")
	b.want("+OK")
	p.srv.Lock()
	require.Equal(t, []int{2, 3, 10}, p.srv.tracking.lengths)
	p.srv.Unlock()
	other.send("MSET a 1 ab 1 cdx 1 ef 1 efg 1 xab 1 a:long:one 1 a:long:on 1")
	other.want("+OK")
	a.want(">2 $10 invalidate *1 $2 ab")
	a.want(">2 $10 invalidate *1 $3 cdx")
	a.want(">2 $10 invalidate *1 $3 efg")
	b.want(">2 $10 invalidate *1 $10 a:long:one")
	b.want(">2 $10 invalidate *1 $2 ab")
	a.send("CLIENT TRACKING OFF")
	a.want("+OK")
	other.send("SET ab 2")
	other.want("+OK")
	b.want(">2 $10 invalidate *1 $2 ab")
	p.srv.Lock()
	require.Equal(t, []int{2, 10}, p.srv.tracking.lengths)
	require.Len(t, p.srv.tracking.prefixes, 2)
	p.srv.Unlock()
}

// TestFirstClientHearsOfAnExpiry: the client with ID 1 that wants to hear nothing of its own changes hears of a key that expires, which is
// nobody's change.
func TestFirstClientHearsOfAnExpiry(t *testing.T) {
	p := newPipeServer(t)
	first := p.session()
	first.send("CLIENT ID")
	first.want(":1")
	first.send("HELLO 3")
	for readLines(t, first.r, 1) != "*0\r\n" { // the end of HELLO's reply
	}
	first.send("CLIENT TRACKING ON BCAST NOLOOP")
	first.want("+OK")
	first.send("SET k v PX 1")
	first.want("+OK")
	first.want(">2 $10 invalidate *1 $1 k")
	first.send("PING")
	first.want("+PONG") // and of its own change it has not heard
}
