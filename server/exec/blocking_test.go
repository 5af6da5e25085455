package exec_test

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/servertest"
	"headgate/store"

	"github.com/stretchr/testify/require"
)

// takeCommands has a command that blocks: TAKE key [key …] timeout answers with the first of the keys that has a string, and
// deletes it.
var takeCommands = []*command.Command{{
	Name: "take", Group: command.GroupString, Since: "test", Complexity: "O(1)", Summary: "Take a string.",
	Arity: -3, Flags: command.Write | command.NoScript | command.Blocking, Keys: command.Keys("RW", 1, -2, 1), Reply: command.ReplyArray | command.ReplyNull,
	Handler: func(c *command.Ctx) {
		last := len(c.Args) - 1
		until, ok := c.Timeout(last, command.TimeoutSeconds)
		if !ok {
			return
		}
		for i := 1; i < last; i++ {
			e, ok := c.DB.Find(c.Key(i), c.Now)
			if ok && e.Kind() != store.KindString {
				c.Err(command.ErrWrongType)
				return
			}
			if ok {
				takeString(c, c.Key(i))
				return
			}
		}
		if !c.MayBlock() {
			c.Reply.NullArray()
			return
		}
		c.Block(command.BlockOn{Kind: store.KindString, Keys: c.Args[1:last], Until: until, Serve: takeString})
	},
}}

func takeString(c *command.Ctx, k store.Key) bool {
	e, ok := c.DB.Find(k, c.Now)
	if !ok {
		return false
	}
	c.Reply.Array(2)
	c.Reply.Bulk(k.Name)
	c.Reply.Bulk(e.AppendString(nil))
	e.Delete()
	return true
}

func newBlockingServer(t *testing.T) *servertest.PipeServer {
	p := servertest.NewPipeServer(t)
	p.Srv.Lock()
	defer p.Srv.Unlock()
	p.Srv.Commands = command.NewRegistry(append(p.Srv.CommandGroups(), takeCommands)...)
	p.Srv.Stats.Commands = make([]command.Counters, len(p.Srv.Commands.All))
	return p
}

func TestBlockingServesInOrderOfArrival(t *testing.T) {
	p := newBlockingServer(t)
	clients := make([]*servertest.Session, 5)
	for i := range clients {
		clients[i] = p.Session()
		clients[i].Send("TAKE other k k 0")
		p.AwaitBlocked(i + 1)
	}
	pusher := p.Session()
	for i, c := range clients {
		pusher.Send(fmt.Sprintf("SET k v%d", i))
		pusher.Want("+OK")
		c.Want(fmt.Sprintf("*2 $1 k $2 v%d", i))
	}
	pusher.Send("EXISTS k")
	pusher.Want(":0")
	p.RequireIdle()
}

// TestBlockedClientsInputWaits: what a client pipelines behind a command that blocks runs after it, more than a batch of it.
func TestBlockedClientsInputWaits(t *testing.T) {
	p := newBlockingServer(t)
	c, pusher := p.Session(), p.Session()
	c.Send("CLIENT ID")
	id := strings.Trim(servertest.ReadLines(t, c.R, 1), ":\r\n")
	c.Send("TAKE k 0" + strings.Repeat("|INCR n", 3*exec.BatchCommands))
	p.AwaitBlocked(1)
	pusher.Send("GET n|CLIENT LIST ID " + id)
	pusher.Want("$-1")
	require.Contains(t, servertest.ReadLines(t, pusher.R, 3), "flags=b ")
	c.Send("INCR n|TAKE k 0|INCR n")
	pusher.Send("GET n|SET k 1")
	pusher.Want("$-1 +OK")
	c.Want("*2 $1 k $1 1")
	for i := range 3*exec.BatchCommands + 1 {
		c.Want(fmt.Sprintf(":%d", i+1))
	}
	p.AwaitBlocked(1)
	pusher.Send("SET k 2|GET n")
	pusher.Want(fmt.Sprintf("+OK $3 %d", 3*exec.BatchCommands+1))
	c.Want(fmt.Sprintf("*2 $1 k $1 2 :%d", 3*exec.BatchCommands+2))
	p.RequireIdle()
}

