package scripted_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"headgate/server/limiter/scripted"

	"github.com/stretchr/testify/require"
)

// takePolicies are policies of all algorithms.
var takePolicies = map[string]string{
	"gcra": "GCRA 5 1 20ms", "bucket": "BUCKET 4 3 50ms", "queue": "QUEUE 6 1 10ms", "fixed": "FIXED 5 100ms", "aligned": "FIXED 4 70ms ALIGNED",
	"minute": "FIXED 8 MINUTE", "sliding": "SLIDING 5 100ms", "one": "SLIDING 6 90ms SLICES 1", "log": "LOG 5 100ms", "lease": "ACQUIRE 4 100ms",
	"free": "UNLIMITED", "endless": "ACQUIRE -1 100ms",
}

// newTakeWorld returns a world with these policies.
func newTakeWorld(t *testing.T) *world {
	w := newWorld(t)
	w.policies = takePolicies
	for name, text := range takePolicies {
		require.Equal(t, "+OK\r\n", w.home.Ask(append([]string{"RL.POLICY", "SET", name}, strings.Fields(text)...)...))
	}
	return w
}

// takeCall draws a call of RL.TAKE and returns its keys, which are named after the policies.
func takeCall(r *rand.Rand) (words, keys []string) {
	names := pick(r,
		[]string{"gcra", "bucket", "queue"}, []string{"fixed", "aligned", "minute"}, []string{"sliding", "one"}, []string{"log"}, []string{"lease"},
		[]string{"gcra", "fixed", "sliding", "log", "lease"}, []string{"free", "log", "endless"}, []string{"free"}, []string{"bucket", "log"}, []string{"one", "minute", "log", "queue"},
	)
	words = line("RL.TAKE %d", len(names))
	for _, name := range names {
		words = append(words, name, "{k}"+name)
		keys = append(keys, "{k}"+name)
	}
	words = append(words, "COSTS")
	for _, name := range names {
		cost := pick(r, 1, 1, 1, 1, 2, 0, 3, -1, -4, 7)
		if name == "lease" || name == "endless" {
			cost = pick(r, 1, 1, 0)
		}
		words = append(words, strconv.Itoa(cost))
	}
	if r.IntN(8) == 0 {
		words = append(words, "PEEK")
	}
	return words, keys
}

// TestTake makes random calls of pairs of all algorithms at both servers.
func TestTake(t *testing.T) {
	w, r := newTakeWorld(t), random(t)
	now := w.Ns
	for range *calls {
		now += pick(r, 0, 1000, r.Int64N(3)*1e6, r.Int64N(30)*1e6)
		w.setNow(now)
		words, keys := takeCall(r)
		key := keys[r.IntN(len(keys))]
		switch r.IntN(20) {
		case 0:
			w.set("DEL", key)
		case 1:
			w.set("PEXPIREAT", key, strconv.FormatInt(now/1e6+r.Int64N(200), 10))
		case 2:
			w.set("DEL", key)
			w.set("SET", key, pick(r, "x", "3", "-2", "07", "1000000000000000000", strconv.FormatInt(now+2e8, 10)))
		case 3:
			w.set("PERSIST", key)
		case 4:
			w.set("DEL", "{k}sliding")
			w.set("HSET", "{k}sliding", strconv.FormatInt((now/1e6-25)/7*7, 10), "2")
		}
		w.both(words...)
		w.same(words, keys...)
	}
}

// TestTakeOfTooMuch: a charge beyond 64 bits is an error before anything is charged, in the order of the pairs.
func TestTakeOfTooMuch(t *testing.T) {
	w := newTakeWorld(t)
	w.set("LPUSH", "{k}list", "x")
	for _, call := range []string{
		"RL.TAKE 2 log {k}log gcra {k}gcra COSTS 1 9223372036854775807",
		"RL.TAKE 2 gcra {k}gcra log {k}list COSTS 9223372036854775807 1",
		"RL.TAKE 2 log {k}list gcra {k}gcra COSTS 1 9223372036854775807",
		"RL.TAKE 2 log {k}log fixed rl:policies COSTS 1 1",
	} {
		w.both(line("%s", call)...)
		w.same(call, "{k}log", "{k}gcra")
	}
}

