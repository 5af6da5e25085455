package flood

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// limit is the output that one client may have waiting, as Common has it.
const limit = 64 * mib

// All are the floods.
var All = slices.Concat(requests, replies, owners, scripts, connections, gateways)

// requests are sent without waiting for answers.
var requests = []Flood{
	// Who has not said the password.
	{
		Name: "auth-200", Stranger: true, Flags: []string{"--requirepass", Password}, Conns: sized(50, 200), Attack: pours(command("AUTH", strings.Repeat("a", 16*kib))),
		Memory: bytes(128 * mib), Limit: 2600 * mib,
	},
	{
		Name: "auth-20", Stranger: true, Flags: []string{"--requirepass", Password}, Conns: same(20), Attack: pours(command("AUTH", strings.Repeat("a", 16*kib))),
		Memory: bytes(64 * mib),
	},
	{Name: "hello", Stranger: true, Flags: []string{"--requirepass", Password}, Conns: same(20), Attack: pours(command("HELLO", "3", "AUTH", "default", "wrong")), Memory: bytes(64 * mib)},

	{Name: "ping-reading", Conns: same(5), Attack: pours("PING\r\n"), Memory: bytes(128 * mib)},
	{Name: "ping-deaf", Conns: same(5), Attack: poursDeaf("PING\r\n"), Memory: bytes(5*limit + 64*mib)},
	{Name: "ping-array", Conns: same(20), Attack: pours(command("PING")), Memory: bytes(128 * mib)},
	{Name: "eval", Conns: same(20), Attack: pours(command("EVAL", "return redis.call('INCR', KEYS[1])", "1", "k")), Memory: bytes(128 * mib)},
	{Name: "eval-new", Conns: same(20), Attack: numbered("EVAL", "return %d + %d", "0"), Memory: bytes(256 * mib)},
	{Name: "script-load", Conns: same(20), Attack: numbered("SCRIPT", "LOAD", "return %d + %d --"+strings.Repeat("x", kib)), Memory: bytes(256 * mib)},
	{Name: "incr-inline", Conns: same(20), Attack: pours("INCR k\r\n"), Memory: bytes(128 * mib)},
	{Name: "reply-off", Conns: same(5), Attack: replyOff, Memory: bytes(128 * mib)},
	{Name: "long-values", Conns: same(20), Attack: pours(command("SET", "k", strings.Repeat("v", 100*kib))), Memory: bytes(128 * mib)},
	{Name: "throttle", Conns: same(20), Attack: pours(command("CL.THROTTLE", "k", "15", "30", "60")), Memory: bytes(128 * mib), Alone: true},

	// One part at a time.
	{Name: "dribble", Conns: same(200), Attack: dribble, Memory: bytes(128 * mib)},
	{
		Name: "many-arguments", Flags: queryLimit, Conns: sized(5, 20), Attack: manyArguments, // each may have queryLimit of them
		Memory: func(s Size) int64 { return int64(s.of(5, 20))*16*mib*3/2 + 64*mib },
	},
	{
		Name: "half-commands", Conns: sized(100, 5_000), Attack: halfCommand, // one and a half times what they send
		Memory: func(s Size) int64 { return int64(s.of(100, 5_000))*halfBytes*3/2 + int64(s.of(64, 16))*mib }, Back: 10 * time.Second,
	},
	{
		Name: "multi-endless", Flags: queryLimit, Conns: same(5), Attack: multiEndless, // each may queue queryLimit
		Memory: bytes(5*16*mib*3/2 + 64*mib),
	},
	{
		Name: "blocked", Flags: queryLimit, Conns: same(20), Attack: blocked, // a client that waits may have sent queryLimit
		Memory: bytes(20*16*mib*3/2 + 64*mib),
	},
}

// queryLimit is what commands of a client may take up before they run, for floods that would need long to reach the default.
var queryLimit = []string{"--client-query-buffer-limit", "16mb"}

// connections are what the flood consists of.
var connections = []Flood{
	{Name: "churn", Stranger: true, Conns: same(50), Attack: churn, Memory: bytes(64 * mib)},
	{Name: "churn-silent", Stranger: true, Conns: same(50), Attack: func(c *Conn, _ Size) error { c.reset(); return nil }, Memory: bytes(64 * mib)},
	{Name: "idle", Stranger: true, Conns: sized(200, 5_000), Attack: func(c *Conn, _ Size) error { return c.hold() }, Memory: bytes(128 * mib)},
	{Name: "handshakes-half", TLS: true, Stranger: true, Conns: sized(100, 2_000), Attack: halfHandshake, Memory: bytes(128 * mib)},
	{Name: "http-idle", Port: metricsPort, Stranger: true, Alone: true, Conns: same(200), Attack: httpIdle, Memory: bytes(64 * mib)},
	{Name: "handshakes", TLS: true, Stranger: true, Conns: same(20), Attack: handshake, Memory: bytes(128 * mib)},
	{ // each of these takes the lock for itself, and a loop for all that it serves
		Name: "eval-tls", TLS: true, Conns: same(100), Attack: again("EVAL", "local n = 0 for i = 1, 20000 do n = n + i end return n", "0"),
		Memory: bytes(128 * mib),
	},
}