// TestBlockedUntilTheTransactionIsOver: a key that a transaction adds and takes away again wakes nobody.
func TestBlockedUntilTheTransactionIsOver(t *testing.T) {
	p := newBlockingServer(t)
	c, pusher := p.Session(), p.Session()
	c.Send("TAKE k 0")
	p.AwaitBlocked(1)
	pusher.Send("MULTI|SET k 1|DEL k|EXEC|MULTI|SET k 2|APPEND k 3|TAKE k 0|TAKE k 0|EXEC|MULTI|SET k 4|APPEND k 5|EXEC")
	pusher.Want("+OK +QUEUED +QUEUED *2 +OK :1")
	pusher.Want("+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 +OK :2 *2 $1 k $2 23 *-1")
	pusher.Want("+OK +QUEUED +QUEUED *2 +OK :2")
	c.Want("*2 $1 k $2 45")
	c.Send("TAKE k 0")
	p.AwaitBlocked(1)
	pusher.Send(`EVAL "redis.call('SET','k',1) redis.call('DEL','k') redis.call('SET','k',2) return redis.call('APPEND','k',3)" 0`)
	pusher.Want(":2")
	c.Want("*2 $1 k $2 23")
	p.RequireIdle()
}

func TestBlockingSeesEveryWayInWhichAKeyAppears(t *testing.T) {
	p := newBlockingServer(t)
	pusher := p.Session()
	for _, appears := range []string{
		"SET a 1|RENAME a k", "SET a 1|COPY a k", "SELECT 1|SET k 1|MOVE k 0|SELECT 0", "SELECT 1|SET k 1|SELECT 0|SWAPDB 0 1", "APPEND k 1", "SETRANGE k 0 1",
	} {
		c := p.Session()
		c.Send("TAKE k 0")
		p.AwaitBlocked(1)
		pusher.Send(appears)
		servertest.ReadLines(t, pusher.R, 1+strings.Count(appears, "|"))
		c.Want("*2 $1 k $1 1")
		p.RequireIdle()
	}
}

func TestBlockedClientOfAnotherKindWaitsOn(t *testing.T) {
	p := newBlockingServer(t)
	c, pusher := p.Session(), p.Session()
	c.Send("TAKE k 0")
	p.AwaitBlocked(1)
	pusher.Send("HSET k f v|DEL k|SET k v")
	pusher.Want(":1 :1 +OK")
	c.Want("*2 $1 k $1 v")
	p.RequireIdle()
}

func TestBlockingTimeout(t *testing.T) {
	p := newBlockingServer(t)
	c, other := p.Session(), p.Session()
	other.Send("TAKE a b 0.05")
	c.Send("TAKE a b 0.001|PING")
	c.Want("*-1 +PONG")
	other.Want("*-1")
	c.Send("TAKE k 86400")
	p.AwaitBlocked(1)
	p.Srv.Lock()
	next := p.Srv.EndTimeouts(0)
	require.Positive(t, next)
	p.Srv.EndTimeouts(next)
	p.Srv.Unlock()
	c.Want("*-1")
	p.RequireIdle()
}

// TestACrowdsTimeoutsAreSliced: clients whose waits are over at once do not have everybody else wait until all are answered.
func TestACrowdsTimeoutsAreSliced(t *testing.T) {
	p := newBlockingServer(t)
	const crowd = 2_000
	var waiting []*servertest.Session
	for range crowd {
		s := p.Session()
		s.Send("TAKE k 86400")
		waiting = append(waiting, s)
	}
	p.AwaitBlocked(crowd)
	p.Srv.Lock()
	now := p.Srv.EndTimeouts(0) + int64(time.Minute) // when all of them are over
	rounds := 1
	for p.Srv.EndTimeouts(now) == now {
		rounds++
	}
	p.Srv.Unlock()
	require.Greater(t, rounds, 2)
	for _, s := range waiting {
		s.Want("*-1")
	}
	p.RequireIdle()
}

