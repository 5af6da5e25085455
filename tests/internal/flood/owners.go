package flood

import (
	"fmt"
	"strings"
)

// owned is how many things a client names before it hangs up.
var owned = sized(5_000, 300_000)

// ownedBytes is what one of them may take up: its name, an entry in a table of the client's and in one of everybody's, and what was garbage
// while these grew.
const ownedBytes = kib

// owners are clients that own much and hang up.
var owners = []Flood{
	{Name: "psubscribe", Conns: same(1), Attack: ownsMany("PSUBSCRIBE", "p%d*", "", eachAnswered), Memory: ownedMemory},
	{Name: "subscribe", Conns: same(1), Attack: ownsMany("SUBSCRIBE", "c%d", "", eachAnswered), Memory: ownedMemory},
	{Name: "ssubscribe", Conns: same(1), Attack: ownsMany("SSUBSCRIBE", "c%d", "", eachAnswered), Memory: ownedMemory},
	{Name: "subscribe-two", Conns: same(2), Attack: ownsMany("PSUBSCRIBE", "p%d*", "", eachAnswered), Memory: func(s Size) int64 { return 2 * ownedMemory(s) }},
	{Name: "watch", Conns: same(1), Attack: ownsMany("WATCH", "w%d", "", onceAnswered), Memory: ownedMemory},
	{Name: "blpop", Long: true, Conns: same(1), Attack: blocksMany, Memory: ownedMemory},
	{Name: "multi", Conns: same(1), Attack: queuesMany, Memory: ownedMemory},
	{Name: "tracking", Conns: same(1), Attack: tracksMany, Memory: ownedMemory},
	{Name: "prefixes", Conns: same(1), Attack: prefixesMany, Memory: ownedMemory},
}

// ownedMemory is for a client's that has hung up, which are taken apart in slices, and the next one's.
func ownedMemory(s Size) int64 { return 2*int64(owned(s))*ownedBytes + 64*mib }

const ownedAtOnce = 1_000

const (
	onceAnswered = iota
	eachAnswered
)

// ownsMany names many things in one kind of command, some at a time, and hangs up when the last has been answered.
func ownsMany(name, pattern, last string, answered int) func(*Conn, Size) error {
	return func(c *Conn, size Size) error {
		for i := 0; i < owned(size); i += ownedAtOnce {
			args := append(strings.Fields(name), names(pattern, i)...)
			if last != "" {
				args = append(args, last)
			}
			if err := c.send(command(args...)); err != nil {
				return err
			}
			answers := 1
			if answered == eachAnswered {
				answers = ownedAtOnce
			}
			if err := c.replies(answers); err != nil {
				return err
			}
		}
		return nil
	}
}

func names(pattern string, from int) (all []string) {
	for i := range ownedAtOnce {
		all = append(all, fmt.Sprintf(pattern, from+i))
	}
	return all
}

// blocksMany waits for all of them at once.
func blocksMany(c *Conn, size Size) error {
	args := []string{"BLPOP"}
	for i := 0; i < owned(size); i += ownedAtOnce {
		args = append(args, names("b%d", i)...)
	}
	if err := c.send(command(append(args, "0")...)); err != nil {
		return err
	}
	return sleep(c.ctx, ownsFor)
}

// queuesMany has a transaction that is never run.
func queuesMany(c *Conn, size Size) error {
	if err := c.send("MULTI\r\n"); err != nil {
		return err
	}
	for i := 0; i < owned(size); i += ownedAtOnce {
		if err := c.send(strings.Repeat("SET k v\r\n", ownedAtOnce)); err != nil {
			return err
		}
		if err := c.replies(ownedAtOnce); err != nil {
			return err
		}
	}
	return nil
}

// tracksMany reads keys and asks to be told of their changes.
func tracksMany(c *Conn, size Size) error {
	if err := c.send("CLIENT TRACKING ON\r\n"); err != nil {
		return err
	}
	return ownsMany("MGET", "t%d", "", onceAnswered)(c, size)
}

// prefixesMany asks to be told of changes of all keys that begin in many ways. redis-server compares each with all before it: there are few.
func prefixesMany(c *Conn, size Size) error {
	args := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for i := range size.of(500, 5_000) {
		args = append(args, "PREFIX", fmt.Sprintf("%08d:", i))
	}
	_, err := c.ask(args...)
	return err
}
