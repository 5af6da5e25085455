package compat

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var randomBlocking = flag.Int("random.blocking", 1500, "steps of TestRandomBlocking")

// waiter is a client that blocks, or is about to.
type waiter struct {
	link
	name    string
	ids     [2]string // on each server
	blocked bool
}

// TestRandomBlocking has clients wait for random lists, sorted sets and streams on both servers, adds to these by random commands, transactions and scripts,
// unblocks some clients and has others leave: the same clients must be served at the same steps, with the same replies.
func TestRandomBlocking(t *testing.T) {
	const waiters = 10
	seed := *randomSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-random.seed %d", seed)
	r := &blockingRun{t: t, dice: &dice{rand.New(rand.NewPCG(seed, 1))}, servers: startPair(t)}
	r.pusher = r.servers.dial(t, 2)
	for i := range waiters {
		w := &waiter{name: fmt.Sprint("waiter-", i)}
		r.connect(w)
		r.waiters = append(r.waiters, w)
	}
	for range *randomBlocking {
		r.step()
		r.settle()
	}
	for i := range 5 {
		for _, db := range []string{"0", "1"} {
			r.push(words("SELECT", db))
			r.push(words("LRANGE", fmt.Sprint("l", i), 0, -1))
			r.push(words("ZRANGE", fmt.Sprint("l", i), 0, -1))
			r.push(words("XRANGE", fmt.Sprint("l", i), "-", "+"))
			r.push(words("XPENDING", fmt.Sprint("l", i), "g"))
		}
	}
	t.Logf("%d clients were served", r.served)
}

type blockingRun struct {
	t       *testing.T
	dice    *dice
	servers pair
	pusher  link
	waiters []*waiter
	served  int
	time    int      // of the last entry of a stream
	last    []string // what was done last, for reports
}

func (r *blockingRun) connect(w *waiter) {
	w.link = r.servers.dial(r.t, 2+r.dice.IntN(2))
	for i, client := range []*harness.Client{w.reference, w.subject} {
		client.Ask("CLIENT", "SETNAME", w.name)
		w.ids[i] = client.Ask("CLIENT", "ID").Text
		client.Ask("PING")
	}
	w.blocked = false
}

// step does one random thing.
func (r *blockingRun) step() {
	d, w := r.dice, r.waiters[r.dice.IntN(len(r.waiters))]
	switch op := d.IntN(20); {
	case op < 9 && !w.blocked:
		r.last = words(w.name, r.randomWait())
		require.NoError(r.t, w.send(harness.Command(r.last[1:]...)))
		w.blocked = true
		r.awaitFlags(func(flags, cmd string) bool { return cmd != "ping" }, w)
	case op == 9 && w.blocked:
		how := d.one("TIMEOUT", "ERROR")
		r.last = words("UNBLOCK", w.name, how)
		r.pusher.reference.Ask("CLIENT", "UNBLOCK", w.ids[0], how)
		r.pusher.subject.Ask("CLIENT", "UNBLOCK", w.ids[1], how)
	case op == 10:
		r.last = words(w.name, "leaves")
		w.close()
		r.awaitFlags(func(flags, _ string) bool { return flags == "" }, w)
		r.connect(w)
	case op == 11:
		r.push(words("MULTI"))
		queued := words("EXEC of")
		for range 1 + d.IntN(5) {
			r.push(r.randomPush())
			queued = words(queued, r.last, ";")
		}
		r.push(words("EXEC"))
		r.last = queued
	case op == 12:
		r.push(words("EVAL", "redis.call(unpack(ARGV)) return redis.pcall('RPUSH', KEYS[1], 'x', 'y')", 1, d.name("l", 5), "LPUSH", d.name("l", 5), "z"))
	default:
		r.push(r.randomPush())
	}
}