func TestBlockingTimeoutArgument(t *testing.T) {
	p := newBlockingServer(t)
	c := p.Session()
	const notAFloat, negative = "is not a float or out of range", "is negative"
	for _, tc := range [][2]string{
		{"x", notAFloat}, {`""`, notAFloat}, {"nan", notAFloat}, {"1e5000", notAFloat},
		{"-1", negative}, {"-0.002", negative}, {"-inf", negative}, {"-1e300", negative},
		{"inf", negative}, {"1e300", negative}, {"9223372036854775.808", negative},
	} {
		c.Send("TAKE k " + tc[0])
		require.Equal(t, "-ERR timeout "+tc[1]+"\r\n", servertest.ReadLines(t, c.R, 1), tc[0])
	}
	c.Send("SELECT 1")
	c.Want("+OK")
	for _, forEver := range []string{"0", "-0", "-0.0005", "9000000000000", "9223372036854775.807"} {
		c.Send("TAKE k " + forEver)
		p.AwaitBlocked(1)
		setter := p.Session()
		setter.Send("SELECT 1|SET k v")
		setter.Want("+OK +OK")
		c.Want("*2 $1 k $1 v")
	}
	p.RequireIdle()
}

func TestClientUnblock(t *testing.T) {
	p := newBlockingServer(t)
	c, other := p.Session(), p.Session()
	c.Send("CLIENT ID")
	id := strings.Trim(servertest.ReadLines(t, c.R, 1), ":\r\n")
	other.Send("CLIENT UNBLOCK " + id)
	other.Want(":0")
	for args, reply := range map[string]string{"": "*-1", " TIMEOUT": "*-1", " timeout": "*-1", " ERROR": "-" + exec.ErrUnblocked} {
		c.Send("TAKE k 0|PING")
		p.AwaitBlocked(1)
		other.Send("CLIENT UNBLOCK " + id + args)
		other.Want(":1")
		require.Equal(t, reply+"\r\n+PONG\r\n", servertest.ReadLines(t, c.R, 2))
		p.RequireIdle()
	}
}

func TestBlockedClientsThatGo(t *testing.T) {
	p := newBlockingServer(t)
	killed, left, last, other := p.Session(), p.Session(), p.Session(), p.Session()
	killed.Send("CLIENT ID")
	id := strings.Trim(servertest.ReadLines(t, killed.R, 1), ":\r\n")
	killed.Send("TAKE k 10000")
	p.AwaitBlocked(1)
	left.Send("TAKE k 0|SET gone 1")
	p.AwaitBlocked(2)
	last.Send("TAKE k 0")
	p.AwaitBlocked(3)
	left.Conn.Close()
	p.AwaitBlocked(2)
	other.Send("MULTI|CLIENT KILL ID " + id + "|SET k v|EXEC") // killed, but still in the queue
	other.Want("+OK +QUEUED +QUEUED *2 :1 +OK")
	last.Want("*2 $1 k $1 v")
	other.Send("EXISTS gone")
	other.Want(":0")
	p.RequireIdle()
}

func TestBlockedClientsReplyMode(t *testing.T) {
	p := newBlockingServer(t)
	c, other := p.Session(), p.Session()
	c.Send("CLIENT REPLY SKIP|TAKE k 0|PING")
	p.AwaitBlocked(1)
	other.Send("SET k 1")
	other.Want("+OK")
	c.Want("+PONG")
	c.Send("CLIENT REPLY OFF|TAKE other 0.001|INCR done|TAKE k 0|CLIENT REPLY ON")
	require.Eventually(t, func() bool {
		other.Send("EXISTS done")
		return servertest.ReadLines(t, other.R, 1) == ":1\r\n"
	}, 10*time.Second, time.Millisecond)
	p.AwaitBlocked(1)
	other.Send("SET k 1")
	other.Want("+OK")
	c.Want("+OK")
	p.RequireIdle()
}

// TestEffectsOfServing: what a blocked client is served is an effect by itself, after that of the command which made it possible.
func TestEffectsOfServing(t *testing.T) {
	p := servertest.NewPipeServer(t)
	first, second, third, other := p.Session(), p.Session(), p.Session(), p.Session()
	first.Send("SELECT 3|BLPOP k 0")
	p.AwaitBlocked(1)
	second.Send("SELECT 3|BRPOPLPUSH k to 0")
	p.AwaitBlocked(2)
	third.Send("SELECT 3|BLMPOP 0 1 k LEFT COUNT 5")
	p.AwaitBlocked(3)
	p.Srv.Lock()
	p.Srv.Effects.Enable(math.MaxInt64)
	p.Srv.Unlock()
	other.Send("SELECT 3|RPUSH k a b c d e")
	other.Want("+OK :5")
	p.RequireIdle()
	p.Srv.Lock()
	defer p.Srv.Unlock()
	words := strings.FieldsFunc(string(p.Srv.Effects.Buf), func(r rune) bool { return r == '\r' || r == '\n' })
	words = slices.DeleteFunc(words, func(word string) bool { return word[0] == '$' || word[0] == '*' })
	require.Equal(t, "SELECT 3 RPUSH k a b c d e LPOP k LMOVE k to RIGHT LEFT LPOP k 3", strings.Join(words, " "))
}

