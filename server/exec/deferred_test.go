package exec_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// distant is a server whose GET is answered later, when the test says so.
type distant struct {
	*servertest.WorkerClient
	asked []*exec.Answer
	keys  []string
}

func newDistant(t *testing.T) *distant {
	d := &distant{WorkerClient: servertest.NewWorkerClient(t)}
	get := d.Srv.Commands.Lookup([]byte("GET"))
	get.Flags |= command.Deferring
	get.Handler = func(c *command.Ctx) {
		a := &exec.Answer{}
		d.Srv.Defer(c, a, 100)
		d.asked, d.keys = append(d.asked, a), append(d.keys, string(c.Args[1]))
	}
	return d
}

// send has the worker run inline commands, with | between them, and returns what was answered by then.
func (d *distant) send(text string) string {
	d.T.Helper()
	replies, more := d.Turn([]byte(strings.ReplaceAll(text, "|", "\r\n") + "\r\n"))
	require.False(d.T, more)
	return string(replies)
}

// resume has the worker look at the client's further input, and returns all that was answered by then.
func (d *distant) resume() string {
	d.Worker.Batch(d.Ready)
	return string(d.Conn.Out.Bytes())
}

// answer answers the i-th call with its key, and returns all that was answered since the last send.
func (d *distant) answer(i int) string {
	d.Srv.Lock()
	defer d.Srv.Unlock()
	d.Srv.BeginReply(d.asked[i]).BulkString(d.keys[i])
	d.Srv.EndReply(d.asked[i])
	return string(d.Conn.Out.Bytes())
}

func (d *distant) client() *command.Client { return d.Conn.Client.(*command.Client) }

// TestLaterRepliesKeepTheirOrder: replies come in the order of the commands, whichever of them is there first.
func TestLaterRepliesKeepTheirOrder(t *testing.T) {
	d := newDistant(t)
	require.Empty(t, d.send("GET a|GET b|GET c"))
	require.Equal(t, []string{"a", "b", "c"}, d.keys)
	require.Empty(t, d.answer(1))
	require.Equal(t, "$1\r\na\r\n$1\r\nb\r\n", d.answer(0))
	require.Empty(t, d.send("GET d"))
	require.Empty(t, d.answer(3))
	require.Equal(t, "$1\r\nc\r\n$1\r\nd\r\n", d.answer(2))
	require.Zero(t, d.Srv.AnswersToCome())
	require.False(t, d.Srv.Gate.Has(command.GateDeferred))
	require.Equal(t, "+PONG\r\n", d.send("PING"))
}

// TestAnswersAreFreedWithTheirReplies: an answer whose reply waits for others is not let go of before that is sent, or its client has gone.
func TestAnswersAreFreedWithTheirReplies(t *testing.T) {
	d := newDistant(t)
	other := netpoll.Detached("127.0.0.1:3", "127.0.0.1:2", false)
	d.Worker.Opened(other)
	other.In.Received(copy(other.In.Space(&d.Pool), "GET a\r\nGET b\r\nGET c\r\nGET d\r\n"))
	d.Worker.Batch([]*netpoll.Conn{other})
	freed := make([]bool, len(d.asked))
	for i, a := range d.asked {
		a.Free = func() { freed[i] = true }
	}
	d.answer(1)
	require.Equal(t, []bool{false, false, false, false}, freed)
	d.answer(0)
	require.Equal(t, []bool{true, true, false, false}, freed)
	d.answer(3)
	require.Equal(t, []bool{true, true, false, false}, freed)
	d.Worker.Closed(other)
	require.Equal(t, []bool{true, true, false, true}, freed)
	d.answer(2)
	require.Equal(t, []bool{true, true, true, true}, freed)
}

