package flood

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// limit is the output that one client may have waiting, as Common has it.
const limit = 64 * mib

// All are the floods.
var All = []Flood{
	// Who has not said the password.
	{
		Name: "auth-200", Flags: []string{"--requirepass", Password}, Conns: same(200), Attack: pours(command("AUTH", strings.Repeat("a", 16*kib))),
		Memory: bytes(128 * mib), Limit: 2600 * mib,
	},
	{
		Name: "auth-20", Flags: []string{"--requirepass", Password}, Conns: same(20), Attack: pours(command("AUTH", strings.Repeat("a", 16*kib))),
		Memory: bytes(64 * mib),
	},

	// Requests without waiting for their answers.
	{Name: "ping-reading", Conns: same(5), Attack: pours("PING\r\n"), Memory: bytes(128 * mib)},
	{Name: "ping-deaf", Conns: same(5), Attack: poursDeaf("PING\r\n"), Memory: bytes(5*limit + 64*mib)},
	{Name: "ping-array", Conns: same(20), Attack: pours(command("PING")), Memory: bytes(128 * mib)},
	{Name: "eval", Conns: same(20), Attack: pours(command("EVAL", "return redis.call('INCR', KEYS[1])", "1", "k")), Memory: bytes(128 * mib)},
	{Name: "eval-new", Conns: same(20), Attack: evalNew, Memory: bytes(256 * mib)},
	{Name: "incr-inline", Conns: same(20), Attack: pours("INCR k\r\n"), Memory: bytes(128 * mib)},
	{Name: "reply-off", Conns: same(5), Attack: replyOff, Memory: bytes(128 * mib)},

	// Replies that are longer than what asks for them.
	{Name: "get-100k", Setup: value("big", 100*kib), Conns: same(20), Attack: pours("GET big\r\n"), Memory: bytes(20*4*mib + 64*mib)},
	{Name: "get-100k-deaf", Setup: value("big", 100*kib), Conns: same(20), Attack: poursDeaf("GET big\r\n"), Memory: bytes(20*limit + 64*mib)},
	{
		Name: "mget", Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1),
		Attack: asReader(func(c *Conn, _ Size) error { return c.pour(command(manyTimes(20_000, "MGET", "big")...)) }), Memory: bytes(3*limit + 64*mib),
	},
	{
		Name: "mget-multi", Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1),
		Attack: asReader(func(c *Conn, _ Size) error {
			return c.pour("MULTI\r\n" + command(manyTimes(20_000, "MGET", "big")...) + "EXEC\r\n")
		}), Memory: bytes(3*limit + 64*mib),
	},
	{
		Name: "get-multi", Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1),
		Attack: asReader(func(c *Conn, _ Size) error {
			return c.pour("MULTI\r\n" + strings.Repeat("GET big\r\n", 20_000) + "EXEC\r\n")
		}), Memory: bytes(3*limit + 64*mib),
	},

	// Clients that own much and hang up.
	{Name: "psubscribe", Conns: same(1), Attack: ownsMany("PSUBSCRIBE", sized(5_000, 100_000), "p%d*"), Memory: bytes(512 * mib)},
	{Name: "subscribe", Conns: same(1), Attack: ownsMany("SUBSCRIBE", sized(5_000, 300_000), "c%d"), Memory: bytes(512 * mib)},
	{Name: "watch", Conns: same(1), Attack: ownsMany("WATCH", sized(5_000, 300_000), "w%d"), Memory: bytes(512 * mib)},
	{Name: "half-commands", Conns: sized(100, 5_000), Attack: halfCommand, Memory: func(s Size) int64 { return int64(s.of(100, 5_000)) * halfBytes * 3 / 2 }, Back: 10e9},
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

// evalNew sends scripts each of which is a new one.
func evalNew(c *Conn, _ Size) error {
	c.swallow()
	for i := 0; ; i++ {
		var block strings.Builder
		for j := range 100 {
			block.WriteString(command("EVAL", fmt.Sprintf("return %d + %d + %d", c.Index, i, j), "0"))
		}
		if err := c.send(block.String()); err != nil {
			return err
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

// asReader becomes a user who may only read, and reads all the while.
func asReader(attack func(*Conn, Size) error) func(*Conn, Size) error {
	return func(c *Conn, size Size) error {
		if _, err := c.ask("AUTH", "reader", "reader"); err != nil {
			return err
		}
		c.deaf()
		return attack(c, size)
	}
}

// ownsMany names many things in one kind of command, some at a time, and hangs up when the last has been answered.
func ownsMany(name string, count func(Size) int, pattern string) func(*Conn, Size) error {
	const atOnce = 1_000
	return func(c *Conn, size Size) error {
		for i := 0; i < count(size); i += atOnce {
			args := []string{name}
			for j := range atOnce {
				args = append(args, fmt.Sprintf(pattern, i+j))
			}
			if err := c.send(command(args...)); err != nil {
				return err
			}
			answers := atOnce
			if name == "WATCH" {
				answers = 1
			}
			if err := c.replies(answers); err != nil {
				return err
			}
		}
		return nil
	}
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

// value sets a key to so many bytes.
func value(key string, n int) func(Do, Size) error {
	return func(do Do, _ Size) error {
		_, err := do("SET", key, strings.Repeat("v", n))
		return err
	}
}

// reader sets a key and makes a user who may only read.
func reader(key string, n int) func(Do, Size) error {
	return func(do Do, size Size) error {
		if err := value(key, n)(do, size); err != nil {
			return err
		}
		_, err := do("ACL", "SETUSER", "reader", "on", ">reader", "~*", "+@read", "+@transaction", "+@connection")
		return err
	}
}

func manyTimes(n int, name, key string) []string {
	args := []string{name}
	for range n {
		args = append(args, key)
	}
	return args
}