// TestPauseHoldsBackMoreThanABatch: a client that sends more than a batch during a pause once had its worker read and rewind the
// same commands for as long as the pause lasted.
func TestPauseHoldsBackMoreThanABatch(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c, other := p.Session(), p.Session()
	other.Send("CLIENT PAUSE 600000")
	other.Want("+OK")
	c.Send("PING" + strings.Repeat("|PING", 2*exec.BatchCommands))
	require.Eventually(t, func() bool {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return len(p.Srv.Pause.Held) == 1
	}, 10*time.Second, time.Millisecond)
	p.Srv.Lock()
	p.Srv.EndPause(p.Srv.Pause.Until)
	p.Srv.Unlock()
	for range 2*exec.BatchCommands + 1 {
		c.Want("+PONG")
	}
}

// TestBlockedClientIsNotIdle: a client that waits is spared by the idle timeout, and others are not.
func TestBlockedClientIsNotIdle(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c, idle := p.Session(), p.Session()
	idle.Send("CONFIG SET timeout 1")
	idle.Want("+OK")
	c.Send("BLPOP k 0")
	p.AwaitBlocked(1)
	p.Srv.Lock()
	p.Srv.ClientsSlice(p.Srv.Clock.Read() + int64(time.Hour))
	p.Srv.Unlock()
	_, err := idle.R.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	other := p.Session()
	other.Send("RPUSH k v")
	other.Want(":1")
	c.Want("*2 $1 k $1 v")
}

// TestBlockedClientsInputIsBounded: what a client sends while it waits counts towards client-query-buffer-limit.
func TestBlockedClientsInputIsBounded(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c, other := p.Session(), p.Session()
	other.Send("CONFIG SET client-query-buffer-limit 1mb")
	other.Want("+OK")
	c.Send("BLPOP k 0")
	p.AwaitBlocked(1)
	ping := []byte(strings.Repeat("PING\r\n", 1000))
	var err error
	sent := 0
	for err == nil {
		_, err = c.Conn.Write(ping)
		sent += len(ping)
		require.Less(t, sent, 4<<20)
	}
	p.RequireIdle()
}

// TestBlockedClientsInputCountsAsMemory, all of it, until it has run.
func TestBlockedClientsInputCountsAsMemory(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c, other := p.Session(), p.Session()
	c.Send("BLPOP k 0")
	p.AwaitBlocked(1)
	memory := func() int {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return p.Srv.ClientMemory()
	}
	before := memory()
	const pings, each = 1000, 100
	for range pings / each {
		_, err := c.Conn.Write([]byte(strings.Repeat("PING "+strings.Repeat("x", 1000)+"\r\n", each)))
		require.NoError(t, err)
	}
	// What was there before does not count here: buffers that the first commands needed may have been given back meanwhile.
	require.Eventually(t, func() bool { return memory() >= pings*1000 }, time.Minute, time.Millisecond)
	other.Send("RPUSH k v")
	other.Want(":1")
	c.Want("*2 $1 k $1 v")
	for range pings {
		c.Want("$1000 " + strings.Repeat("x", 1000))
	}
	require.Eventually(t, func() bool { return memory() < before+pings*100 }, time.Minute, time.Millisecond)
}

// TestServedWithManyKeysLeavesTheOthers: who was served, and still stands in the queue since it waited for many keys, keeps nobody behind it
// from being served.
func TestServedWithManyKeysLeavesTheOthers(t *testing.T) {
	p := servertest.NewPipeServer(t)
	first, second, other := p.Session(), p.Session(), p.Session()
	names := []string{"k"}
	for i := range 3000 {
		names = append(names, fmt.Sprintf("x%d", i))
	}
	first.Send("BLPOP " + strings.Join(names, " ") + " 0")
	p.AwaitBlocked(1)
	second.Send("BLPOP k 0")
	p.AwaitBlocked(2)
	other.Send("RPUSH k one two")
	other.Want(":2")
	first.Want("*2 $1 k $3 one")
	second.Want("*2 $1 k $3 two")
	p.AwaitBlocked(0)
}

