package scripted_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"headgate/server/limiter/scripted"

	"github.com/stretchr/testify/require"
)

var (
	calls = flag.Int("scripted.calls", 1500, "random calls of each family; a million shows what few miss")
	pairs = flag.Int("scripted.pairs", 10_000, "decisions on wide numbers that are compared with math/big's")
	seed  = flag.Uint64("scripted.seed", 0, "seed of the random calls; 0 draws one")
)

// random returns the random numbers of a test, and prints their seed.
func random(t testing.TB) *rand.Rand {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-scripted.seed %d", n)
	return rand.New(rand.NewPCG(n, 0)) //nolint:gosec // repeatable on purpose
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// TestVectors: the calls whose replies the contract of CL.THROTTLE gives.
func TestVectors(t *testing.T) {
	for _, vector := range []struct {
		name  string
		calls [][2]string // how many ms pass before it and the call, and the five numbers
	}{
		{"burst", [][2]string{{"0 15 30 60", "0 16 15 -1 2"}, {"1 15 30 60", "0 16 14 -1 4"}, {"0 15 30 60 14", "0 16 0 -1 32"}, {"15 15 30 60", "1 16 0 2 32"}}},
		{"the boundary", [][2]string{{"0 0 1 2", "0 1 0 -1 2"}, {"1 0 1 2", "1 1 0 2 2"}, {"1999 0 1 2", "0 1 0 -1 2"}}},
		{"above the limit", [][2]string{{"0 4 1 1 6", "1 5 5 -1 0"}, {"0 15 30 60 17", "1 16 16 -1 0"}, {"0 15 30 60 16", "0 16 0 -1 32"}}},
		{"giving back", [][2]string{{"0 15 30 60 5", "0 16 11 -1 10"}, {"0 15 30 60 -2", "0 16 13 -1 6"}, {"0 15 30 60 -3", "0 16 16 -1 0"}}},
		{"another limit", [][2]string{{"0 9 1 1 10", "0 10 0 -1 10"}, {"0 1 1 1 1", "1 2 0 9 10"}, {"0 1 1 1 -2", "1 2 0 6 10"}}},
		{"looking", [][2]string{{"0 1 1 10 2", "0 2 0 -1 20"}, {"0 1 1 10 0", "0 2 0 -1 20"}}},
		{"giving back without a limit", [][2]string{{"0 15 30 60 5", "0 16 11 -1 10"}, {"0 -5 30 60 -9", "1 -4 0 8 10"}}},
		{"negative", [][2]string{{"0 -1 30 60", "1 0 0 -1 0"}, {"0 -5 30 60", "1 -4 0 -1 0"}, {"0 15 -30 60", "1 16 0 -1 0"}, {"0 15 30 -60", "1 16 0 -1 0"}, {"0 15 -30 -60", "0 16 15 -1 2"}}},
	} {
		t.Run(vector.name, func(t *testing.T) {
			w := newWorld(t)
			for _, call := range vector.calls {
				words := line("%s", call[0])
				w.pass(parse(t, words[0]) * 1e6)
				got := w.both(append([]string{"CL.THROTTLE", "k"}, words[1:]...)...)
				require.Equal(t, "*5\r\n:"+join(line("%s", call[1]))+"\r\n", got, call)
				require.Equal(t, 1, w.trips)
				w.same(call, "k")
			}
		})
	}
}

func join(numbers []string) (text string) {
	for i, n := range numbers {
		if i > 0 {
			text += "\r\n:"
		}
		text += n
	}
	return text
}

// TestRateAtBoundaries makes random calls whose instants and states lie around those at which the decision changes, and compares replies and
// what is kept with a native server's.
func TestRateAtBoundaries(t *testing.T) {
	w, r := newWorld(t), random(t)
	now := w.Ns
	for i := range *calls {
		now += pick(r, 0, 1000, r.Int64N(1e6)*1000, r.Int64N(1e4)*1e6)
		w.setNow(now)
		if r.IntN(3) == 0 { // a state of a foreign hand, near the boundary of some quota
			at := strconv.FormatInt(now+pick(r, int64(0), 1e6, 2e9, 60e9, 20e9, 1<<53, 1<<60, 1<<62, -1e9, -1e18, -now)+r.Int64N(5)-2, 10)
			w.set("SET", "k", pick(r, at, at, at, at, at, "0", "-1", "12", "0"+at, " "+at, "99999999999999999999", "9223372036854775807", "9999999999999999999", "0x12345678901234567", "1e3", "x", ""))
		} else if r.IntN(9) == 0 {
			w.set("DEL", "k")
		}
		words := rateCall(r)
		w.both(words...)
		w.same(words, "k")
		if i%16 == 0 {
			w.set("DEL", "k")
		}
	}
}

// rateCall draws a call of any command of the rate family.
func rateCall(r *rand.Rand) []string {
	quantity := pick(r, 1, 1, 1, 2, 5, 0, -1, -3, 16, 17, int64(r.IntN(40)-10), 1<<53, 1<<62, -1<<62, -1<<63)
	burst, count, period := pick(r, 0, 1, 4, 15, 99, int64(r.IntN(100)), 1<<31), pick(r, 1, 3, 30, 1, 1_000_000_000, 7), pick(r, 1, 2, 60, 86_400, 1_000_000)
	switch r.IntN(5) {
	case 0, 1:
		if r.IntN(20) == 0 {
			burst, count = pick(r, -1, -5, burst), pick(r, -count, count)
		}
		return line("CL.THROTTLE k %d %d %d %d", burst, count, min(period, 100_000), quantity)
	case 2:
		return line("GCRA k %d %d %s TOKENS %d", burst, count, pick(r, "1", "0.5", "60", "0.000001", "1e-3", "86400"), max(quantity, 0))
	}
	name := pick(r, "GCRA", "BUCKET", "QUEUE")
	words := line("RL.%s k %d %d %d%s COST %d", name, pick(r, burst, burst+1, 0, -1), count, period, pick(r, "us", "ms", "s", "m"), quantity)
	if r.IntN(8) == 0 {
		words = append(words, "PEEK")
	}
	return words
}

// TestRateIsOneCommand: whatever a limiter itself has written takes one command.
func TestRateIsOneCommand(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		w.pass(100e6)
		w.both("RL.BUCKET", "k", "10", "3", "1s", "COST", pick(random(t), "1", "2", "-1"))
		require.Equal(t, 1, w.trips, i)
	}
}

