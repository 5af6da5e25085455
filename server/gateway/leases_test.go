package gateway_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server/config"

	"github.com/stretchr/testify/require"
)

// leasing has hot limits be decided by the gateway.
func leasing(cfg *config.Config) { cfg.UpstreamLease = true }

// field is a number of RL.UPSTREAM STATUS.
func (c *client) field(name string) (n int64) {
	c.t.Helper()
	_, rest, found := strings.Cut(c.ask("RL.UPSTREAM STATUS"), " "+name+" ")
	require.True(c.t, found, name)
	_, err := fmt.Sscan(rest, &n)
	require.NoError(c.t, err)
	return n
}

// admitted makes a call so many times, some at once each, and returns how many passed.
func (c *client) admitted(call string, times, atOnce int) (passed int) {
	c.t.Helper()
	for range times / atOnce {
		for range atOnce {
			c.send(call)
		}
		for range atOnce {
			if strings.HasPrefix(c.read(), "[0 ") {
				passed++
			}
		}
	}
	return passed
}

// admittedUntilHeld is admitted with as many calls more as it takes for units to be held: a lease may just be spent while the next is on its way.
func (c *client) admittedUntilHeld(call string, times int) (passed int) {
	c.t.Helper()
	passed = c.admitted(call, times, 1)
	for range times {
		if c.field("lease_units_held") > 0 {
			return passed
		}
		passed += c.admitted(call, 1, 1)
	}
	require.Fail(c.t, "no units are held")
	return passed
}

// leasesOf starts each kind of upstream, and calls test with a gateway to it that leases, and with a client of the upstream itself.
func leasesOf(t *testing.T, test func(t *testing.T, gate *client, there *client), edits ...func(*config.Config)) {
	edits = append([]func(*config.Config){leasing}, edits...)
	t.Run("redis", func(t *testing.T) {
		r := startRelay(t, socketOf(reference.Start(t)))
		_, gate := startGateway(t, r.url(), edits...)
		test(t, gate, dial(t, strings.TrimPrefix(r.url(), "redis://")))
	})
	t.Run("headgate", func(t *testing.T) {
		_, addr := startServer(t)
		_, gate := startGateway(t, "redis://"+addr, edits...)
		test(t, gate, dial(t, addr))
	})
}

// TestHotLimitsAreDecidedHere: of a burst of calls most are not asked for, the limit holds, and what remains is told as it is.
func TestHotLimitsAreDecidedHere(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, _ *client) {
		for _, call := range []string{"CL.THROTTLE %s 999 1 3600", "GCRA %s 999 1 3600", "RL.GCRA %s 1000 1 1h", "RL.BUCKET %s 1000 1 1h", "RL.FIXED %s 1000 1h", "RL.SLIDING %s 1000 1h"} {
			call = fmt.Sprintf(call, strings.Fields(call)[0])
			local, calls := gate.field("lease_calls_local"), gate.field("calls")
			require.Equal(t, 600, gate.admitted(call, 600, 1), call)
			require.Greater(t, gate.field("lease_calls_local")-local, int64(500), call)
			require.Less(t, gate.field("calls")-calls, int64(100), call)
			var remaining int // which counts what is held, but not what has ended a moment ago, nor calls that were asked for meanwhile
			for range 20 {
				_, err := fmt.Sscanf(gate.ask(call), "[0 1000 %d -1 ", &remaining)
				require.NoError(t, err)
				require.LessOrEqual(t, remaining, 399+20, call)
				if remaining >= 399-20 {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			require.GreaterOrEqual(t, remaining, 399-20, call)
			passed := gate.admitted(call, 600, 10)
			require.LessOrEqual(t, passed, 399)
			require.GreaterOrEqual(t, passed, remaining-250, "no lease is larger than a quarter of the limit")
		}
		require.Positive(t, gate.field("lease_calls_refused"))
		require.Zero(t, gate.field("disagreements"))
	})
}