// randomWait makes a command that waits. The keys of all kinds are the same.
func (r *blockingRun) randomWait() []string {
	d := r.dice
	keys := d.names("l", 5, 3)
	switch d.IntN(12) {
	case 0, 1:
		return words(d.one("BZPOPMIN", "BZPOPMAX"), keys, "0")
	case 2:
		return words("BZMPOP", "0", len(keys), keys, d.one("MIN", "MAX"), d.maybe("COUNT", d.one("1", "3")))
	case 3, 4:
		ids := d.each(len(keys), func() []string { return []string{d.one("$", "$", fmt.Sprint(r.time), "999999")} })
		return words("XREAD", d.maybe("COUNT", "1"), "BLOCK", "0", "STREAMS", keys, ids)
	case 5:
		return words("XREADGROUP", "GROUP", "g", d.name("c", 3), d.maybe("COUNT", "1"), "BLOCK", "0", d.maybe("NOACK"), "STREAMS", keys[0], ">")
	}
	return randomWait(d, "0")
}

// randomPush makes a command that adds elements, or takes them away before anybody is served. SWAPDB is not among them: in which order
// several keys are ready after it is nobody's promise.
func (r *blockingRun) randomPush() []string {
	d := r.dice
	key := d.name("l", 5)
	switch d.IntN(20) {
	case 0:
		return words("DEL", key)
	case 1:
		return words(d.one("RENAME", "COPY"), key, d.name("l", 5))
	case 2:
		return words("LMOVE", key, d.name("l", 5), "LEFT", "RIGHT")
	case 3:
		return words(d.one("LPOP", "RPOP"), key)
	case 4:
		return words("SET", key, "string")
	case 5, 7, 8:
		return words("ZADD", key, d.names("", 9, 1), d.name("m", 30))
	case 9, 10, 11:
		r.time++
		return words("XADD", key, d.maybe("MAXLEN", d.one("0", "1", "5")), fmt.Sprintf("%d-*", r.time), "field", r.time)
	case 12:
		return words("XGROUP", "CREATE", key, "g", "$", "MKSTREAM")
	case 13:
		return d.one3(words("XGROUP", "DESTROY", key, "g"), words("XGROUP", "CREATE", key, "g", "0"), words("XDEL", key, r.time))
	case 6:
		return d.one3(words("MOVE", key, 1), words("MOVE", key, 0), words("SELECT", d.IntN(2)))
	}
	return words(d.one("LPUSH", "RPUSH"), key, d.names("e", 100, 3))
}

// push runs a command of the pusher on both servers.
func (r *blockingRun) push(call []string) {
	r.last = call
	require.NoError(r.t, r.pusher.send(harness.Command(call...)))
	reference, subject, err := r.pusher.read()
	require.NoError(r.t, err, "%q", call)
	require.Equal(r.t, reference.Wire(), subject.Wire(), "%q", call)
}

// settle reads what the clients that are no longer blocked were sent. They are served within the step, so there is nothing to wait
// for; only which of them are.
func (r *blockingRun) settle() {
	want, got := states(r.pusher.reference), states(r.pusher.subject)
	for _, w := range r.waiters {
		if !w.blocked {
			continue
		}
		require.Equal(r.t, isBlocked(want[w.name]), isBlocked(got[w.name]), "%s is blocked after %q", w.name, r.last)
		if isBlocked(want[w.name]) {
			continue
		}
		reference, subject, err := w.read()
		require.NoError(r.t, err, "%s after %q", w.name, r.last)
		require.Equal(r.t, reference.Wire(), subject.Wire(), "%s after %q", w.name, r.last)
		w.reference.Ask("PING")
		w.subject.Ask("PING")
		w.blocked = false
		r.served++
	}
}

// awaitFlags returns when the client's state on both servers is as wanted. A client that is not there has none.
func (r *blockingRun) awaitFlags(wanted func(flags, cmd string) bool, w *waiter) {
	for _, client := range []*harness.Client{r.pusher.reference, r.pusher.subject} {
		require.Eventually(r.t, func() bool {
			state := states(client)[w.name]
			return wanted(state[0], state[1])
		}, harness.ReplyTimeout, time.Microsecond, "%q", r.last)
	}
}

var clientState = regexp.MustCompile(`name=(waiter-\d+) .* flags=(\S+) .* cmd=(\S+)`)

// states are the flags and the last commands of the waiters.
func states(client *harness.Client) map[string][2]string {
	found := make(map[string][2]string)
	for _, m := range clientState.FindAllStringSubmatch(client.Ask("CLIENT", "LIST").Text, -1) {
		found[m[1]] = [2]string{m[2], m[3]}
	}
	return found
}

func isBlocked(state [2]string) bool { return len(state[0]) > 0 && state[0][0] == 'b' }