// TestCommandsWaitForLaterReplies: what is answered here waits until nothing is under way before it, and so does broken input.
func TestCommandsWaitForLaterReplies(t *testing.T) {
	d := newDistant(t)
	require.Empty(t, d.send("GET a|GET b|PING|GET c"))
	require.Equal(t, []string{"a", "b"}, d.keys)
	require.Equal(t, "$1\r\na\r\n", d.answer(0))
	require.Equal(t, "$1\r\na\r\n", d.resume())
	require.Equal(t, "$1\r\na\r\n$1\r\nb\r\n", d.answer(1))
	require.Equal(t, "$1\r\na\r\n$1\r\nb\r\n+PONG\r\n", d.resume())
	require.Equal(t, []string{"a", "b", "c"}, d.keys)
	d.answer(2)

	require.Empty(t, d.send("GET d|*1|x"))
	require.False(t, closing(d))
	d.answer(3)
	require.Equal(t, "$1\r\nd\r\n-ERR Protocol error: expected '$', got 'x'\r\n", d.resume())
	require.True(t, closing(d))
}

func closing(d *distant) bool {
	d.Srv.Lock()
	defer d.Srv.Unlock()
	return d.Conn.Closing()
}

// TestErrorsFollowLaterReplies: a command that could be answered later and is refused at once is answered in its turn.
func TestErrorsFollowLaterReplies(t *testing.T) {
	d := newDistant(t)
	require.Empty(t, d.send("GET a|GET|GET b"))
	require.Equal(t, []string{"a", "b"}, d.keys)
	require.Empty(t, d.answer(1))
	require.Equal(t, "$1\r\na\r\n-ERR wrong number of arguments for 'get' command\r\n$1\r\nb\r\n", d.answer(0))
}

// TestLaterRepliesThatAreLeftOut: CLIENT REPLY holds for commands as they came.
func TestLaterRepliesThatAreLeftOut(t *testing.T) {
	d := newDistant(t)
	require.Empty(t, d.send("CLIENT REPLY SKIP|GET a|GET b|GET|CLIENT REPLY OFF|GET c|GET|GET d"))
	require.Equal(t, []string{"a", "b"}, d.keys)
	d.answer(1)
	require.Equal(t, "$1\r\nb\r\n-ERR wrong number of arguments for 'get' command\r\n", d.answer(0))
	require.Equal(t, []string{"a", "b"}, d.keys)
	before := d.resume()
	require.Equal(t, []string{"a", "b", "c", "d"}, d.keys)
	d.answer(3)
	require.Equal(t, before, d.answer(2))
	require.Equal(t, before+"+OK\r\n", before+d.send("CLIENT REPLY ON"))
}

// TestLaterRepliesOfClientsThatAreGone go to nobody.
func TestLaterRepliesOfClientsThatAreGone(t *testing.T) {
	d := newDistant(t)
	other := netpoll.Detached("127.0.0.1:3", "127.0.0.1:2", false)
	d.Worker.Opened(other)
	other.In.Received(copy(other.In.Space(&d.Pool), "GET x\r\nGET y\r\nGET\r\n"))
	d.Worker.Batch([]*netpoll.Conn{other})
	require.Equal(t, []string{"x", "y"}, d.keys)
	d.answer(1)
	d.Worker.Closed(other)
	require.Equal(t, 1, d.Srv.AnswersToCome())
	require.Nil(t, d.asked[0].Client())
	d.answer(0)
	require.Zero(t, d.Srv.AnswersToCome())
	require.Empty(t, other.Out.Bytes())
}