// TestColdKeysAreAsked: keys that are called seldom, and calls that are not for one unit or a few, go upstream; and so does what looks or gives
// back.
func TestColdKeysAreAsked(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, _ *client) {
		for i := range 50 {
			require.Equal(t, "[0 10 9 -1 360]", gate.ask(fmt.Sprintf("CL.THROTTLE k%d 9 100 36000", i)))
		}
		require.Equal(t, "[0 5 4 -1 1000]", gate.ask("RL.LOG l 5 1s"))
		gate.admitted("RL.GCRA hot 1000 1 1h", 100, 1)
		local := gate.field("lease_calls_local")
		require.Contains(t, gate.ask("RL.GCRA hot 1000 1 1h COST 251"), "[0 1000 ")
		require.Contains(t, gate.ask("RL.GCRA hot 1000 1 1h COST 0"), "[0 1000 ")
		require.Contains(t, gate.ask("RL.GCRA hot 1000 1 1h COST -5"), "[0 1000 ")
		require.Contains(t, gate.ask("RL.GCRA hot 1000 1 1h PEEK"), "[0 1000 ")
		require.Equal(t, local, gate.field("lease_calls_local"))
	})
}

// TestWhatIsLeftIsGivenBack: by RL.UPSTREAM RETURN, when a lease of a window has ended, and when the gateway does.
func TestWhatIsLeftIsGivenBack(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, there *client) {
		used := func(key string) string { return there.ask("GET " + key) }
		passed := gate.admittedUntilHeld("RL.FIXED k 1000 1h", 100)
		require.NotEqual(t, fmt.Sprint(passed), used("k"))
		returned, err := strconv.Atoi(gate.ask("RL.UPSTREAM RETURN k")) // a renewal under way may have added to what was held
		require.NoError(t, err)
		require.Positive(t, returned)
		require.Eventually(t, func() bool { return used("k") == fmt.Sprint(passed) }, answerTime, time.Millisecond)
		require.Eventually(t, func() bool { return returned <= int(gate.field("lease_units_returned")) }, answerTime, time.Millisecond)
		require.Equal(t, "0", gate.ask("RL.UPSTREAM RETURN"))

		passed += gate.admittedUntilHeld("RL.FIXED k 1000 1h", 100)
		require.NotEqual(t, fmt.Sprint(passed), used("k"))
		require.Eventually(t, func() bool { return used("k") == fmt.Sprint(passed) }, answerTime, 10*time.Millisecond)
		require.Eventually(t, func() bool { return gate.ask("RL.UPSTREAM LEASES") == "[]" }, answerTime, 10*time.Millisecond, "cold keys are forgotten")

		passed += gate.admitted("RL.FIXED k 1000 1h", 100, 1)
		require.Equal(t, "OK", gate.ask("CONFIG SET upstream-lease no"))
		require.Eventually(t, func() bool { return used("k") == fmt.Sprint(passed) }, answerTime, time.Millisecond)
		require.Equal(t, "[[key k db 0 leased no why upstream-lease is no]]", gate.ask("RL.UPSTREAM LEASES k"))
	})
}

// TestSlowRatesGetTheirUnitsBack: what was not spent of a lease of a rate that refills slowly is not lost when calls stop.
func TestSlowRatesGetTheirUnitsBack(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, _ *client) {
		calls := []string{"RL.GCRA g 1000 1 1h", "RL.BUCKET b 1000 1 1h", "RL.GCRA k 1000 1 1h"}
		passed := map[string]int{}
		for _, call := range calls {
			passed[call] = gate.admitted(call, 200, 1)
		}
		for _, call := range calls { // whose leases end at about the same time
			remaining := fmt.Sprintf("[0 1000 %d ", 1000-passed[call])
			require.Eventually(t, func() bool { return strings.HasPrefix(gate.ask(call+" PEEK"), remaining) }, answerTime, 10*time.Millisecond, call)
		}
		require.Positive(t, gate.field("lease_units_returned"))
	})
}

