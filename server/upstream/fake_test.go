package upstream

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	stall   = "stall"    // a fake node's reply: none, and none to what follows on the connection
	hangup  = "hangup"   // it closes the connection
	trickle = "trickle " // and a number of bytes: a string that comes byte by byte, with tricklePause between two
)

// half and a number of bytes: a string of which half comes, and the rest when the node's release is closed.
const half = "half "

// dribble and a number of bytes: a string of which half comes, and the rest byte by byte, as by trickle.
const dribble = "dribble "

// now and a reply: it leaves before what follows is looked at.
const now = "now "

const tricklePause = 5 * time.Millisecond

// fakeNode is a server that answers as a test says, and shakes hands by itself.
type fakeNode struct {
	addr     string
	listener net.Listener
	accepted atomic.Int64
	release  chan struct{} // see half

	mu     sync.Mutex
	handle func(args []string) string // "" = as a plain primary would
	mode   string
	conns  map[net.Conn]bool
	seen   []string // all but handshakes
}

func startFake(t *testing.T, handle func(args []string) string) *fakeNode {
	t.Helper()
	return startFakeAt(t, "127.0.0.1:0", handle)
}

func startFakeAt(t *testing.T, addr string, handle func(args []string) string) *fakeNode {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	f := &fakeNode{addr: listener.Addr().String(), listener: listener, handle: handle, mode: "standalone", conns: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.accepted.Add(1)
			f.mu.Lock()
			f.conns[conn] = true
			f.mu.Unlock()
			serving.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		f.hangUp()
		serving.Wait()
	})
	return f
}

// hangUp closes all connections.
func (f *fakeNode) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
}

// count returns how often a command was seen.
func (f *fakeNode) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.seen {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

func (f *fakeNode) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

func (f *fakeNode) answer(handle func(args []string) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle = handle
}

func (f *fakeNode) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		f.mu.Lock()
		delete(f.conns, conn)
		f.mu.Unlock()
	}()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		if in.Buffered() == 0 && out.Flush() != nil { // as redis-server does: the replies of what was read together leave together
			return
		}
		args, err := readCommand(in)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.seen = append(f.seen, strings.Join(args, " "))
		handle, mode := f.handle, f.mode
		f.mu.Unlock()
		reply := ""
		if handle != nil {
			reply = handle(args)
		}
		if reply == "" {
			reply = plainReply(args, mode)
		}
		switch reply {
		case stall:
			_ = out.Flush()
			_, _ = io.Copy(io.Discard, in)
			return
		case hangup:
			_ = out.Flush()
			return
		}
		if text, is := strings.CutPrefix(reply, now); is {
			_, _ = out.WriteString(text)
			_ = out.Flush()
			continue
		}
		if size, stops := strings.CutPrefix(reply, half); stops {
			n, _ := strconv.Atoi(size)
			_, _ = fmt.Fprintf(out, "$%d\r\n%s", n, strings.Repeat("x", n/2))
			_ = out.Flush()
			<-f.release
			reply = strings.Repeat("x", n-n/2) + "\r\n"
		}
		if how, size, _ := strings.Cut(reply, " "); how+" " == trickle || how+" " == dribble {
			n, _ := strconv.Atoi(size)
			atOnce := 0
			if how+" " == dribble {
				atOnce = n / 2
			}
			_, _ = fmt.Fprintf(out, "$%d\r\n%s", n, strings.Repeat("x", atOnce))
			for range n - atOnce {
				_ = out.WriteByte('x')
				if out.Flush() != nil {
					return
				}
				time.Sleep(tricklePause)
			}
			reply = "\r\n"
		}
		if _, err := out.WriteString(reply); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) (args []string, err error) {
	n, err := readCount(in, '*')
	for range n {
		size, err := readCount(in, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		args = append(args, string(text[:size]))
	}
	return args, err
}

func readCount(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q is no %c", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func array(elements ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(elements), strings.Join(elements, ""))
}

func integer(n int) string { return fmt.Sprintf(":%d\r\n", n) }

func plainReply(args []string, mode string) string {
	switch strings.ToUpper(args[0]) {
	case "HELLO":
		return array(bulk("server"), bulk("redis"), bulk("version"), bulk("7.0.15"), bulk("mode"), bulk(mode), bulk("role"), bulk("master"))
	case "INFO":
		return bulk("# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n")
	case "PING":
		return "+PONG\r\n"
	case "TIME":
		return array(bulk(strconv.FormatInt(time.Now().Unix(), 10)), bulk("0"))
	case "GET":
		return bulk("value of " + args[1])
	case "ASKING", "SET", "SELECT":
		return "+OK\r\n"
	case "MULTI":
		return "+OK\r\n"
	case "SCRIPT":
		return bulk("sha")
	}
	return "-ERR unknown command '" + args[0] + "'\r\n"
}

// open returns an Upstream that is closed with the test. Calls have time enough on a busy machine, if the test does not say otherwise.
func open(t *testing.T, cfg Config) *Upstream {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	u := New(cfg, testLog)
	t.Cleanup(u.Close)
	return u
}

var testLog = slog.New(slog.DiscardHandler)

// started is open and Start, which must succeed. Replies are read as in a server, by a watcher.
func started(t *testing.T, cfg Config) *Upstream {
	t.Helper()
	u := open(t, cfg)
	readByWatcher(t, u)
	require.NoError(t, u.Start(t.Context()))
	return u
}

// result is a call's answer, kept.
type result struct {
	reply   string
	common  string
	failure *Failure
	node    string
	took    time.Duration
}

// pending is a call under way in a test.
type pending struct {
	Call
	sentAt time.Time
	done   chan result
}

// newCall prepares a call of one command.
func newCall(args ...string) *pending {
	p := &pending{done: make(chan result, 2)}
	p.Slot, p.Proto, p.Replies = -1, 2, 1
	p.Request = command(args...)
	if len(args) > 1 {
		p.Slot = int(Slot([]byte(args[1])))
	}
	p.Done = func(c *Call) {
		p.done <- result{reply: string(c.Reply), common: string(c.Common), failure: c.Err, node: c.Node, took: time.Since(p.sentAt)}
	}
	return p
}

func (p *pending) send(u *Upstream) *pending {
	p.sentAt = time.Now()
	u.Send(&p.Call)
	u.Flush()
	return p
}

func (p *pending) wait(t *testing.T) result {
	t.Helper()
	select {
	case r := <-p.done:
		return r
	case <-time.After(20 * time.Second):
		require.FailNow(t, "a call was never answered")
	}
	return result{}
}

// do sends a command and waits for its answer.
func do(t *testing.T, u *Upstream, args ...string) result {
	t.Helper()
	return newCall(args...).send(u).wait(t)
}
