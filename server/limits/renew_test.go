package limits_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/servertest"
)

var (
	renewHistories = flag.Int("renew.histories", 20, "histories in which numbers past their time are written over on one server, and removed on another; make limits takes 5000")
	renewSeed      = flag.Uint64("renew.seed", 0, "seed of the first of them; 0 = draw one")
)

// TestRenewAgainstRemoval runs the same commands on a server that writes over numbers past their time and on one that removes them, since it has
// to tell of their end. Nobody can tell the two apart, but for what is counted of keys that nobody asks for.
func TestRenewAgainstRemoval(t *testing.T) {
	first := *renewSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for i := range uint64(*renewHistories) {
		renewHistory(t, first+i)
	}
}

func renewHistory(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	one, other := servertest.NewClockClient(t), servertest.NewClockClient(t)
	other.Now = one.Now
	require.Equal(t, "OK", other.Call("CONFIG SET notify-keyspace-events KEA"))
	var said []string
	both := func(line string) {
		a, b := one.Call(line), other.Call(line)
		said = append(said, line+": "+a)
		require.Equal(t, b, a, "-renew.seed %d -renew.histories 1\n%s", seed, strings.Join(said, "\n"))
		require.Equal(t, other.Srv.Keys.Dirty(), one.Srv.Keys.Dirty(), "-renew.seed %d -renew.histories 1\n%s", seed, strings.Join(said, "\n"))
	}
	for _, policy := range []string{"g GCRA 3 1 20ms", "f FIXED 4 50ms", "b BUCKET 5 2 30ms", "s SLIDING 6 60ms SLICES 3", "far GCRA 1000 1 1d"} {
		both("RL.POLICY SET " + policy)
	}
	pick := func(words ...string) string { return words[rnd.IntN(len(words))] }
	key := func() string { return pick("a", "b", "c") }
	pairs := func() string {
		return pick("1 "+pick("g", "f", "b", "s", "far")+" "+key(), "2 "+pick("g", "f", "far")+" a "+pick("f", "b")+" b")
	}
	reservations := 0
	for range 150 {
		step := pick("0", "1", "40", "40", "300")
		for _, w := range []*servertest.ClockClient{one, other} {
			switch step {
			case "1":
				w.Now += 1e6
			case "40":
				w.Now += 37e6
			case "300":
				w.Now += 300e6
			}
		}
		switch rnd.IntN(10) {
		case 0, 1, 2:
			both(fmt.Sprintf("CL.THROTTLE %s %d %d 1 %d", key(), rnd.IntN(4), 40+rnd.IntN(100), rnd.IntN(5)-1))
		case 3, 4:
			both("RL.TAKE " + pairs() + pick("", " COST 2", " PEEK", " COST -1", " COST 7"))
		case 5:
			reservations++
			both(fmt.Sprintf("RL.RESERVE %s COST %d TTL %dms ID r%d", pairs(), 1+rnd.IntN(5), 1+rnd.IntN(400), reservations))
		case 6:
			both(fmt.Sprintf(pick("RL.CANCEL r%d", "RL.SETTLE r%d ACTUAL 2"), 1+rnd.IntN(reservations+1)))
		case 7:
			both(pick("PTTL ", "GET ", "DEL ", "INCR ", "WATCH ") + key())
		case 8:
			both(pick(fmt.Sprintf("PEXPIRE %s %d", key(), 1+rnd.IntN(60)), fmt.Sprintf("SET %s %d PX %d", key(), rnd.IntN(9), 1+rnd.IntN(50)), "SWAPDB 0 1"))
		case 9:
			for _, w := range []*servertest.ClockClient{one, other} {
				w.Sweep(w.Now)
			}
			said = append(said, "sweep")
		}
		require.NoError(t, one.Srv.Keys.Check(), "-renew.seed %d", seed)
	}
}

// TestReservationsEndWithTheirKey: what a key was charged has ended with it, although its number is written over: a charge that is made in its place
// is not what a reservation of before gives back.
func TestReservationsEndWithTheirKey(t *testing.T) {
	for name, cut := range map[string][]string{
		"a counter's window":      {"RL.TAKE 1 f k"},
		"PEXPIRE, and found anew": {"PEXPIRE k 100", "SWAPDB 0 1", "SWAPDB 0 1", "RL.RESERVE 1 p other COST 1 TTL 1h ID r"},
	} {
		t.Run(name, func(t *testing.T) {
			w := servertest.NewClockClient(t)
			w.Call("RL.POLICY SET p GCRA 1000 1 1d")
			w.Call("RL.POLICY SET f FIXED 10 100ms")
			w.Call("RL.RESERVE 1 p k COST 5 TTL 1h ID r")
			for _, line := range cut {
				w.Call(line)
			}
			w.Now += 150e6
			require.Equal(t, "[0 -1 [[0 1000 993 -1 604800000]]]", w.Call("RL.TAKE 1 p k COST 7"))
			require.Equal(t, "1", w.Call("RL.CANCEL r"))
			require.Equal(t, "[0 -1 [[0 1000 993 -1 604800000]]]", w.Call("RL.TAKE 1 p k PEEK"))
		})
	}
}