// TestLeasesAreReturnedAtTheEnd of the gateway.
func TestLeasesAreReturnedAtTheEnd(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	there := dial(t, strings.TrimPrefix(r.url(), "redis://"))
	passed := 0
	t.Run("gateway", func(t *testing.T) {
		_, gate := startGateway(t, r.url(), leasing)
		passed = gate.admitted("RL.FIXED k 1000 1h", 100, 1)
		require.Eventually(t, func() bool { // a lease may have been used up just now
			passed += gate.admitted("RL.FIXED k 1000 1h", 1, 1)
			return there.ask("GET k") != fmt.Sprint(passed)
		}, answerTime, time.Millisecond, "no units are held")
	})
	require.Equal(t, fmt.Sprint(passed), there.ask("GET k"))
}

// TestWhyAKeyIsNotLeased is told by RL.UPSTREAM LEASES.
func TestWhyAKeyIsNotLeased(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, there *client) {
		why := func(key string) string {
			text := gate.ask("RL.UPSTREAM LEASES " + key)
			return strings.TrimRight(text[strings.Index(text, " leased ")+1:], "]")
		}
		require.Contains(t, why("k"), "leased no why cold: no limiter that may have leases was called twice within a second")
		gate.admittedUntilHeld("CL.THROTTLE k 999 1 3600", 100)
		require.True(t, strings.HasPrefix(why("k"), "leased yes why units are held units "), why("k"))
		gate.admitted("RL.GCRA fast 10 1000 1s", 3, 1)
		require.Contains(t, why("fast"), "the limit comes back too soon: a lease would be 500 us long")
		gate.admitted("CL.THROTTLE slow 999 1000 1", 2, 1)
		require.Contains(t, why("slow"), "too few calls: a lease of 50 ms is worth 0.")
		gate.admitted("CL.THROTTLE limited 9 1 3600", 100, 1)
		require.Contains(t, why("limited"), "leased yes why limited: asked again in ")
		gate.admitted("RL.GCRA large 1000 1000 1s COST 251", 20, 1)
		require.Contains(t, why("large"), "the last call's cost is above what a lease may be, which is 250 here")
		gate.admitted("RL.FIXED hour 10 1h", 100, 1)
		require.Contains(t, why("hour"), "leased yes why limited: asked again in ")
		var ms int
		_, err := fmt.Sscanf(why("hour"), "leased yes why limited: asked again in %d ms", &ms)
		require.NoError(t, err)
		require.LessOrEqual(t, ms, 1000, "a refusal is remembered for half of a lease's length")
		there.ask("SET odd 007")
		for range 50 {
			gate.send("CL.THROTTLE odd 999 1 3600")
			gate.read()
			there.ask("SET odd 007")
		}
		require.Contains(t, why("odd"), "its state is none that a script can charge a lease to")
		there.ask("SET odd x")
		for range 50 {
			require.Contains(t, gate.ask("RL.GCRA odd 1000 1 1h"), "ERR the key holds a value that is no limiter's state")
		}
		require.Equal(t, "ERR syntax error, try RL.UPSTREAM LEASES [key]", gate.ask("RL.UPSTREAM LEASES a b"))
		require.Equal(t, "ERR syntax error, try RL.UPSTREAM RETURN [key]", gate.ask("RL.UPSTREAM RETURN a b"))
	})
}

