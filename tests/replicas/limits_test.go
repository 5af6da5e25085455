package replicas

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// promote has a replica be the primary in one of the ways in which that happens. The primary has sent all that it has.
type promote func(t *testing.T, primary, replica *harness.Server)

// promotions are these ways.
var promotions = map[string]promote{
	"handed over": func(t *testing.T, primary, replica *harness.Server) {
		require.Equal(t, "OK", harness.Dial(t, primary.Addr).Ask("FAILOVER").Text)
		r := harness.Dial(t, replica.Addr)
		await(t, "it is the primary", func() bool { return r.Info("replication")["role"] == "master" })
	},
	"killed": func(t *testing.T, primary, replica *harness.Server) {
		primary.Kill()
		require.Equal(t, "OK", harness.Dial(t, replica.Addr).Ask("REPLICAOF", "NO", "ONE").Text)
	},
}

// ask sends a command of words between spaces, and returns its reply with all arrays taken apart.
func ask(c *harness.Client, line string) string {
	v := c.Ask(strings.Fields(line)...)
	if v.Items == nil {
		return v.Text
	}
	return strings.Join(v.Flat(), " ")
}

// startTwo starts a primary and its replica.
func startTwo(t *testing.T) (primary, replica *harness.Server) {
	t.Helper()
	primary = harness.Start(t, diskless...)
	return primary, harness.Start(t, append(diskless, follow(primary.Port)...)...)
}

// requireLater compares two answers of RL.TAKE, or of RL.ACQUIRE and its like: the later one has no longer to wait than the earlier one, and all else is the
// same. passed is by how much later it is at most.
func requireLater(t *testing.T, line, earlier, later string, passed time.Duration) {
	t.Helper()
	was, is := strings.Fields(earlier), strings.Fields(later)
	require.Len(t, is, len(was), "%s: %s, and later %s", line, earlier, later)
	for i := range was {
		before, errBefore := strconv.ParseInt(was[i], 10, 64)
		after, errAfter := strconv.ParseInt(is[i], 10, 64)
		if i > 3 && errBefore == nil && errAfter == nil && after <= before && before-after <= passed.Milliseconds()+1 {
			continue // a time, or what a rate has brought back
		}
		require.Equal(t, was[i], is[i], "%s: %s, and later %s", line, earlier, later)
	}
}

// TestDecisionsOutliveAFailover: overrides, blocks that began by themselves and by an operator's hand, their doubling and the shadow hold at a replica
// that has become the primary as they did before.
func TestDecisionsOutliveAFailover(t *testing.T) {
	t.Parallel()
	for name, promoted := range promotions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica := startTwo(t)
			p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
			begin := time.Now()
			for _, line := range []string{
				"RL.POLICY SET login FIXED 2 1h BLOCK 10m DOUBLE 1h", "RL.POLICY SET api GCRA 10 1 1h", "RL.POLICY SET dry LOG 1 1h SHADOW", "RL.POLICY SET pool ACQUIRE 2 1h",
				"RL.POLICY OVERRIDE SET api vip GCRA 100 1 1h", "RL.POLICY OVERRIDE SET api free UNLIMITED", "RL.POLICY OVERRIDE SET api guest GCRA 20 1 1h EX 3600",
				"RL.POLICY OVERRIDE SET login slow FIXED 1 1h BLOCK 20m", "RL.BLOCK api evil 1h", "RL.BLOCK api pardoned 1h", "RL.UNBLOCK api pardoned",
			} {
				require.NotContains(t, ask(p, line), "ERR", line)
			}
			for range 3 {
				ask(p, "RL.TAKE 1 login mallory")
				ask(p, "RL.TAKE 1 login trent")
				ask(p, "RL.TAKE 1 login slow")
				ask(p, "RL.TAKE 1 api vip COST 7")
				ask(p, "RL.TAKE 1 dry d")
			}
			// Of the two that are blocked for ten minutes, this one's block is over, and how long it was is still remembered.
			require.Equal(t, "1", ask(p, "PEXPIRE rl:block:{trent}:login 540000"))
			ask(p, "RL.ACQUIRE leases 2 1h MEMBER a")

			looks := []string{
				"RL.TAKE 1 login mallory PEEK", "RL.TAKE 1 login trent PEEK", "RL.TAKE 1 login slow PEEK", "RL.TAKE 1 login nobody PEEK", "RL.TAKE 1 api vip COST 79 PEEK", "RL.TAKE 1 api vip COST 80 PEEK",
				"RL.TAKE 1 api free COST 1000 PEEK", "RL.TAKE 1 api guest COST 20 PEEK", "RL.TAKE 1 api guest COST 21 PEEK", "RL.TAKE 1 api pardoned PEEK", "RL.TAKE 1 api evil PEEK",
				"RL.TAKE 1 dry d PEEK", "RL.ACQUIRE leases 2 1h PEEK",
			}
			before := make([]string, len(looks))
			for i, line := range looks {
				before[i] = ask(p, line)
			}
			require.Equal(t, "10m", ask(p, "GET rl:block:{mallory}:login"))
			require.Regexp(t, "^0 -1 0 100 79 -1 ", before[4], "it has its own limit")
			listed := ask(p, "RL.POLICY LIST") + ask(p, "RL.POLICY OVERRIDE LIST api")
			harness.AwaitSame(t, p, r)

			promoted(t, primary, replica)
			for i, line := range looks {
				requireLater(t, line, before[i], ask(r, line), time.Since(begin))
			}
			require.Equal(t, listed, ask(r, "RL.POLICY LIST")+ask(r, "RL.POLICY OVERRIDE LIST api"))
			require.Regexp(t, "^1 0 1 2 0 ", ask(r, "RL.TAKE 1 login trent"))
			require.Equal(t, "20m", ask(r, "GET rl:block:{trent}:login"), "the next block is twice as long")
			require.Regexp(t, "^0 -1 0 1 0 -1 ", ask(r, "RL.TAKE 1 dry d"))
			require.Regexp(t, "^0 -1 0 100 0 -1 ", ask(r, "RL.TAKE 1 api vip COST 79"))
			require.Equal(t, "1", ask(r, "RL.UNBLOCK api evil"))
			require.Equal(t, "1", ask(r, "RL.POLICY OVERRIDE DEL api vip"))
			require.Regexp(t, "^1 0 1 10 0 ", ask(r, "RL.TAKE 1 api vip"))
			require.Equal(t, "1", ask(r, "RL.RELEASE leases a"))
			if primary.Alive() { // and it follows now
				p = harness.Dial(t, primary.Addr)
				harness.AwaitSame(t, r, p)
				require.Equal(t, digest(r), digest(p))
			}
		})
	}
}

