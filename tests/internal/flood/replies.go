package flood

import (
	"fmt"
	"strconv"
	"strings"
)

// replies are longer than what asks for them.
var replies = []Flood{
	{Name: "get-100k", Setup: value("hundred", 100*kib), Conns: same(20), Attack: pours("GET hundred\r\n"), Memory: bytes(20*4*mib + 64*mib)},
	{Name: "get-100k-deaf", Setup: value("hundred", 100*kib), Conns: sized(2, 20), Attack: poursDeaf("GET hundred\r\n"), Memory: func(s Size) int64 { return int64(s.of(2, 20))*limit + 64*mib }},
	{Name: "mget", Long: true, Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1), Attack: asReader(c20k), Memory: bytes(3*limit + 64*mib)},
	{Name: "mget-reading", Long: true, Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1), Attack: asReader(reading(c20k)), Memory: bytes(3*limit + 64*mib)},
	{Name: "mget-multi", Long: true, Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1), Attack: asReader(inMulti(command(manyTimes(20_000, "MGET", "big")...))), Memory: bytes(3*limit + 64*mib)},
	{Name: "get-multi", Long: true, Setup: reader("big", mib), Limit: 6 << 30, Conns: same(1), Attack: asReader(inMulti(strings.Repeat("GET big\r\n", 20_000))), Memory: bytes(3*limit + 64*mib)},
	{
		Name: "get-script", Long: true, Setup: value("big", mib), Limit: 6 << 30, Conns: same(1),
		Attack: pours(command("EVAL", "local all = {} local v = redis.call('GET', 'big') for i = 1, 1000 do all[i] = v end return all", "0")), Memory: bytes(3*limit + 256*mib),
	},
	{Name: "ranges", Setup: collections, Conns: same(20), Attack: ranges, Memory: bytes(20*limit/4 + 128*mib)},
	{Name: "keys", Setup: manyKeys, Conns: same(5), Attack: pours("KEYS *\r\n"), Memory: bytes(5*limit/2 + 128*mib)},
	{Name: "config-get", Conns: same(20), Attack: pours("CONFIG GET *\r\n"), Memory: bytes(20*limit/4 + 64*mib)},
	{Name: "acl-cat", Conns: same(20), Attack: pours("ACL CAT dangerous\r\n"), Memory: bytes(20*limit/4 + 64*mib)},
	{Name: "client-list", Conns: same(200), Attack: clientList, Memory: bytes(20*limit/4 + 64*mib)},
	{Name: "command-docs", Conns: same(20), Attack: pours("COMMAND DOCS\r\n"), Memory: bytes(20*limit/4 + 64*mib)},
	{Name: "command-multi", Long: true, Conns: same(5), Attack: inMulti(strings.Repeat("COMMAND\r\n", 2_000)), Memory: bytes(5*limit + 64*mib)},
	{Name: "info", Conns: same(20), Attack: pours("INFO everything\r\n"), Memory: bytes(20*limit/4 + 64*mib)},
	{
		Name: "publish", Conns: same(25), Attack: publish, // twenty of them never read
		Memory: func(Size) int64 { return slowSubscribers*pubsubLimit + 128*mib },
	},
	{Name: "monitor", Conns: same(10), Attack: monitor, Memory: bytes(5*limit + 128*mib)},
	{Name: "subscribe-resp3", Conns: same(20), Attack: subscribeAgain, Memory: bytes(128 * mib)},
}

const (
	pubsubLimit     = 32 * mib // as Common has it
	slowSubscribers = 20
)

func c20k(c *Conn, _ Size) error { return c.pour(command(manyTimes(20_000, "MGET", "big")...)) }

// inMulti sends a transaction again and again.
func inMulti(body string) func(*Conn, Size) error {
	return func(c *Conn, _ Size) error {
		c.deaf()
		return c.pour("MULTI\r\n" + body + "EXEC\r\n")
	}
}

// reading reads all the while.
func reading(attack func(*Conn, Size) error) func(*Conn, Size) error {
	return func(c *Conn, size Size) error {
		c.swallow()
		return attack(c, size)
	}
}

// asReader becomes a user who may only read.
func asReader(attack func(*Conn, Size) error) func(*Conn, Size) error {
	return func(c *Conn, size Size) error {
		if _, err := c.ask("AUTH", "reader", "reader"); err != nil {
			return err
		}
		return attack(c, size)
	}
}

// ranges asks for whole collections.
func ranges(c *Conn, size Size) error {
	requests := []string{"LRANGE list 0 -1\r\n", "HGETALL hash\r\n", "ZRANGE zset 0 -1 WITHSCORES\r\n", "SMEMBERS set\r\n"}
	return pours(requests[c.Index%len(requests)])(c, size)
}

// clientList has many clients, and twenty of them ask who they are.
func clientList(c *Conn, size Size) error {
	const who = 20
	if c.Index >= who {
		return c.hold()
	}
	return pours("CLIENT LIST\r\n")(c, size)
}

// publish has some clients say what others subscribe to and do not read.
func publish(c *Conn, size Size) error {
	if c.Index < slowSubscribers {
		c.deaf()
		if err := c.send("SUBSCRIBE news\r\n"); err != nil {
			return err
		}
		<-c.ctx.Done()
		return c.ctx.Err()
	}
	return pours(command("PUBLISH", "news", strings.Repeat("n", 10*kib)))(c, size)
}

// monitor has some clients be told of all that the others do, and not read it.
func monitor(c *Conn, size Size) error {
	if c.Index%2 == 0 {
		c.deaf()
		if err := c.send("MONITOR\r\n"); err != nil {
			return err
		}
		<-c.ctx.Done()
		return c.ctx.Err()
	}
	return pours(command("GET", strings.Repeat("k", 1_000)))(c, size)
}

// subscribeAgain has each request answered by many messages.
func subscribeAgain(c *Conn, _ Size) error {
	c.swallow()
	if err := c.send("HELLO 3\r\n"); err != nil {
		return err
	}
	args := []string{"SUBSCRIBE"}
	for i := range 1_000 {
		args = append(args, strconv.Itoa(i))
	}
	return c.pour(command(args...) + "UNSUBSCRIBE\r\n")
}

// collections makes one of each kind.
func collections(do Do, size Size) error {
	const atOnce = 1_000
	for i := 0; i < size.of(2_000, 50_000); i += atOnce {
		list, hash, zset, set := []string{"RPUSH", "list"}, []string{"HSET", "hash"}, []string{"ZADD", "zset"}, []string{"SADD", "set"}
		for j := range atOnce {
			name := fmt.Sprintf("member:%08d", i+j)
			list, set = append(list, name), append(set, name)
			hash, zset = append(hash, name, name), append(zset, strconv.Itoa(i+j), name)
		}
		for _, args := range [][]string{list, hash, zset, set} {
			if _, err := do(args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// manyKeys sets keys.
func manyKeys(do Do, size Size) error {
	const atOnce = 1_000
	for i := 0; i < size.of(5_000, 100_000); i += atOnce {
		args := []string{"MSET"}
		for j := range atOnce {
			args = append(args, fmt.Sprintf("key:%08d", i+j), "v")
		}
		if _, err := do(args...); err != nil {
			return err
		}
	}
	return nil
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
