package scripted_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomCalls makes random calls of a family at both servers, at times with a state that another hand has written, and compares replies and
// what is kept.
func randomCalls(t *testing.T, call func(r *rand.Rand) []string, foreign func(r *rand.Rand, nowMs int64) []string) {
	w, r := newWorld(t), random(t)
	now := w.Ns
	for range *calls {
		now += pick(r, 0, 1000, r.Int64N(3)*1e6, r.Int64N(50)*1e6, r.Int64N(1e3)*1e6+r.Int64N(1e3)*1000)
		w.setNow(now)
		switch r.IntN(60) {
		case 0:
			w.set("DEL", "k")
		case 1, 2, 3:
			w.set(foreign(r, now/1e6)...)
		case 4:
			w.set("PEXPIREAT", "k", strconv.FormatInt(now/1e6+r.Int64N(2000), 10))
		case 5:
			w.set("PERSIST", "k")
		}
		words := call(r)
		w.both(words...)
		w.same(words, "k")
	}
}

// costOf draws what a call costs.
func costOf(r *rand.Rand, most int64) []string {
	var words []string
	switch r.IntN(4) {
	case 0:
	case 1:
		words = line("COST %d", pick(r, 0, -1, -2, 2, 3, -most, most, most+1, r.Int64N(2*most+2)-most))
	default:
		words = line("COST %d", r.Int64N(3))
	}
	if r.IntN(8) == 0 {
		words = append(words, "PEEK")
	}
	return words
}

func TestFixed(t *testing.T) {
	randomCalls(t, func(r *rand.Rand) []string {
		limit := pick(r, 5, 5, 3, 0, 1<<60)
		window := pick(r, "100ms", "100ms", "1s", "1s ALIGNED", "7ms ALIGNED", "MINUTE", "HOUR TZ Europe/Berlin", "DAY", "WEEK", "MONTH TZ America/New_York", "YEAR")
		return append(line("RL.FIXED k %d %s", limit, window), costOf(r, int64(limit))...)
	}, func(r *rand.Rand, ms int64) []string {
		return line("SET k %s PXAT %d", pick(r, "0", "3", "-4", "1000000000000000", "999999999999999", "9223372036854775807", "007", "x", "4"), ms+1+r.Int64N(3000))
	})
}

func TestSliding(t *testing.T) {
	randomCalls(t, func(r *rand.Rand) []string {
		limit := pick(r, 5, 5, 9, 0, 1<<60)
		slices := pick(r, "", "", "", "", "SLICES 1", "SLICES 3")
		return append(line("RL.SLIDING k %d %s %s", limit, pick(r, "100ms", "100ms", "100ms", "100ms", "1s"), slices), costOf(r, int64(limit))...)
	}, func(r *rand.Rand, ms int64) []string {
		if r.IntN(8) == 0 {
			return line("SET k x")
		}
		return line("HSET k %s %s", pick(r, strconv.FormatInt(ms-r.Int64N(200)+20, 10), strconv.FormatInt((ms-r.Int64N(200)+20)/10*10, 10), "0", "-5"), pick(r, "1", "2", "999999999999999", "4611686018427387904", "9223372036854775807"))
	})
}

func TestLog(t *testing.T) {
	randomCalls(t, func(r *rand.Rand) []string {
		limit := pick(r, 5, 5, 9, 0, 200)
		words := line("RL.LOG k %d %s", limit, pick(r, "100ms", "100ms", "1s"))
		if r.IntN(3) == 0 {
			words = append(words, line("MEMBER %s COST %d", pick(r, "a", "b", "c", "d"), pick(r, 1, 1, 1, 0, -1))...)
			if r.IntN(8) == 0 {
				words = append(words, "PEEK")
			}
			return words
		}
		return append(words, costOf(r, int64(limit))...)
	}, foreignEntry)
}

// foreignEntry adds an entry at some time, perhaps under a name that a log would give.
func foreignEntry(r *rand.Rand, ms int64) []string {
	at := ms + r.Int64N(400) - 200
	return line("ZADD k %s %s", pick(r, strconv.FormatInt(at, 10), fmt.Sprintf("%d.5", at), "inf", "-inf", "1e300", strconv.FormatInt(ms, 10)), pick(r, "a", "x", fmt.Sprintf("%d-%d", ms, r.IntN(3))))
}

func TestLeases(t *testing.T) {
	randomCalls(t, func(r *rand.Rand) []string {
		id := pick(r, "a", "b", "c", "d", "e")
		switch r.IntN(5) {
		case 0:
			return line("RL.RELEASE k %s", id)
		case 1:
			return line("RL.RENEW k %s %dms", id, 1+r.IntN(200))
		}
		words := line("RL.ACQUIRE k %d %dms MEMBER %s", pick(r, 0, 1, 2, 3, 3, 3, -1), pick(r, 1+r.IntN(200), 100), id)
		if r.IntN(6) == 0 {
			words = append(words, "PEEK")
		}
		return words
	}, foreignEntry)
}

// TestDrawnLeases: an id that was drawn is in the reply and at the key, and gives its lease back.
func TestDrawnLeases(t *testing.T) {
	w := newWorld(t)
	w.both("RL.ACQUIRE", "k", "2", "1s")
	id := drawnID.FindString(w.both("RL.ACQUIRE", "k", "2", "1s"))
	require.Len(t, id, 32)
	w.both("RL.ACQUIRE", "k", "2", "1s")
	w.same("three", "k")
	require.Equal(t, ":1\r\n", w.Ask("RL.RELEASE", "k", id))
	require.Equal(t, ":0\r\n", w.Ask("RL.RELEASE", "k", id))
	w.both("RL.ACQUIRE", "k", "-1", "1s")
	require.Zero(t, w.trips, "without a limit no server is needed")
}