// TestReservationsOutliveAFailover: what is reserved at a primary is settled, cancelled or timed out at the replica that has taken its place, exactly once.
func TestReservationsOutliveAFailover(t *testing.T) {
	t.Parallel()
	for name, promoted := range promotions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica := startTwo(t)
			p, r := harness.Dial(t, primary.Addr), harness.Dial(t, replica.Addr)
			for _, policy := range []string{"own FIXED 1000000 1h", "tokens GCRA 1000 1 1d", "requests SLIDING 1000 1d SLICES 1", "exact LOG 1000 1d", "calls ACQUIRE 200 1d"} {
				require.Equal(t, "OK", ask(p, "RL.POLICY SET "+policy))
			}
			const all, mine = "tokens tokens requests requests exact exact calls calls", 7 // mine: what each own counter has beside
			peek := func(c *harness.Client) []string { return strings.Fields(ask(c, "RL.TAKE 4 "+all+" PEEK")) }
			remaining := func(c *harness.Client) (left [4]string) {
				answer := peek(c)
				for i := range left {
					left[i] = answer[2+5*i+2]
				}
				return left
			}

			// Some time out before the promotion, some after it, some are ended by their callers there.
			const reservations = 60
			var total int
			for i := range reservations {
				ttl := time.Duration(1+rand.IntN(1500)) * time.Millisecond
				if i%3 == 0 {
					ttl = time.Hour
				}
				cost := 1 + rand.IntN(10)
				if total += cost; i%3 != 0 {
					total -= cost
				}
				ask(p, fmt.Sprintf("RL.TAKE 1 own own:%d COST %d", i, mine))
				line := fmt.Sprintf("RL.RESERVE 5 own own:%d %s COSTS %d %d %d %d 1 TTL %s ID %d", i, all, cost, cost, cost, cost, strconv.FormatInt(ttl.Milliseconds(), 10), i)
				require.Regexp(t, fmt.Sprintf("^0 -1 %d ", i), ask(p, line))
			}
			harness.AwaitSame(t, p, r)
			promoted(t, primary, replica)

			await(t, "the others have timed out", func() bool { return ask(r, "EVAL "+countReservations+" 0") == strconv.Itoa(reservations/3) })
			left := strconv.Itoa(1000 - total)
			require.Equal(t, [4]string{left, left, left, strconv.Itoa(200 - reservations/3)}, remaining(r))
			for i := range reservations {
				counter, id := "own:"+strconv.Itoa(i), strconv.Itoa(i)
				switch {
				case i%3 != 0:
					require.Equal(t, "0", ask(r, "RL.CANCEL "+id))
				case i%2 == 0:
					require.Equal(t, "1", ask(r, "RL.CANCEL "+id))
				default:
					require.Regexp(t, "^1 ", ask(r, "RL.SETTLE "+id+" ACTUAL 0"))
				}
				require.Regexp(t, "^0 ", ask(r, "RL.SETTLE "+id+" ACTUAL 0"))
				require.Equal(t, strconv.Itoa(mine), ask(r, "GET "+counter), "%s, of which all was given back", counter)
			}
			require.Equal(t, [4]string{"1000", "1000", "1000", "200"}, remaining(r))
			require.Equal(t, "0", ask(r, "EVAL "+countReservations+" 0"))
			if primary.Alive() {
				p = harness.Dial(t, primary.Addr)
				harness.AwaitSame(t, r, p)
				require.Equal(t, digest(r), digest(p))
			}
		})
	}
}

// countReservations is a script, without a space.
const countReservations = "return(#redis.call('KEYS','rl:reservation:*'))"