// TestLeasesThatTheUpstreamRefuses: where the gateway's user may not run scripts, clients are answered as without leases, and the reason is told.
func TestLeasesThatTheUpstreamRefuses(t *testing.T) {
	_, addr := startServer(t)
	require.Equal(t, "OK", dial(t, addr).ask("ACL SETUSER gateway on >secret resetkeys ~rl:* -@all +@throttle +rl.policy +info +time"))
	_, gate := startGateway(t, "redis://gateway@"+addr, leasing, func(cfg *config.Config) { cfg.UpstreamPassword = "secret" })
	require.Equal(t, "OK", gate.ask("RL.POLICY SET p FIXED 1000 1h"))
	for _, call := range []string{"CL.THROTTLE rl:a 999 1 3600", "RL.SLIDING rl:b 1000 1h", "RL.TAKE 1 p rl:c"} {
		require.Equal(t, 100, gate.admitted(call, 100, 1), call)
	}
	require.Equal(t, "[0 1000 899 ", gate.ask("CL.THROTTLE rl:a 999 1 3600")[:len("[0 1000 899 ")], "each call was charged once")
	require.Eventually(t, func() bool { // unless the key has gone cold before it is looked at
		gate.admitted("CL.THROTTLE rl:a 999 1 3600", 20, 1)
		return strings.Contains(gate.ask("RL.UPSTREAM LEASES rl:a"), "NOPERM upstream: this user has no permissions to run the 'evalsha' command")
	}, answerTime, time.Millisecond)
}

// TestStrictLeases take off the limit what they might let through, for all calls of the key, and answers show the limit.
func TestStrictLeases(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, there *client) {
		// 10 a second come back, 5 in the 0.5 s that a lease may be long, and a little more.
		require.Equal(t, "[0 100 93 -1 ", gate.ask("CL.THROTTLE k 99 10 1")[:len("[0 100 93 -1 ")])
		require.True(t, strings.HasPrefix(gate.ask("CL.THROTTLE k 99 10 1 95"), "[1 100 9"), "such a cost never passes")
		require.Contains(t, gate.ask("RL.GCRA g 100 10 1s COST 95"), "[1 100 94 -1 ")
		require.Equal(t, "[0 100 99 -1 ", gate.ask("RL.FIXED f 100 1h")[:len("[0 100 99 -1 ")], "windows let nothing through")
		require.Equal(t, "[0 1 0 -1 3600]", gate.ask("CL.THROTTLE small 0 1 3600"), "what has nothing to take off is not leased")
		start := time.Now()
		passed := gate.admitted("RL.GCRA hot 100 10 1s", 1000, 1)
		require.LessOrEqual(t, float64(passed), 100+10*time.Since(start).Seconds())
	}, func(cfg *config.Config) { cfg.UpstreamLeaseStrict = true })
}

// TestLeasesWithoutTheirNode: units that are held are spent, and afterwards the limit answers as it says; when the node is back it is leased again.
func TestLeasesWithoutTheirNode(t *testing.T) {
	r, gate := stalled(t, leasing, func(cfg *config.Config) { cfg.UpstreamRest = 100 * time.Millisecond })
	require.Equal(t, 100, gate.admitted("RL.GCRA k 1000 1 1h", 100, 1))
	r.stall(true)
	replies := map[bool]int{}
	for range 300 {
		replies[strings.HasPrefix(gate.ask("RL.GCRA k 1000 1 1h"), "UPSTREAM ")]++
	}
	require.Positive(t, replies[true])
	r.stall(false)
	require.Eventually(t, func() bool { return strings.HasPrefix(gate.ask("RL.GCRA k 1000 1 1h"), "[0 ") }, answerTime, 10*time.Millisecond)
	local := gate.field("lease_calls_local")
	require.Eventually(t, func() bool {
		gate.admitted("RL.GCRA k 1000 1 1h", 20, 1)
		return gate.field("lease_calls_local") > local
	}, answerTime, 10*time.Millisecond)
}

