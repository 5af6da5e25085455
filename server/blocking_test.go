package server

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/store"
)

// takeCommands has a command that blocks: TAKE key [key …] timeout answers with the first of the keys that has a string, and
// deletes it.
var takeCommands = []*Command{{
	Name: "take", Group: GroupString, Since: "test", Complexity: "O(1)", Summary: "Take a string.",
	Arity: -3, Flags: Write | NoScript | Blocking, Keys: keys("RW", 1, -2, 1), Reply: ReplyArray | ReplyNull,
	Handler: func(c *Ctx) {
		last := len(c.args) - 1
		until, ok := c.timeout(last, timeoutSeconds)
		if !ok {
			return
		}
		for i := 1; i < last; i++ {
			e, ok := c.db.Find(c.key(i), c.now)
			if ok && e.Kind() != store.KindString {
				c.err(errWrongType)
				return
			}
			if ok {
				takeString(c, c.key(i))
				return
			}
		}
		if !c.mayBlock() {
			c.reply.NullArray()
			return
		}
		c.block(blockOn{kind: store.KindString, keys: c.args[1:last], until: until, serve: takeString})
	},
}}

func takeString(c *Ctx, k store.Key) bool {
	e, ok := c.db.Find(k, c.now)
	if !ok {
		return false
	}
	c.reply.Array(2)
	c.reply.Bulk(k.Name)
	c.reply.Bulk(e.AppendString(nil))
	e.Delete()
	return true
}

func newBlockingServer(t *testing.T) *pipeServer {
	p := newPipeServer(t)
	p.srv.Lock()
	defer p.srv.Unlock()
	p.srv.commands = newRegistry(append(p.srv.commandGroups(), takeCommands)...)
	p.srv.stats.commands = make([]commandStats, len(p.srv.commands.all))
	return p
}

// session is a connection whose replies are read as text, line ends as spaces.
type session struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (p *pipeServer) session() *session {
	conn, r := p.dial()
	return &session{p.t, conn, r}
}

func (s *session) send(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.conn, strings.ReplaceAll(text, "|", "\r\n")+"\r\n")
	require.NoError(s.t, err)
}

// want reads as many lines as text has, and compares.
func (s *session) want(text string) {
	s.t.Helper()
	got := readLines(s.t, s.r, strings.Count(text, " ")+1)
	require.Equal(s.t, text, strings.TrimSpace(strings.ReplaceAll(got, "\r\n", " ")))
}

// awaitBlocked returns when so many clients are blocked.
func (p *pipeServer) awaitBlocked(n int) {
	require.Eventually(p.t, func() bool {
		p.srv.Lock()
		defer p.srv.Unlock()
		return p.srv.blocking.clients == n
	}, 10*time.Second, time.Millisecond)
}

func (p *pipeServer) requireIdle() {
	p.awaitBlocked(0)
	p.srv.Lock()
	defer p.srv.Unlock()
	require.Zero(p.t, p.srv.blocking.queues.Len())
	require.Empty(p.t, p.srv.blocking.timeouts)
	require.False(p.t, p.srv.gate.has(gateHolds))
	require.Nil(p.t, p.srv.keys.NextReady())
}

func TestBlockingServesInOrderOfArrival(t *testing.T) {
	p := newBlockingServer(t)
	clients := make([]*session, 5)
	for i := range clients {
		clients[i] = p.session()
		clients[i].send("TAKE other k k 0")
		p.awaitBlocked(i + 1)
	}
	pusher := p.session()
	for i, c := range clients {
		pusher.send(fmt.Sprintf("SET k v%d", i))
		pusher.want("+OK")
		c.want(fmt.Sprintf("*2 $1 k $2 v%d", i))
	}
	pusher.send("EXISTS k")
	pusher.want(":0")
	p.requireIdle()
}