// TestLogCost: a cost that would hold the server up is refused before anything is sent.
func TestLogCost(t *testing.T) {
	w := newTakeWorld(t)
	w.policies = map[string]string{"big": "LOG 20000 1s"}
	require.Equal(t, "-"+string(scripted.ErrLogCost)+"\r\n", w.Ask(line("RL.LOG k 20000 1s COST 10001")...))
	require.Zero(t, w.trips)
	require.Equal(t, "-"+string(scripted.ErrLogCost)+"\r\n", w.Ask(line("RL.TAKE 1 big k COSTS 10001")...))
	require.Zero(t, w.trips)
	for _, call := range []string{"RL.LOG k 20000 1s COST 10000", "RL.LOG k 20000 1s COST 20001", "RL.LOG k 20000 1s COST -15000", "RL.LOG k 20000 1s COST 3"} {
		w.pass(1e6)
		w.both(line("%s", call)...)
		w.same(call, "k")
	}
}

// TestReset compares what is forgotten, and what is left alone.
func TestReset(t *testing.T) {
	w, r := newWorld(t), random(t)
	states := [][]string{
		{"SET", "K", "5"}, {"SET", "K", "-17.25"}, {"SET", "K", "x"}, {"SET", "K", "inf"}, {"SET", "K", "1e3"}, {"SET", "K", "0x10"}, {"SET", "K", ""}, {"SET", "K", "9223372036854775808"},
		{"SET", "K", strings.Repeat("9", 300)},
		{"HSET", "K", "1000", "5"}, {"HSET", "K", "1000", "-5"}, {"HSET", "K", "a", "5"}, {"HSET", "K", "01", "5"}, {"HSET", "K", "-9223372036854775808", "9223372036854775807"},
		{"HSET", "K", "1", "9223372036854775808"}, {"ZADD", "K", "5", "a", "7", "b"}, {"ZADD", "K", "5.5", "a"}, {"ZADD", "K", "0", "a"}, {"ZADD", "K", "inf", "a"},
		{"LPUSH", "K", "x"},
	}
	for range *calls / 3 {
		call := line("RL.RESET")
		for _, key := range []string{"{k}1", "{k}2", "{k}3"} {
			w.set("DEL", key)
			if set := states[r.IntN(len(states))]; r.IntN(4) > 0 {
				w.set(append([]string{set[0], key}, set[2:]...)...)
				if r.IntN(3) > 0 {
					w.set("PEXPIRE", key, "100000")
				}
			}
			for range r.IntN(3) {
				call = append(call, key)
			}
		}
		if len(call) > 1 {
			w.both(call...)
			w.same(call, "{k}1", "{k}2", "{k}3")
		}
	}
}

// TestContended: a change that has to be made here is made although others change the key meanwhile, and is given up after a number of tries,
// with nothing charged.
func TestContended(t *testing.T) {
	w := newWorld(t)
	const start = 1_000_000_000_000_000_000 // beyond what doubles count exactly
	for _, others := range []int{0, 1, 7} {
		w.set("SET", "k", strconv.Itoa(start), "PX", "1000")
		rest := others
		w.between = func(trip int) {
			if trip > 0 && trip%2 == 0 && rest > 0 {
				w.there.Ask("INCRBY", "k", "1000")
				rest--
			}
		}
		require.Equal(t, "*5\r\n:0\r\n:4000000000000000000\r\n:"+strconv.Itoa(3*start-1000*others-5)+"\r\n:-1\r\n:1000\r\n", w.Ask(line("RL.FIXED k 4000000000000000000 1s COST 5")...))
		require.Equal(t, "$19\r\n"+strconv.Itoa(start+1000*others+5)+"\r\n", w.there.Ask("GET", "k"))
		require.Equal(t, 3+2*others, w.trips)
	}
	before := w.there.Ask("GET", "k")
	w.between = func(trip int) {
		if trip > 0 && trip%2 == 0 {
			w.there.Ask("INCRBY", "k", "1")
		}
	}
	require.Equal(t, "-"+string(scripted.ErrContended)+"\r\n", w.Ask(line("RL.FIXED k 4000000000000000000 1s COST 5")...))
	require.Equal(t, 1+2*32, w.trips)
	require.Equal(t, "$19\r\n"+strconv.FormatInt(parse(t, strings.Fields(before)[1])+32, 10)+"\r\n", w.there.Ask("GET", "k"))
}