// TestClientsThatGoWhileTheyChargeALease leave the lease to others.
func TestClientsThatGoWhileTheyChargeALease(t *testing.T) {
	r, gate := stalled(t, leasing, func(cfg *config.Config) { cfg.UpstreamRest = 10 * time.Millisecond })
	require.Positive(t, gate.admitted("RL.FIXED k 1000 1h", 40, 1))
	require.NotEmpty(t, gate.ask("RL.UPSTREAM RETURN"))
	r.stall(true)
	for range 3 {
		c := dial(t, gate.addr)
		c.send("RL.FIXED k 1000 1h", "RL.FIXED k 1000 1h")
		c.Close()
	}
	time.Sleep(400 * time.Millisecond)
	r.stall(false)
	require.Eventually(t, func() bool { return strings.HasPrefix(gate.ask("RL.FIXED k 1000 1h"), "[0 ") }, answerTime, 10*time.Millisecond)
	local := gate.field("lease_calls_local")
	require.Eventually(t, func() bool {
		gate.admitted("RL.FIXED k 1000 1h", 10, 1)
		return gate.field("lease_calls_local") > local
	}, answerTime, 10*time.Millisecond)
}

// TestPoliciesSayWhetherTheyAreLeased: RL.TAKE of one key may be decided here, if the policy or the configuration says so; of several it never is.
func TestPoliciesSayWhetherTheyAreLeased(t *testing.T) {
	for _, on := range []bool{true, false} {
		r := startRelay(t, socketOf(reference.Start(t)))
		_, gate := startGateway(t, r.url(), func(cfg *config.Config) { cfg.UpstreamLease = on })
		gate.converse(`
			RL.POLICY SET yes GCRA 1000 1 1h LEASE      | OK
			RL.POLICY SET no GCRA 1000 1 1h NOLEASE     | OK
			RL.POLICY SET unsaid FIXED 1000 1h          | OK
		`)
		local := func(call string) bool {
			before := gate.field("lease_calls_local")
			for range 60 {
				require.True(t, strings.HasPrefix(gate.ask(call), "[0 -1 [[0 1000 "), call)
			}
			return gate.field("lease_calls_local") > before+30
		}
		require.True(t, local("RL.TAKE 1 yes a"))
		require.False(t, local("RL.TAKE 1 no b"))
		require.Equal(t, on, local("RL.TAKE 1 unsaid c"))
		require.False(t, local("RL.TAKE 2 yes a no b"))
		limited := 0
		for range 1200 {
			reply := gate.ask("RL.TAKE 1 yes a")
			if strings.HasPrefix(reply, "[1 0 [[1 1000 ") {
				limited++
			} else {
				require.True(t, strings.HasPrefix(reply, "[0 -1 [[0 1000 "), reply)
			}
		}
		require.GreaterOrEqual(t, limited, 1200-(1000-120))
	}
}

// TestChargesKeepTheirKeys: what a lease's charge tells of a call is about the key of that call, whatever its client and others have sent meanwhile.
func TestChargesKeepTheirKeys(t *testing.T) {
	const clients, rounds, keys = 8, 300, 30
	_, gate := startGateway(t, startRelay(t, socketOf(reference.Start(t))).url(), leasing)
	require.Equal(t, "OK", gate.ask("RL.POLICY SET p GCRA 1000 1000 1s LEASE"))
	all := make([]*client, clients)
	for i := range all {
		all[i] = dial(t, gate.addr)
	}
	for round := range rounds {
		for i, c := range all {
			lines := []string{"ECHO " + strings.Repeat("x", 1+round%60)} // so that keys are at another place in each round
			for j := range calls(round, i) {
				lines = append(lines, fmt.Sprintf("RL.TAKE 1 p key%d", (round+i+j)%keys))
			}
			c.send(lines...)
		}
		for i, c := range all {
			for range 1 + calls(round, i) {
				c.read()
			}
		}
	}
	counted := regexp.MustCompile(`\[([^\[\]]*) \d+ \d+ \d+ p\]`).FindAllStringSubmatch(gate.ask("RL.TOP 512 HOT"), -1)
	require.Len(t, counted, keys)
	for _, key := range counted {
		require.Regexp(t, `^key\d+$`, key[1], "nobody has called that")
	}
}

// calls is how many of them a client makes in a round.
func calls(round, client int) int { return 1 + (round+7*client)%40 }