// TestGoneKeyBehindOthers: that a stream has gone is told to whoever reads it for a group, behind others who wait for a list of that name; and these are
// served in their order as elements come one at a time.
func TestGoneKeyBehindOthers(t *testing.T) {
	p := servertest.NewPipeServer(t)
	first, second, reader, other := p.Session(), p.Session(), p.Session(), p.Session()
	first.Send("BLPOP k 0")
	p.AwaitBlocked(1)
	second.Send("BLPOP k 0")
	p.AwaitBlocked(2)
	other.Send("XGROUP CREATE k g $ MKSTREAM")
	other.Want("+OK")
	reader.Send("XREADGROUP GROUP g c BLOCK 0 STREAMS k >")
	p.AwaitBlocked(3)
	other.Send("DEL k")
	other.Want(":1")
	require.Equal(t, "-UNBLOCKED the stream key no longer exists\r\n", servertest.ReadLines(t, reader.R, 1))
	for _, c := range []struct {
		*servertest.Session
		element string
	}{{first, "one"}, {second, "two"}} {
		other.Send("RPUSH k " + c.element)
		other.Want(":1")
		c.Want("*2 $1 k $3 " + c.element)
	}
	p.AwaitBlocked(0)
}

// TestUsedUpKeyLeavesTheOrder: those who wait for another kind of value are not passed by others who have come later, wherever a look at who waits
// has ended.
func TestUsedUpKeyLeavesTheOrder(t *testing.T) {
	p := servertest.NewPipeServer(t)
	first, list, last, other := p.Session(), p.Session(), p.Session(), p.Session()
	for i, s := range []*servertest.Session{first, list, last} {
		s.Send([]string{"BZPOPMIN k 0", "BLPOP k 0", "BZPOPMIN k 0"}[i])
		p.AwaitBlocked(i + 1)
	}
	other.Send("RPUSH k x")
	other.Want(":1")
	list.Want("*2 $1 k $1 x")
	other.Send("ZADD k 1 a 2 b")
	other.Want(":2")
	first.Want("*3 $1 k $1 a $1 1")
	last.Want("*3 $1 k $1 b $1 2")
}

// TestIdleClients: timeout ends the connections of clients that do nothing, and of no others: those whose input or output moves do something.
func TestIdleClients(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("PING")
	cl := w.Conn.Client.(*command.Client)
	idle := func(seconds int64) bool {
		w.Now += seconds * 1e9
		w.Srv.Lock()
		defer w.Srv.Unlock()
		w.Srv.Clock.Read()
		return w.Srv.Idle(cl, 10*time.Second)
	}
	require.False(t, idle(9))
	for n := range 5 {
		cl.Input.Store(int64(n + 1)) // as of a long command that comes slowly
		require.False(t, idle(11))
	}
	cl.Monitors = true
	require.False(t, idle(11))
	cl.Monitors = false
	require.True(t, idle(1))
}

// TestMessagesBehindACommandAreBounded: what a client is told of its own writes, and what it publishes to itself, is limited while its command
// runs, and a client that has too much of it is closed.
func TestMessagesBehindACommandAreBounded(t *testing.T) {
	for _, calls := range []string{
		`CLIENT TRACKING ON|EVAL "for i=1,1000 do redis.call('get',KEYS[1]) redis.call('set',KEYS[1],i) end" 1 ` + strings.Repeat("k", 10_000),
		`SUBSCRIBE ch|CLIENT REPLY OFF|EVAL "for i=1,1000 do redis.call('publish','ch',KEYS[1]) end" 1 ` + strings.Repeat("k", 10_000),
	} {
		p := servertest.NewPipeServer(t)
		admin, c := p.Session(), p.Session()
		admin.Send(`CONFIG SET client-output-buffer-limit "normal 1mb 0 0 pubsub 1mb 0 0"`)
		admin.Want("+OK")
		c.Send("HELLO 3|" + calls)
		_, err := io.Copy(io.Discard, c.Conn)
		require.NoError(t, err, "it is closed")
	}
}