// TestBlockedClientsInputWaits: what a client pipelines behind a command that blocks runs after it, more than a batch of it.
func TestBlockedClientsInputWaits(t *testing.T) {
	p := newBlockingServer(t)
	c, pusher := p.session(), p.session()
	c.send("CLIENT ID")
	id := strings.Trim(readLines(t, c.r, 1), ":\r\n")
	c.send("TAKE k 0" + strings.Repeat("|INCR n", 3*batchCommands))
	p.awaitBlocked(1)
	pusher.send("GET n|CLIENT LIST ID " + id)
	pusher.want("$-1")
	require.Contains(t, readLines(t, pusher.r, 3), "flags=bU ")
	c.send("INCR n|TAKE k 0|INCR n")
	pusher.send("GET n|SET k 1")
	pusher.want("$-1 +OK")
	c.want("*2 $1 k $1 1")
	for i := range 3*batchCommands + 1 {
		c.want(fmt.Sprintf(":%d", i+1))
	}
	p.awaitBlocked(1)
	pusher.send("SET k 2|GET n")
	pusher.want(fmt.Sprintf("+OK $3 %d", 3*batchCommands+1))
	c.want(fmt.Sprintf("*2 $1 k $1 2 :%d", 3*batchCommands+2))
	p.requireIdle()
}

// TestBlockedUntilTheTransactionIsOver: a key that a transaction adds and takes away again wakes nobody.
func TestBlockedUntilTheTransactionIsOver(t *testing.T) {
	p := newBlockingServer(t)
	c, pusher := p.session(), p.session()
	c.send("TAKE k 0")
	p.awaitBlocked(1)
	pusher.send("MULTI|SET k 1|DEL k|EXEC|MULTI|SET k 2|APPEND k 3|TAKE k 0|TAKE k 0|EXEC|MULTI|SET k 4|APPEND k 5|EXEC")
	pusher.want("+OK +QUEUED +QUEUED *2 +OK :1")
	pusher.want("+OK +QUEUED +QUEUED +QUEUED +QUEUED *4 +OK :2 *2 $1 k $2 23 *-1")
	pusher.want("+OK +QUEUED +QUEUED *2 +OK :2")
	c.want("*2 $1 k $2 45")
	c.send("TAKE k 0")
	p.awaitBlocked(1)
	pusher.send(`EVAL "redis.call('SET','k',1) redis.call('DEL','k') redis.call('SET','k',2) return redis.call('APPEND','k',3)" 0`)
	pusher.want(":2")
	c.want("*2 $1 k $2 23")
	p.requireIdle()
}

func TestBlockingSeesEveryWayInWhichAKeyAppears(t *testing.T) {
	p := newBlockingServer(t)
	pusher := p.session()
	for _, appears := range []string{
		"SET a 1|RENAME a k", "SET a 1|COPY a k", "SELECT 1|SET k 1|MOVE k 0|SELECT 0", "SELECT 1|SET k 1|SELECT 0|SWAPDB 0 1", "APPEND k 1", "SETRANGE k 0 1",
	} {
		c := p.session()
		c.send("TAKE k 0")
		p.awaitBlocked(1)
		pusher.send(appears)
		readLines(t, pusher.r, 1+strings.Count(appears, "|"))
		c.want("*2 $1 k $1 1")
		p.requireIdle()
	}
}

func TestBlockedClientOfAnotherKindWaitsOn(t *testing.T) {
	p := newBlockingServer(t)
	c, pusher := p.session(), p.session()
	c.send("TAKE k 0")
	p.awaitBlocked(1)
	pusher.send("HSET k f v|DEL k|SET k v")
	pusher.want(":1 :1 +OK")
	c.want("*2 $1 k $1 v")
	p.requireIdle()
}

func TestBlockingTimeout(t *testing.T) {
	p := newBlockingServer(t)
	c, other := p.session(), p.session()
	other.send("TAKE a b 0.05")
	c.send("TAKE a b 0.001|PING")
	c.want("*-1 +PONG")
	other.want("*-1")
	c.send("TAKE k 86400")
	p.awaitBlocked(1)
	p.srv.Lock()
	next := p.srv.endTimeouts(0)
	require.Positive(t, next)
	p.srv.endTimeouts(next)
	p.srv.Unlock()
	c.want("*-1")
	p.requireIdle()
}