// TestStrictWithoutLeases: other gateways may have leases of the key, so that what these might let through is taken off here too.
func TestStrictWithoutLeases(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, _ *client) {
		require.Equal(t, "[0 100 93 -1 ", gate.ask("CL.THROTTLE k 99 10 1")[:len("[0 100 93 -1 ")])
		require.Contains(t, gate.ask("RL.GCRA g 100 10 1s COST 95"), "[1 100 94 -1 ")
	}, func(cfg *config.Config) { cfg.UpstreamLease, cfg.UpstreamLeaseStrict = false, true })
}

// TestStrictTakes take off as other calls do.
func TestStrictTakes(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	_, gate := startGateway(t, r.url(), leasing, func(cfg *config.Config) { cfg.UpstreamLeaseStrict = true })
	gate.converse(`
		RL.POLICY SET p GCRA 100 10 1s                  | OK
		RL.POLICY SET q FIXED 100 1h                    | OK
		RL.TAKE 2 p {a}b q {a}c COSTS 95 1              | [1 0 [[1 100 94 -1 0] [0 100 100 -1 0]]]
	`)
}

// TestResetForgetsCharges: what was charged for a lease before RL.RESET is no lease afterwards, though its reply comes later.
func TestResetForgetsCharges(t *testing.T) {
	r := startRelay(t, socketOf(reference.Start(t)))
	_, gate := startGateway(t, r.url(), leasing)
	other := dial(t, gate.addr)
	const call = "RL.GCRA k 1000 1 1h"
	gate.admitted(call, 700, 50)
	r.stall(true)
	for range 600 {
		gate.send(call)
		if strings.Contains(other.ask("RL.UPSTREAM LEASES k"), "units 0 ") {
			break
		}
	}
	other.send("RL.RESET k")
	time.Sleep(100 * time.Millisecond)
	r.stall(false)
	other.read()
	require.True(t, strings.HasPrefix(other.ask(call+" COST 1000"), "[0 1000 0 "), "the limit begins anew")
	for range 300 {
		require.True(t, strings.HasPrefix(other.ask(call), "[1 1000 0 "), "and nothing of it is held here")
	}
}

// TestLeasesStayWithTheirUpstream: what is held when the gateway turns to another one is given back to the one that has charged it, and to no other.
func TestLeasesStayWithTheirUpstream(t *testing.T) {
	first, second := startRelay(t, socketOf(reference.Start(t))), startRelay(t, socketOf(reference.Start(t)))
	_, gate := startGateway(t, first.url(), leasing)
	_, there := startGateway(t, second.url())
	const call = "RL.GCRA k 1000 1 1h"
	passed := gate.admitted(call, 400, 20)
	require.True(t, strings.HasPrefix(there.ask(call+" COST 1000"), "[0 1000 0 "))
	require.Equal(t, "OK", gate.ask("CONFIG SET upstream "+second.url()))
	time.Sleep(1500 * time.Millisecond) // leases are a second long
	require.Contains(t, there.ask(call+" PEEK"), " 1000 0 ", "nothing has come back")
	_, again := startGateway(t, first.url())
	require.True(t, strings.HasPrefix(again.ask(call+" PEEK"), fmt.Sprintf("[0 1000 %d ", 1000-passed)), again.ask(call+" PEEK"))
}

// TestResetForgetsLeases: the limit begins anew here as it does upstream.
func TestResetForgetsLeases(t *testing.T) {
	leasesOf(t, func(t *testing.T, gate, _ *client) {
		gate.admitted("RL.FIXED k 100 1h", 300, 1)
		require.True(t, strings.HasPrefix(gate.ask("RL.FIXED k 100 1h"), "[1 "))
		require.Equal(t, "1", gate.ask("RL.RESET k"))
		require.True(t, strings.HasPrefix(gate.ask("RL.FIXED k 100 1h"), "[0 100 99 "))
	})
}
