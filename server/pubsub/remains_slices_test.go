package pubsub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/server/command"
	"headgate/server/pubsub"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// many is more than is ever taken out at once.
const many = 4 * command.RemainsAtOnce

// TestManySubscriptionsEndBySlices: subscriptions that a client has let go of count no longer and get no message, and are taken out of
// the hub by and by, each at the same cost.
func TestManySubscriptionsEndBySlices(t *testing.T) {
	p := servertest.NewPipeServer(t)
	p.CronHalted()
	c, other := p.Session(), p.Session()
	names := func(form string) string {
		var b strings.Builder
		for i := range many {
			fmt.Fprintf(&b, " "+form, i)
		}
		return b.String()
	}
	c.Send("PSUBSCRIBE" + names("p%d*"))
	servertest.ReadLines(t, c.R, 6*many)
	c.Send("SUBSCRIBE stays")
	servertest.ReadLines(t, c.R, 6)
	p.Srv.Lock()
	held := p.Srv.ClientMemory()
	require.Greater(t, held, many*pubsub.SubscriptionBytes)
	p.Srv.Unlock()
	c.Send("PUNSUBSCRIBE")
	for i := range many {
		c.Want(fmt.Sprintf("*3 $12 punsubscribe $%d p%d* :%d", len(fmt.Sprintf("p%d*", i)), i, many-i))
	}
	other.Send("PUBSUB NUMPAT|PUBLISH p1x text|PUBLISH stays text")
	other.Want(":0 :0 :1")
	c.Want("*3 $7 message $5 stays $4 text")

	p.Srv.Lock()
	h, r := p.Srv.Hub, &p.Srv.Remains
	require.Len(t, r.Queue, 1)
	require.Len(t, h.Patterns, many-command.RemainsPerClient, "more than what a small client has was taken out at once")
	require.InDelta(t, held, p.Srv.ClientMemory(), float64((command.RemainsPerClient+1)*2*pubsub.SubscriptionBytes), "memory that is not free is counted")
	before := r.Bytes
	r.TakeOut(100)
	require.Len(t, h.Patterns, many-command.RemainsPerClient-100)
	require.Equal(t, before-r.Bytes, before-r.Queue[0].Bytes())
	p.Srv.Unlock()

	c.Send("PSUBSCRIBE p1*")
	c.Want("*3 $10 psubscribe $3 p1* :2")
	other.Send("PUBLISH p1x text|PUBSUB NUMPAT")
	other.Want(":1 :1")
	c.Want("*4 $8 pmessage $3 p1* $3 p1x $4 text")
	p.Srv.Lock()
	require.Len(t, h.Patterns, many-command.RemainsPerClient-100-command.RemainsPerNew, "a new one takes others out, and p1* was still there")
	for p.Srv.Remains.Slice() {
	}
	require.Empty(t, r.Queue)
	require.Zero(t, r.Bytes)
	require.Len(t, h.Patterns, 1)
	require.Len(t, h.Topics[pubsub.KindPattern], 1)
	p.Srv.Unlock()
	other.Send("PUBLISH p1x text|PUBLISH p2x text")
	other.Want(":1 :0")
	c.Want("*4 $8 pmessage $3 p1* $3 p1x $4 text")
}

// TestManyClientsGoBySlices: what many clients have held is not taken out at once because none of them has had much.
func TestManyClientsGoBySlices(t *testing.T) {
	const clients, each = 20, command.RemainsAtOnce / 8
	p := servertest.NewPipeServer(t)
	p.CronHalted()
	var line strings.Builder
	for i := range each {
		fmt.Fprintf(&line, " PREFIX %d:", i)
	}
	for range clients {
		c := p.Session()
		c.Send("CLIENT TRACKING ON BCAST" + line.String())
		c.Want("+OK")
	}
	p.Srv.Lock()
	defer p.Srv.Unlock()
	for _, cl := range p.Srv.Clients.Sorted() {
		p.Srv.Untrack(cl)
	}
	require.Len(t, p.Srv.Tracking.Prefixes, each)
	require.Len(t, p.Srv.Remains.Queue, clients)
	p.Srv.Remains.Spared = command.RemainsAtOnce
	for p.Srv.Remains.Slice() {
	}
	require.Empty(t, p.Srv.Tracking.Prefixes)
	require.Empty(t, p.Srv.Tracking.Lengths)
}

// TestManyWaitsAndWatchesEndBySlices: keys that nobody waits for any more serve nobody, and those that nobody watches fail no EXEC.
func TestManyWaitsAndWatchesEndBySlices(t *testing.T) {
	p := servertest.NewPipeServer(t)
	p.CronHalted()
	c, other := p.Session(), p.Session()
	var keys strings.Builder
	for i := range many {
		fmt.Fprintf(&keys, " k%d", i)
	}
	c.Send("WATCH" + keys.String())
	c.Want("+OK")
	c.Send("BLPOP" + keys.String() + " 0")
	p.AwaitBlocked(1)
	other.Send("RPUSH k7 a b")
	other.Want(":2")
	c.Want("*2 $2 k7 $1 a")
	other.Send("RPUSH k8 a|LRANGE k7 0 -1")
	other.Want(":1 *1 $1 b")
	p.Srv.Lock()
	require.Equal(t, many-command.RemainsPerClient, p.Srv.Keys.AwaitedNames())
	require.Zero(t, p.Srv.Blocking.Clients)
	p.Srv.Unlock()
	c.Send("EXISTS k8|UNWATCH|MULTI|EXEC")
	c.Want(":1 +OK +OK *0")
	other.Send("INCR k9")
	other.Want(":1")
	p.Srv.Lock()
	require.Len(t, p.Srv.Remains.Queue, 2)
	for p.Srv.Remains.Slice() {
	}
	p.Srv.Unlock()
	p.RequireIdle()
}

// TestRemainsGoWithoutHelp: background work takes out what a client that has gone has held.
func TestRemainsGoWithoutHelp(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c := p.Session()
	var names strings.Builder
	for i := range many {
		fmt.Fprintf(&names, " %d", i)
	}
	c.Send("SSUBSCRIBE" + names.String())
	servertest.ReadLines(t, c.R, 6*many)
	require.NoError(t, c.Conn.Close())
	require.Eventually(t, func() bool {
		p.Srv.Cron()
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return len(p.Srv.Hub.Topics[pubsub.KindShard]) == 0 && len(p.Srv.Remains.Queue) == 0
	}, 10*time.Second, time.Millisecond)
}