// pours sends a request again and again and reads all the while.
func pours(request string) func(*Conn, Size) error {
	return func(c *Conn, _ Size) error {
		c.swallow()
		return c.pour(request)
	}
}

// poursDeaf sends and never reads.
func poursDeaf(request string) func(*Conn, Size) error {
	return func(c *Conn, _ Size) error {
		c.deaf()
		return c.pour(request)
	}
}

// numbered sends a command over and over in which one argument differs each time: it takes two numbers.
func numbered(args ...string) func(*Conn, Size) error {
	const atOnce = 100
	return func(c *Conn, _ Size) error {
		c.swallow()
		for i := 0; ; i += atOnce {
			var block strings.Builder
			for j := range atOnce {
				each := slices.Clone(args)
				for k, arg := range each {
					if strings.Contains(arg, "%d") {
						each[k] = fmt.Sprintf(arg, c.Index, i+j)
					}
				}
				block.WriteString(command(each...))
			}
			if err := c.send(block.String()); err != nil {
				return err
			}
		}
	}
}

// replyOff has nothing sent back.
func replyOff(c *Conn, _ Size) error {
	if err := c.send("CLIENT REPLY OFF\r\n"); err != nil {
		return err
	}
	return c.pour("SET k v\r\n")
}

const halfBytes = 163 * kib // of a command that is not finished

var halfPayload = make([]byte, halfBytes)

// halfCommand sends the first half of a command, stays for as long as all the others need to do the same, and hangs up.
func halfCommand(c *Conn, _ Size) error {
	const rounds = 6
	if c.Round >= rounds {
		return c.hold()
	}
	if err := c.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + strconv.Itoa(2*halfBytes) + "\r\n"); err != nil {
		return err
	}
	if _, err := c.Write(halfPayload); err != nil {
		return err
	}
	return c.all.wait(c.ctx)
}

// manyArguments sends a command of as many arguments as there may be, and not the last one.
func manyArguments(c *Conn, _ Size) error {
	const most = 1 << 20
	if err := c.send("*" + strconv.Itoa(most) + "\r\n"); err != nil {
		return err
	}
	block := block("$1\r\na\r\n")
	for sent := 0; sent+len(block) < most*len("$1\r\na\r\n"); sent += len(block) {
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
	return c.hold()
}

// dribble sends a command of many arguments byte by byte, so that the server is woken by each and has never a whole one.
func dribble(c *Conn, _ Size) error {
	if err := c.send("*100000\r\n" + strings.Repeat("$1\r\na\r\n", 10_000)); err != nil {
		return err
	}
	for {
		for _, part := range []string{"$", "1", "\r", "\n", "a", "\r", "\n"} {
			if err := c.send(part); err != nil {
				return err
			}
		}
	}
}

// multiEndless queues commands and never has them run.
func multiEndless(c *Conn, _ Size) error {
	c.swallow()
	if err := c.send("MULTI\r\n"); err != nil {
		return err
	}
	return c.pour(command("SET", "k", strings.Repeat("v", 100)))
}

// blocked waits for what never comes, and sends on.
func blocked(c *Conn, _ Size) error {
	c.swallow()
	if err := c.send("BLPOP nothing 0\r\n"); err != nil {
		return err
	}
	return c.pour("PING\r\n")
}

// churn connects, has one command answered and is gone.
func churn(c *Conn, _ Size) error {
	c.reset()
	_, err := c.ask("PING")
	return err
}

// halfHandshake begins to speak TLS, and stays.
func halfHandshake(c *Conn, _ Size) error {
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" // a record of 512 bytes with a hello in it, of which some are missing
	if _, err := c.raw.Write([]byte(hello + strings.Repeat("\x00", 100))); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c.raw)
	return err
}

// handshake goes through all of one, and is gone.
func handshake(c *Conn, _ Size) error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return errors.New("no TLS")
	}
	err := secure.Handshake()
	_ = c.raw.SetLinger(0)
	return err
}

// httpIdle has one request answered, and keeps the connection.
func httpIdle(c *Conn, _ Size) error {
	if err := c.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	return c.hold()
}
