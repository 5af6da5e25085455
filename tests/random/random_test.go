// Package random sends one stream of random commands to headgate and to redis-server and compares every reply, and at the end
// every key, and then what each of them makes of what both have logged. The commands and their syntax come from redis-server's own
// COMMAND DOCS.
package random

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
	"headgate/tests/internal/syntax"
)

var (
	count = flag.Int("random.n", 100_000, "commands in the stream")
	seed  = flag.Uint64("random.seed", 0, "seed of the stream; 0 draws one")
)

const (
	batch         = 200     // commands sent at once
	replyTime     = 30e9    // ns to wait for one reply
	ttlTolerance  = 120_000 // ms that two times may be apart: what the servers take for the same batch
	shown         = 40      // earlier commands shown beside a difference
	databases     = 16
	transactions  = 40   // one command in so many begins a transaction
	scripts       = 30   // one command in so many is a script
	lexMembers    = 40   // one command in so many adds to a sorted set of one score
	flushes       = 3000 // one command in so many empties everything
	maxInMulti    = 8
	elementsShown = 2000 // bytes of a reply
)

// limiters are scripts in the manner of those that limit.
var limiters = []string{
	`local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('EXPIRE', KEYS[1], 100000000) end return n`,
	`redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - 10) local n = redis.call('ZCARD', KEYS[1]) if n < 5 then redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1]) return 1 end return 0`,
	`local t = redis.call('HGET', KEYS[1], 'tokens') t = tonumber(t) or 10 if t < 1 then return {false, t} end redis.call('HSET', KEYS[1], 'tokens', t - 0.5) return {true, t}`,
	`local v = redis.call('GET', KEYS[1]) if v == false then redis.call('SET', KEYS[1], ARGV[1], 'NX') return nil end return v .. ARGV[2]`,
	`local r = redis.pcall('LPUSH', KEYS[1], ARGV[1], ARGV[2]) if type(r) == 'table' and r.err then return redis.call('DEL', KEYS[1]) end return redis.call('LRANGE', KEYS[1], 0, 3)`,
	`return redis.call(ARGV[1] % 2 == 0 and 'SADD' or 'SREM', KEYS[1], ARGV[2])`,
	`return {redis.call('TYPE', KEYS[1]), redis.call('EXISTS', KEYS[2]), cjson.encode({ARGV[1]}), 1.9}`,
}

// sent is one command of the stream.
type sent struct {
	args []string
	name string // of the command, or of the one it queues, in lower case
}

// stream draws commands in the order in which they are sent.
type stream struct {
	*dice
	commands []syntax.Command
	queued   []sent // what is still to come of a transaction
}

func (s *stream) next() sent {
	if len(s.queued) > 0 {
		head := s.queued[0]
		s.queued = s.queued[1:]
		return head
	}
	switch {
	case s.one(flushes):
		return plain("FLUSHALL")
	case s.one(scripts):
		args := []string{"EVAL", s.pick(limiters...), "2", s.key(), s.key()}
		return plain(append(args, strconv.Itoa(s.IntN(100)), s.text(""))...)
	case s.one(lexMembers):
		return plain("ZADD", "lex:"+strconv.Itoa(s.IntN(10)), "0", s.text(""), "0", s.text(""))
	case s.one(transactions):
		if s.one(3) {
			s.queued = append(s.queued, plain("WATCH", "k:"+strconv.Itoa(s.IntN(keys))), s.draw(false))
		}
		s.queued = append(s.queued, plain("MULTI"))
		for range s.IntN(maxInMulti) {
			s.queued = append(s.queued, s.draw(true))
		}
		s.queued = append(s.queued, plain(s.pick("EXEC", "EXEC", "EXEC", "DISCARD")))
		return s.next()
	}
	return s.draw(false)
}

// draw draws a call of any command that may be sent here.
func (s *stream) draw(inMulti bool) sent {
	for {
		c := s.commands[s.IntN(len(s.commands))]
		if blocking[c.Words[0]] && !inMulti {
			continue
		}
		args := s.call(c)
		if strings.HasPrefix(c.Words[0], "sort") && slices.Contains(args, "BY") {
			continue // elements of equal weight, and those of a set that is not sorted, come in any order
		}
		if strings.HasSuffix(c.Words[0], "expire") && (slices.Contains(args, "GT") || slices.Contains(args, "LT")) {
			continue // relative times differ by the moment at which each server ran them
		}
		if isLex(args) {
			ofOneScore(args)
		}
		return sent{args, c.Words[0]}
	}
}

// isLex tells the commands that go by members' bytes. They promise something only where all scores are equal, so they get keys of
// their own.
func isLex(args []string) bool {
	return strings.HasSuffix(strings.ToLower(args[0]), "bylex") || strings.EqualFold(args[0], "zlexcount") || slices.Contains(args, "BYLEX")
}

// ofOneScore turns the keys of a call into those whose members all have one score.
func ofOneScore(args []string) {
	for i, a := range args {
		if n, ok := strings.CutPrefix(a, "k:"); ok {
			args[i] = "lex:" + n[:1]
		}
	}
}

func plain(args ...string) sent { return sent{args, strings.ToLower(args[0])} }

func TestRandomStream(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	t.Run("RESP2", func(t *testing.T) { run(t, "2", *count/2, first) })
	for done := 0; done < *count/2; done += maxLogged {
		t.Run("RESP3", func(t *testing.T) { run(t, "3", min(maxLogged, *count/2-done), first+uint64(done), logged...) })
	}
}