// TestMovesAndServedPopsCountOnce: an element that is moved is one change that no snapshot has, as is one that is pushed for somebody who
// waits for it, as in Redis.
func TestMovesAndServedPopsCountOnce(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c, other := p.Session(), p.Session()
	other.Send("XGROUP CREATE st g 0 MKSTREAM")
	other.Want("+OK")
	changes := func() uint64 {
		p.Srv.Lock()
		defer p.Srv.Unlock()
		return p.Srv.Changes()
	}
	for _, tc := range []struct {
		waits, does, answer string
		changes             uint64
	}{
		{"", "RPUSH l a", ":1", 1},
		{"", "LMOVE l m LEFT RIGHT", "$1 a", 1},
		{"", "LMOVE m m LEFT RIGHT", "$1 a", 1},
		{"", "RPOPLPUSH m l", "$1 a", 1},
		{"", "DEL l", ":1", 1},
		{"BLPOP l 0", "RPUSH l a", ":1", 1},
		{"BRPOP l 0", "RPUSH l a", ":1", 1},
		{"BLMOVE l m LEFT RIGHT 0", "RPUSH l a", ":1", 1},
		{"BRPOPLPUSH l m 0", "RPUSH l a", ":1", 1},
		{"BLMPOP 0 1 l LEFT", "RPUSH l a", ":1", 2},
		{"BZPOPMIN z 0", "ZADD z 1 a", ":1", 2},
		{"XREADGROUP GROUP g c BLOCK 0 STREAMS st >", "XADD st 1-1 a 1", "$3 1-1", 1},
	} {
		if tc.waits != "" {
			c.Send(tc.waits)
			p.AwaitBlocked(1)
		}
		before := changes()
		other.Send(tc.does)
		other.Want(tc.answer)
		p.AwaitBlocked(0)
		require.Equal(t, tc.changes, changes()-before, "%s | %s", tc.waits, tc.does)
		if tc.waits != "" {
			unread := c.R
			go func() { _, _ = io.Copy(io.Discard, unread) }()
			c = p.Session()
		}
	}
}

// TestServedClientHearsAfterItsReply: what a woken client changes itself is told to it behind its reply, in Redis's order.
func TestServedClientHearsAfterItsReply(t *testing.T) {
	for _, tc := range []struct{ tracking, waits, does, hears string }{
		{"", "BLMOVE l m LEFT RIGHT 0", "RPUSH l a", ">2 $10 invalidate *1 $1 l $1 a >2 $10 invalidate *1 $1 m"},
		{"", "BRPOPLPUSH l m 0", "RPUSH l a", ">2 $10 invalidate *1 $1 l $1 a >2 $10 invalidate *1 $1 m"},
		{"", "BLPOP l 0", "RPUSH l a", ">2 $10 invalidate *1 $1 l *2 $1 l $1 a"},
		{" NOLOOP", "BLMOVE l m LEFT RIGHT 0", "RPUSH l a", ">2 $10 invalidate *1 $1 l $1 a"},
		{" BCAST", "BLMOVE l m LEFT RIGHT 0", "RPUSH l a", "$1 a >2 $10 invalidate *2 $1 l $1 m"},
		{" BCAST NOLOOP", "BLMOVE l m LEFT RIGHT 0", "RPUSH l a", "$1 a >2 $10 invalidate *1 $1 l"},
		{" BCAST NOLOOP", "BLPOP l 0", "RPUSH l a", "*2 $1 l $1 a >2 $10 invalidate *1 $1 l"},
		{" BCAST NOLOOP", "BLMOVE l l LEFT RIGHT 0", "RPUSH l a", "$1 a"},
		{" BCAST NOLOOP", "BLMPOP 0 1 l LEFT", "RPUSH l a", "*2 $1 l *1 $1 a"},
		{" BCAST NOLOOP", "BZPOPMIN z 0", "ZADD z 1 a", "*3 $1 z $1 a ,1"},
	} {
		p := servertest.NewPipeServer(t)
		c, other := p.Session(), p.Session()
		c.Send("HELLO 3")
		for servertest.ReadLines(t, c.R, 1) != "*0\r\n" { // the end of HELLO's reply
		}
		c.Send("CLIENT TRACKING ON" + tc.tracking + "|LLEN l|LLEN m|ZCARD z|PING")
		c.Want("+OK :0 :0 :0 +PONG")
		c.Send(tc.waits)
		p.AwaitBlocked(1)
		other.Send(tc.does)
		other.Want(":1")
		c.Want(tc.hears)
		c.Send("PING")
		c.Want("+PONG")
	}
}