// TestWrongType: a key that holds something else is answered as at home.
func TestWrongType(t *testing.T) {
	w := newWorld(t)
	w.set("LPUSH", "list", "x")
	w.set("HSET", "hash", "x", "y")
	w.set("SET", "text", "x")
	w.set("HSET", scripted.PoliciesKey, "x", "LOG 5 1s")
	for _, key := range []string{"list", "hash", "text", scripted.PoliciesKey} {
		for _, call := range everyCall {
			words := line(call, key)
			w.both(words...)
			w.same(words, key)
		}
	}
	w.set("DEL", scripted.PoliciesKey)
	for _, call := range everyCall {
		w.both(line(call, scripted.PoliciesKey)...)
	}
}

// everyCall is a call of every limiter.
var everyCall = []string{
	"CL.THROTTLE %s 15 30 60", "RL.THROTTLE %s 15 30 60", "GCRA %s 15 30 60", "RL.GCRA %s 15 30 60s", "RL.BUCKET %s 15 30 60s", "RL.QUEUE %s 15 30 60s",
	"RL.FIXED %s 5 1s", "RL.FIXED %s 5 HOUR", "RL.SLIDING %s 5 1s", "RL.LOG %s 5 1s", "RL.LOG %s 5 1s MEMBER x", "RL.ACQUIRE %s 5 1s MEMBER x",
	"RL.RELEASE %s x", "RL.RENEW %s x 1s", "RL.RESET %s",
}
