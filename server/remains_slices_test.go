package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cronHalted has background work take nothing out of the tables for the test's length, but for what it asks for itself.
func (p *pipeServer) cronHalted() {
	p.srv.Lock()
	defer p.srv.Unlock()
	p.srv.cronAt.remains = 1 << 62
	p.srv.remains.spared = 0
}

// many is more than is ever taken out at once.
const many = 4 * remainsAtOnce

// TestManySubscriptionsEndBySlices: subscriptions that a client has let go of count no longer and get no message, and are taken out of
// the hub by and by, each at the same cost.
func TestManySubscriptionsEndBySlices(t *testing.T) {
	p := newPipeServer(t)
	p.cronHalted()
	c, other := p.session(), p.session()
	names := func(form string) string {
		var b strings.Builder
		for i := range many {
			fmt.Fprintf(&b, " "+form, i)
		}
		return b.String()
	}
	c.send("PSUBSCRIBE" + names("p%d*"))
	readLines(t, c.r, 6*many)
	c.send("SUBSCRIBE stays")
	readLines(t, c.r, 6)
	p.srv.Lock()
	held := p.srv.clientMemory()
	require.Greater(t, held, many*subscriptionBytes)
	p.srv.Unlock()
	c.send("PUNSUBSCRIBE")
	for i := range many {
		c.want(fmt.Sprintf("*3 $12 punsubscribe $%d p%d* :%d", len(fmt.Sprintf("p%d*", i)), i, many-i))
	}
	other.send("PUBSUB NUMPAT|PUBLISH p1x text|PUBLISH stays text")
	other.want(":0 :0 :1")
	c.want("*3 $7 message $5 stays $4 text")

	p.srv.Lock()
	h, r := p.srv.Hub, &p.srv.remains
	require.Len(t, r.queue, 1)
	require.Len(t, h.patterns, many-remainsPerClient, "more than what a small client has was taken out at once")
	require.InDelta(t, held, p.srv.clientMemory(), float64((remainsPerClient+1)*2*subscriptionBytes), "memory that is not free is counted")
	before := r.bytes
	r.takeOut(100)
	require.Len(t, h.patterns, many-remainsPerClient-100)
	require.Equal(t, before-r.bytes, before-r.queue[0].Bytes())
	p.srv.Unlock()

	c.send("PSUBSCRIBE p1*")
	c.want("*3 $10 psubscribe $3 p1* :2")
	other.send("PUBLISH p1x text|PUBSUB NUMPAT")
	other.want(":1 :1")
	c.want("*4 $8 pmessage $3 p1* $3 p1x $4 text")
	p.srv.Lock()
	require.Len(t, h.patterns, many-remainsPerClient-100-remainsPerNew, "a new one takes others out, and p1* was still there")
	for p.srv.remains.slice() {
	}
	require.Empty(t, r.queue)
	require.Zero(t, r.bytes)
	require.Len(t, h.patterns, 1)
	require.Len(t, h.topics[kindPattern], 1)
	p.srv.Unlock()
	other.send("PUBLISH p1x text|PUBLISH p2x text")
	other.want(":1 :0")
	c.want("*4 $8 pmessage $3 p1* $3 p1x $4 text")
}

// TestManyClientsGoBySlices: what many clients have held is not taken out at once because none of them has had much.
func TestManyClientsGoBySlices(t *testing.T) {
	const clients, each = 20, remainsAtOnce / 8
	p := newPipeServer(t)
	p.cronHalted()
	var line strings.Builder
	for i := range each {
		fmt.Fprintf(&line, " PREFIX %d:", i)
	}
	for range clients {
		c := p.session()
		c.send("CLIENT TRACKING ON BCAST" + line.String())
		c.want("+OK")
	}
	p.srv.Lock()
	defer p.srv.Unlock()
	for _, cl := range p.srv.clients.sorted() {
		p.srv.untrack(cl)
	}
	require.Len(t, p.srv.tracking.prefixes, each)
	require.Len(t, p.srv.remains.queue, clients)
	p.srv.remains.spared = remainsAtOnce
	for p.srv.remains.slice() {
	}
	require.Empty(t, p.srv.tracking.prefixes)
	require.Empty(t, p.srv.tracking.lengths)
}

// TestManyWaitsAndWatchesEndBySlices: keys that nobody waits for any more serve nobody, and those that nobody watches fail no EXEC.
func TestManyWaitsAndWatchesEndBySlices(t *testing.T) {
	p := newPipeServer(t)
	p.cronHalted()
	c, other := p.session(), p.session()
	var keys strings.Builder
	for i := range many {
		fmt.Fprintf(&keys, " k%d", i)
	}
	c.send("WATCH" + keys.String())
	c.want("+OK")
	c.send("BLPOP" + keys.String() + " 0")
	p.awaitBlocked(1)
	other.send("RPUSH k7 a b")
	other.want(":2")
	c.want("*2 $2 k7 $1 a")
	other.send("RPUSH k8 a|LRANGE k7 0 -1")
	other.want(":1 *1 $1 b")
	p.srv.Lock()
	require.Equal(t, many-remainsPerClient, p.srv.blocking.queues.Len())
	require.Zero(t, p.srv.blocking.clients)
	p.srv.Unlock()
	c.send("EXISTS k8|UNWATCH|MULTI|EXEC")
	c.want(":1 +OK +OK *0")
	other.send("INCR k9")
	other.want(":1")
	p.srv.Lock()
	require.Len(t, p.srv.remains.queue, 2)
	for p.srv.remains.slice() {
	}
	p.srv.Unlock()
	p.requireIdle()
}

// TestRemainsGoWithoutHelp: background work takes out what a client that has gone has held.
func TestRemainsGoWithoutHelp(t *testing.T) {
	p := newPipeServer(t)
	c := p.session()
	var names strings.Builder
	for i := range many {
		fmt.Fprintf(&names, " %d", i)
	}
	c.send("SSUBSCRIBE" + names.String())
	readLines(t, c.r, 6*many)
	require.NoError(t, c.conn.Close())
	require.Eventually(t, func() bool {
		p.srv.cron()
		p.srv.Lock()
		defer p.srv.Unlock()
		return len(p.srv.Hub.topics[kindShard]) == 0 && len(p.srv.remains.queue) == 0
	}, 10*time.Second, time.Millisecond)
}