// TestAnswersAreUsedAgainWithoutTheirReplies: a reply that was kept for a client that has gone is not another's, who wants none.
func TestAnswersAreUsedAgainWithoutTheirReplies(t *testing.T) {
	d := newDistant(t)
	other := netpoll.Detached("127.0.0.1:3", "127.0.0.1:2", false)
	d.Worker.Opened(other)
	other.In.Received(copy(other.In.Space(&d.Pool), "GET x\r\nGET y\r\n"))
	d.Worker.Batch([]*netpoll.Conn{other})
	d.answer(1)
	d.Worker.Closed(other)
	d.answer(0)
	used := []*exec.Answer{d.asked[0], d.asked[1]}
	d.Srv.Commands.Lookup([]byte("GET")).Handler = func(c *command.Ctx) {
		d.Srv.Defer(c, used[0], 100)
		d.asked, d.keys, used = append(d.asked, used[0]), append(d.keys, string(c.Args[1])), used[1:]
	}
	require.Empty(t, d.send("CLIENT REPLY OFF|GET a|GET b"))
	require.Equal(t, []string{"x", "y", "a", "b"}, d.keys)
	d.answer(3)
	require.Empty(t, d.answer(2))
}

// TestLaterRepliesAreBounded: a client has so many commands under way, and goes on when half of them are answered.
func TestLaterRepliesAreBounded(t *testing.T) {
	d := newDistant(t)
	const before = 100 // commands with short replies
	for i := range before {
		d.send("GET k")
		d.answer(i)
	}
	input := strings.Repeat("GET k\r\n", 3*exec.MaxDeferred)
	_, more := d.Turn([]byte(input))
	for i := 0; i < 10 && more; i++ {
		_, more = d.Turn(nil)
	}
	require.Len(t, d.asked, before+exec.MaxDeferred)
	for i := range exec.MaxDeferred / 2 {
		require.Len(t, d.asked, before+exec.MaxDeferred)
		d.answer(before + i)
	}
	d.resume()
	require.Greater(t, len(d.asked), before+exec.MaxDeferred)
	require.LessOrEqual(t, len(d.asked), before+exec.MaxDeferred+exec.MaxDeferred/2)
}

// TestLargeLaterRepliesAreFew: how many commands a client has under way depends on how large its replies are, so that it does not keep others
// waiting for theirs: few at first, then one at a time, and more again when its replies are short again.
func TestLargeLaterRepliesAreFew(t *testing.T) {
	d := newDistant(t)
	d.Turn([]byte(strings.Repeat("GET k\r\n", 500)))
	require.Len(t, d.asked, exec.FirstDeferred)
	large := strings.Repeat("x", exec.MaxComing)
	for i := range exec.FirstDeferred {
		d.keys[i] = large
		d.answer(i)
		d.resume()
		d.Conn.Out.Truncate(0)
	}
	require.Len(t, d.asked, exec.FirstDeferred+1, "one at a time")
	for i := exec.FirstDeferred; i < 100; i++ {
		d.answer(i)
		d.resume()
	}
	require.Greater(t, len(d.asked)-100, exec.FirstDeferred)
}

// TestLaterRepliesCountAsMemory: what is kept for a client counts as its memory, and has its limit.
func TestLaterRepliesCountAsMemory(t *testing.T) {
	d := newDistant(t)
	before := d.client().Memory()
	d.send("GET a|GET b|GET c")
	require.Greater(t, d.client().Memory(), before+300)
	d.keys[1] = strings.Repeat("b", 1<<20)
	d.answer(1)
	require.Greater(t, d.client().Memory(), before+1<<20)
	require.False(t, closing(d))
	d.keys[2] = strings.Repeat("c", 65<<20) // beyond client-output-buffer-limit
	d.answer(2)
	require.True(t, closing(d))
	d.answer(0)
	require.Zero(t, d.Srv.AnswersToCome())
}

// TestLaterRepliesThatWereSentTakeUpNothing: neither they, nor what their commands took up.
func TestLaterRepliesThatWereSentTakeUpNothing(t *testing.T) {
	d := newDistant(t)
	d.send("GET a|GET b")
	most := d.client().Deferred.Bytes()
	d.keys[1] = strings.Repeat("b", 1000)
	d.answer(1)
	require.Greater(t, d.client().Deferred.Bytes(), most)
	d.answer(0)
	require.Equal(t, most-2*100, d.client().Deferred.Bytes())
}