func TestBlockingTimeoutArgument(t *testing.T) {
	p := newBlockingServer(t)
	c := p.session()
	const notAFloat, negative = "is not a float or out of range", "is negative"
	for _, tc := range [][2]string{
		{"x", notAFloat}, {`""`, notAFloat}, {"nan", notAFloat}, {"1e5000", notAFloat},
		{"-1", negative}, {"-0.002", negative}, {"-inf", negative}, {"-1e300", negative},
		{"inf", negative}, {"1e300", negative}, {"9223372036854775.808", negative},
	} {
		c.send("TAKE k " + tc[0])
		require.Equal(t, "-ERR timeout "+tc[1]+"\r\n", readLines(t, c.r, 1), tc[0])
	}
	c.send("SELECT 1")
	c.want("+OK")
	for _, forEver := range []string{"0", "-0", "-0.0005", "9000000000000", "9223372036854775.807"} {
		c.send("TAKE k " + forEver)
		p.awaitBlocked(1)
		setter := p.session()
		setter.send("SELECT 1|SET k v")
		setter.want("+OK +OK")
		c.want("*2 $1 k $1 v")
	}
	p.requireIdle()
}

func TestClientUnblock(t *testing.T) {
	p := newBlockingServer(t)
	c, other := p.session(), p.session()
	c.send("CLIENT ID")
	id := strings.Trim(readLines(t, c.r, 1), ":\r\n")
	other.send("CLIENT UNBLOCK " + id)
	other.want(":0")
	for args, reply := range map[string]string{"": "*-1", " TIMEOUT": "*-1", " timeout": "*-1", " ERROR": "-" + errUnblocked} {
		c.send("TAKE k 0|PING")
		p.awaitBlocked(1)
		other.send("CLIENT UNBLOCK " + id + args)
		other.want(":1")
		require.Equal(t, reply+"\r\n+PONG\r\n", readLines(t, c.r, 2))
		p.requireIdle()
	}
}

func TestBlockedClientsThatGo(t *testing.T) {
	p := newBlockingServer(t)
	killed, left, last, other := p.session(), p.session(), p.session(), p.session()
	killed.send("CLIENT ID")
	id := strings.Trim(readLines(t, killed.r, 1), ":\r\n")
	killed.send("TAKE k 10000")
	p.awaitBlocked(1)
	left.send("TAKE k 0|SET gone 1")
	p.awaitBlocked(2)
	last.send("TAKE k 0")
	p.awaitBlocked(3)
	left.conn.Close()
	p.awaitBlocked(2)
	other.send("MULTI|CLIENT KILL ID " + id + "|SET k v|EXEC") // killed, but still in the queue
	other.want("+OK +QUEUED +QUEUED *2 :1 +OK")
	last.want("*2 $1 k $1 v")
	other.send("EXISTS gone")
	other.want(":0")
	p.requireIdle()
}

func TestBlockedClientsReplyMode(t *testing.T) {
	p := newBlockingServer(t)
	c, other := p.session(), p.session()
	c.send("CLIENT REPLY SKIP|TAKE k 0|PING")
	p.awaitBlocked(1)
	other.send("SET k 1")
	other.want("+OK")
	c.want("+PONG")
	c.send("CLIENT REPLY OFF|TAKE other 0.001|INCR done|TAKE k 0|CLIENT REPLY ON")
	require.Eventually(t, func() bool {
		other.send("EXISTS done")
		return readLines(t, other.r, 1) == ":1\r\n"
	}, 10*time.Second, time.Millisecond)
	p.awaitBlocked(1)
	other.send("SET k 1")
	other.want("+OK")
	c.want("+OK")
	p.requireIdle()
}

// TestEffectsOfServing: what a blocked client is served is an effect by itself, after that of the command which made it possible.
func TestEffectsOfServing(t *testing.T) {
	p := newPipeServer(t)
	first, second, third, other := p.session(), p.session(), p.session(), p.session()
	first.send("SELECT 3|BLPOP k 0")
	p.awaitBlocked(1)
	second.send("SELECT 3|BRPOPLPUSH k to 0")
	p.awaitBlocked(2)
	third.send("SELECT 3|BLMPOP 0 1 k LEFT COUNT 5")
	p.awaitBlocked(3)
	p.srv.Lock()
	p.srv.effects.enable(math.MaxInt64)
	p.srv.Unlock()
	other.send("SELECT 3|RPUSH k a b c d e")
	other.want("+OK :5")
	p.requireIdle()
	p.srv.Lock()
	defer p.srv.Unlock()
	words := strings.FieldsFunc(string(p.srv.effects.buf), func(r rune) bool { return r == '\r' || r == '\n' })
	words = slices.DeleteFunc(words, func(word string) bool { return word[0] == '$' || word[0] == '*' })
	require.Equal(t, "SELECT 3 RPUSH k a b c d e LPOP k LMOVE k to RIGHT LEFT LPOP k 3", strings.Join(words, " "))
}