// maxLogged is after how many commands the servers' logs are replayed.
const maxLogged = 50_000

// run sends n commands to servers with the given flags. If these have them log their changes, the logs are replayed in the end.
func run(t *testing.T, protocol string, n int, seed uint64, flags ...string) {
	t.Logf("seed %d, %d commands", seed, n)
	subjectServer, referenceServer := harness.StartPair(t, flags...)
	subject, reference := harness.Dial(t, subjectServer.Addr), harness.Dial(t, referenceServer.Addr)
	s := &stream{
		dice:     &dice{rand.New(rand.NewPCG(seed, 0)), time.Now().Unix()},
		commands: commands(t, harness.Dial(t, referenceServer.Addr), subject),
	}
	for _, c := range []*harness.Client{subject, reference} {
		c.Ask("HELLO", protocol)
	}
	var history []sent
	var block []sent // the transaction that is open
	for done := 0; done < n; {
		var out []byte
		var round []sent
		for len(round) < batch || len(s.queued) > 0 {
			c := s.next()
			round = append(round, c)
			out = append(out, harness.Command(c.args...)...)
		}
		go func() { _ = subject.Send(out) }()
		require.NoError(t, reference.Send(out))
		for _, c := range round {
			want, err := reference.Read(replyTime)
			require.NoError(t, err)
			got, err := subject.Read(replyTime)
			require.NoError(t, err, "after %q", c.args)
			history = append(history, c)
			switch c.name {
			case "multi":
				block = block[:0]
			case "exec":
			default:
				block = append(block, c)
			}
			if !same(c, block, want, got) {
				t.Fatalf("seed %d, command %d: %q\nredis-server: %.*q\nheadgate:     %.*q\nbefore it, with the same keys:\n%s",
					seed, done, c.args, elementsShown, want.Wire(), elementsShown, got.Wire(), related(history))
			}
			done++
		}
		if len(history) > 100*batch {
			history = history[len(history)-50*batch:]
		}
	}
	compareKeys(t, reference, subject)
	if flags != nil {
		requireReplay(t, subjectServer, referenceServer)
	}
}

// same compares two replies as far as the command promises them.
func same(c sent, block []sent, want, got harness.Value) bool {
	if c.name == "exec" && !want.Null && len(want.Items) == len(got.Items) && want.Kind == got.Kind {
		for i := range want.Items { // had one of the block been refused, there would be an error instead of items
			if !same(block[i], nil, want.Items[i], got.Items[i]) {
				return false
			}
		}
		return true
	}
	if inPairs, ok := unordered[c.name]; ok {
		want, got = want.Sorted(inPairs), got.Sorted(inPairs)
	}
	if timed[c.name] && want.Kind == ':' && got.Kind == ':' {
		return near(want.Text, got.Text)
	}
	return want.Wire() == got.Wire()
}

func near(a, b string) bool {
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	if x < 0 || y < 0 {
		return x == y
	}
	return x-y <= ttlTolerance && y-x <= ttlTolerance
}

// related are the latest commands that name a key of the last one, and the commands around it.
func related(history []sent) string {
	last := history[len(history)-1]
	names := make(map[string]bool)
	for _, a := range last.args {
		if strings.HasPrefix(a, "k:") {
			names[a] = true
		}
	}
	var lines []string
	for i := len(history) - 1; i >= 0 && len(lines) < shown; i-- {
		about := len(history)-i < 12
		for _, a := range history[i].args {
			about = about || names[a]
		}
		if about {
			lines = append(lines, fmt.Sprintf("%6d %.300q", i-len(history)+1, history[i].args))
		}
	}
	return strings.Join(lines, "\n")
}

// compareKeys compares what is left in every database, key by key.
func compareKeys(t *testing.T, reference, subject *harness.Client) {
	t.Helper()
	ask := func(args ...string) (want, got harness.Value) { return reference.Ask(args...), subject.Ask(args...) }
	ask("RESET")
	compared := 0
	for db := range databases {
		ask("SELECT", strconv.Itoa(db))
		want, got := ask("KEYS", "*")
		require.Equal(t, want.Sorted(false).Strings(), got.Sorted(false).Strings(), "keys of database %d", db)
		for _, key := range want.Strings() {
			kind, gotKind := ask("TYPE", key)
			require.Equal(t, kind, gotKind, "type of %s", key)
			read, isUnordered, inPairs := reader(kind.Text, key)
			a, b := ask(read...)
			if isUnordered {
				a, b = a.Sorted(inPairs), b.Sorted(inPairs)
			}
			require.Equal(t, a.Wire(), b.Wire(), "%q in database %d", read, db)
			a, b = ask("PTTL", key)
			require.True(t, near(a.Text, b.Text), "PTTL of %s: %s and %s", key, a.Text, b.Text)
			compared++
		}
	}
	t.Logf("%d keys compared at the end", compared)
}

// reader is the command that shows a whole value of a kind.
func reader(kind, key string) (args []string, isUnordered, inPairs bool) {
	switch kind {
	case "hash":
		return []string{"HGETALL", key}, true, true
	case "list":
		return []string{"LRANGE", key, "0", "-1"}, false, false
	case "set":
		return []string{"SMEMBERS", key}, true, false
	case "zset":
		return []string{"ZRANGE", key, "0", "-1", "WITHSCORES"}, false, false
	case "stream":
		return []string{"XRANGE", key, "-", "+"}, false, false
	}
	return []string{"GET", key}, false, false
}