// TestFirstLaterReplyHasItsLimit: one that waits for nothing is not kept, and is not sent either if it is too large.
func TestFirstLaterReplyHasItsLimit(t *testing.T) {
	d := newDistant(t)
	d.send("GET a|GET b")
	d.keys[0] = strings.Repeat("a", 65<<20) // beyond client-output-buffer-limit
	d.answer(0)
	require.True(t, closing(d))
}

// TestClientsWaitWhileTooMuchIsUnderWay and go on when that is over.
func TestClientsWaitWhileTooMuchIsUnderWay(t *testing.T) {
	d := newDistant(t)
	overloaded := false
	d.Srv.SetOverloaded(func() bool { return overloaded })
	d.send("GET a")
	overloaded = true
	require.Empty(t, d.send("GET b|PING"))
	require.Equal(t, []string{"a"}, d.keys)
	require.Equal(t, "$1\r\na\r\n", d.answer(0))
	overloaded = false
	d.Srv.Lock()
	d.Srv.Relieve()
	d.Srv.Unlock()
	d.resume()
	require.Equal(t, []string{"a", "b"}, d.keys)
	require.Equal(t, "$1\r\na\r\n$1\r\nb\r\n", d.answer(1))
}

// TestLaterRepliesBehindANetConn: a connection without a descriptor is not read either while its client waits, and goes on afterwards.
func TestLaterRepliesBehindANetConn(t *testing.T) {
	p := servertest.NewPipeServer(t)
	asked := make(chan *exec.Answer, 2*exec.MaxDeferred)
	get := p.Srv.Commands.Lookup([]byte("GET"))
	get.Flags |= command.Deferring
	get.Handler = func(c *command.Ctx) {
		a := &exec.Answer{}
		p.Srv.Defer(c, a, 100)
		asked <- a
	}
	s := p.Session()
	for range 3 {
		s.Send("GET a|PING|GET b|GET c")
		for _, reply := range []string{"+a", "+b", "+c"} {
			a := <-asked

			p.Srv.Lock()
			p.Srv.BeginReply(a).Simple(reply[1:])
			p.Srv.EndReply(a)
			p.Srv.Unlock()
			if reply == "+a" {
				s.Want("+a +PONG")
			} else {
				s.Want(reply)
			}
		}
	}
	gone := p.Session()
	gone.Send("GET a|PING")
	a := <-asked
	gone.Conn.Close()
	p.Srv.Lock()
	p.Srv.BeginReply(a).Simple("a")
	p.Srv.EndReply(a)
	p.Srv.Unlock()
	s.Conn.Close()
}

// TestClientsThatEndTheirSideBehindANetConn get the replies that are to come, and those to what they have sent last.
func TestClientsThatEndTheirSideBehindANetConn(t *testing.T) {
	p := servertest.NewPipeServer(t)
	asked := make(chan *exec.Answer, 1)
	get := p.Srv.Commands.Lookup([]byte("GET"))
	get.Flags |= command.Deferring
	get.Handler = func(c *command.Ctx) {
		a := &exec.Answer{}
		p.Srv.Defer(c, a, 100)
		asked <- a
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := ln.Accept()
	require.NoError(t, err)
	p.Conns.Go(func() { netpoll.ServeConn(p.Srv, server) })
	_, err = client.Write([]byte("GET a\r\nPING\r\n"))
	require.NoError(t, err)
	require.NoError(t, client.(*net.TCPConn).CloseWrite())
	a := <-asked
	time.Sleep(20 * time.Millisecond) // in which the server learns that nothing more comes
	p.Srv.Lock()
	if a.Client() != nil {
		p.Srv.BeginReply(a).Simple("a")
	}
	p.Srv.EndReply(a)
	p.Srv.Unlock()
	require.NoError(t, client.SetDeadline(time.Now().Add(20*time.Second)))
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, "+a\r\n+PONG\r\n", string(all))
}