// TestPauseHoldsBackMoreThanABatch: a client that sends more than a batch during a pause once had its worker read and rewind the
// same commands for as long as the pause lasted.
func TestPauseHoldsBackMoreThanABatch(t *testing.T) {
	p := newPipeServer(t)
	c, other := p.session(), p.session()
	other.send("CLIENT PAUSE 600000")
	other.want("+OK")
	c.send("PING" + strings.Repeat("|PING", 2*batchCommands))
	require.Eventually(t, func() bool {
		p.srv.Lock()
		defer p.srv.Unlock()
		return len(p.srv.pause.held) == 1
	}, 10*time.Second, time.Millisecond)
	p.srv.Lock()
	p.srv.endPause(p.srv.pause.until)
	p.srv.Unlock()
	for range 2*batchCommands + 1 {
		c.want("+PONG")
	}
}

// TestBlockedClientIsNotIdle: a client that waits is spared by the idle timeout, and others are not.
func TestBlockedClientIsNotIdle(t *testing.T) {
	p := newPipeServer(t)
	c, idle := p.session(), p.session()
	idle.send("CONFIG SET timeout 1")
	idle.want("+OK")
	c.send("BLPOP k 0")
	p.awaitBlocked(1)
	p.srv.Lock()
	p.srv.clientsSlice(p.srv.clock.Read() + int64(time.Hour))
	p.srv.Unlock()
	_, err := idle.r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	other := p.session()
	other.send("RPUSH k v")
	other.want(":1")
	c.want("*2 $1 k $1 v")
}

// TestBlockedClientsInputIsBounded: what a client sends while it waits counts towards client-query-buffer-limit.
func TestBlockedClientsInputIsBounded(t *testing.T) {
	p := newPipeServer(t)
	c, other := p.session(), p.session()
	other.send("CONFIG SET client-query-buffer-limit 1mb")
	other.want("+OK")
	c.send("BLPOP k 0")
	p.awaitBlocked(1)
	ping := []byte(strings.Repeat("PING\r\n", 1000))
	var err error
	sent := 0
	for err == nil {
		_, err = c.conn.Write(ping)
		sent += len(ping)
		require.Less(t, sent, 4<<20)
	}
	p.requireIdle()
}

// TestMovesAndServedPopsCountOnce: an element that is moved is one change that no snapshot has, as is one that is pushed for somebody who
// waits for it, as in Redis.
func TestMovesAndServedPopsCountOnce(t *testing.T) {
	p := newPipeServer(t)
	c, other := p.session(), p.session()
	other.send("XGROUP CREATE st g 0 MKSTREAM")
	other.want("+OK")
	changes := func() uint64 {
		p.srv.Lock()
		defer p.srv.Unlock()
		return p.srv.changes()
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
			c.send(tc.waits)
			p.awaitBlocked(1)
		}
		before := changes()
		other.send(tc.does)
		other.want(tc.answer)
		p.awaitBlocked(0)
		require.Equal(t, tc.changes, changes()-before, "%s | %s", tc.waits, tc.does)
		if tc.waits != "" {
			unread := c.r
			go func() { _, _ = io.Copy(io.Discard, unread) }()
			c = p.session()
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
		p := newPipeServer(t)
		c, other := p.session(), p.session()
		c.send("HELLO 3")
		for readLines(t, c.r, 1) != "*0\r\n" { // the end of HELLO's reply
		}
		c.send("CLIENT TRACKING ON" + tc.tracking + "|LLEN l|LLEN m|ZCARD z|PING")
		c.want("+OK :0 :0 :0 +PONG")
		c.send(tc.waits)
		p.awaitBlocked(1)
		other.send(tc.does)
		other.want(":1")
		c.want(tc.hears)
		c.send("PING")
		c.want("+PONG")
	}
}
