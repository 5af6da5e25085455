package limits_test

import (
	"fmt"
	"strings"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limits"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// newReserver is a client of a server with a policy of each algorithm, all of 100 units.
func newReserver(t *testing.T) *servertest.ClockClient {
	w := servertest.NewClockClient(t)
	for _, policy := range reservePolicies {
		require.Equal(t, "OK", w.Call("RL.POLICY SET "+policy))
	}
	return w
}

// cron does the background work until nothing is left to do, however often a busy machine interrupts it.
func cron(s *server.Server) {
	for range 50 {
		s.Cron()
	}
}

var reservePolicies = []string{
	"tokens GCRA 100 100 100s", "requests FIXED 100 60s", "hourly SLIDING 100 100s SLICES 10", "exact LOG 100 100s", "parallel ACQUIRE 2 30s", "free UNLIMITED",
}

// TestReserveOfOneLimit goes through what becomes of a reservation of each algorithm: charged at once, given back by what was not used.
func TestReserveOfOneLimit(t *testing.T) {
	for _, tc := range []struct{ policy, peek, taken, half, none string }{
		{"tokens", "RL.TAKE 1 tokens k PEEK", "[0 100 60 -1 40000]", "[0 100 85 -1 15000]", "[0 100 100 -1 0]"},
		{"requests", "RL.TAKE 1 requests k PEEK", "[0 100 60 -1 60000]", "[0 100 85 -1 60000]", "[0 100 100 -1 0]"},
		{"hourly", "RL.TAKE 1 hourly k PEEK", "[0 100 60 -1 110000]", "[0 100 85 -1 110000]", "[0 100 100 -1 0]"},
		{"exact", "RL.TAKE 1 exact k PEEK", "[0 100 60 -1 100000]", "[0 100 85 -1 100000]", "[0 100 100 -1 0]"},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			w := newReserver(t)
			require.Equal(t, "[0 -1 a ["+tc.taken+"]]", w.Call("RL.RESERVE 1 "+tc.policy+" k COST 40 TTL 60s ID a"))
			require.Equal(t, "[0 -1 ["+tc.taken+"]]", w.Call(tc.peek))
			require.Equal(t, "[1 ["+tc.half+"]]", w.Call("RL.SETTLE a ACTUAL 15"))
			require.Equal(t, "[0 []]", w.Call("RL.SETTLE a ACTUAL 15"))
			require.Equal(t, "0", w.Call("RL.CANCEL a"))
			require.Equal(t, "[0 -1 ["+tc.half+"]]", w.Call(tc.peek))
			w.Call("RL.RESET k")
			w.Call("RL.RESERVE 1 " + tc.policy + " k COST 40 TTL 60s ID a")
			require.Equal(t, "1", w.Call("RL.CANCEL a"))
			require.Equal(t, "0", w.Call("RL.CANCEL a"))
			require.Equal(t, "[0 -1 ["+tc.none+"]]", w.Call(tc.peek))
			require.Equal(t, "0", w.Call("EXISTS rl:reservation:{a}"))
		})
	}
}

// TestReserveOfALease: the lease goes by the reservation's id, and is given back by every end, whatever it has used.
func TestReserveOfALease(t *testing.T) {
	w := newReserver(t)
	for _, end := range []string{"RL.SETTLE a ACTUAL 1", "RL.SETTLE a ACTUAL 5000", "RL.CANCEL a"} {
		require.Equal(t, "[0 -1 a [[0 2 1 -1 30000]]]", w.Call("RL.RESERVE 1 parallel k TTL 60s ID a"))
		require.Equal(t, "1", w.Call("RL.RENEW k a 60s"))
		w.Call(end)
		require.Equal(t, "0", w.Call("EXISTS k"), end)
	}
	w.Call("RL.RESERVE 1 parallel k TTL 60s ID a")
	w.Call("RL.RESERVE 1 parallel k TTL 60s ID b")
	require.Equal(t, "[1 0 nil [[1 2 0 30000 30000]]]", w.Call("RL.RESERVE 1 parallel k TTL 60s ID c"))
	require.Equal(t, "0", w.Call("EXISTS rl:reservation:{c}"))
	require.Equal(t, "[1 [[0 2 1 -1 30000]]]", w.Call("RL.SETTLE a ACTUAL 0"))
	require.Equal(t, "[b]", w.Call("ZRANGE k 0 -1"))
}

// TestReserveOfSeveral is the case of an LLM gateway: requests, tokens and calls at a time, in one step.
func TestReserveOfSeveral(t *testing.T) {
	w := newReserver(t)
	require.Equal(t, "[0 -1 a [[0 100 99 -1 60000] [0 100 60 -1 40000] [0 2 1 -1 30000] [0 -1 -1 -1 0]]]",
		w.Call("RL.RESERVE 4 requests r tokens t parallel p free f COSTS 1 40 1 1 TTL 60s ID a"))
	require.Equal(t, "[1 1 nil [[0 100 99 -1 60000] [1 100 60 30000 40000] [0 2 1 -1 30000]]]",
		w.Call("RL.RESERVE 3 requests r tokens t parallel p COSTS 1 90 1 TTL 60s"))
	require.Equal(t, "ERR ACTUALS must give one number for each pair", w.Call("RL.SETTLE a ACTUALS 1 2 3"))
	require.Equal(t, "[1 [[0 100 99 -1 60000] [0 100 88 -1 12000] [0 2 2 -1 0] [0 -1 -1 -1 0]]]", w.Call("RL.SETTLE a ACTUALS 1 12 0 9"))
}

// TestReserveDebt: what was used beyond the reservation is charged above the limit, and calls are limited until it has drained.
func TestReserveDebt(t *testing.T) {
	w := newReserver(t)
	for policy, want := range map[string]string{
		"tokens": "[1 [[1 100 0 30000 130000]]]", "requests": "[1 [[1 100 0 60000 60000]]]", "hourly": "[1 [[1 100 0 102308 110000]]]", "exact": "[1 [[1 100 0 100000 100000]]]",
	} {
		w.Call("RL.RESERVE 1 " + policy + " " + policy + " COST 40 TTL 60s ID a")
		require.Equal(t, want, w.Call("RL.SETTLE a ACTUAL 130"), policy)
	}
	require.Equal(t, "[1 0 [[1 100 0 31000 130000]]]", w.Call("RL.TAKE 1 tokens tokens"))
	require.Equal(t, uint64(4), w.Srv.Reservations.Counts.Debts)
	servertest.Converse(t, w, `
		+30999 RL.TAKE 1 tokens tokens | [1 0 [[1 100 0 1 99001]]]
		+1 RL.TAKE 1 tokens tokens     | [0 -1 [[0 100 0 -1 100000]]]
		RL.RESERVE 1 tokens new COST 0 TTL 1s ID a | [0 -1 a [[0 100 100 -1 0]]]
		RL.SETTLE a ACTUAL 7           | [1 [[0 100 93 -1 7000]]]
	`)
}

// TestReserveGivesBackWhatIsLeft: time has paid off a part of the charge, and other calls are none of its business.
func TestReserveGivesBackWhatIsLeft(t *testing.T) {
	servertest.Converse(t, newReserver(t), `
		RL.RESERVE 1 tokens k COST 50 TTL 600s ID a | [0 -1 a [[0 100 50 -1 50000]]]
		+45000 RL.TAKE 1 tokens k COST 30           | [0 -1 [[0 100 65 -1 35000]]]
		RL.SETTLE a ACTUAL 0                        | [1 [[0 100 70 -1 30000]]]
		RL.RESET k                                  | 1
		RL.RESERVE 1 tokens k COST 50 TTL 600s ID a | [0 -1 a [[0 100 50 -1 50000]]]
		DEL k                                       | 1
		RL.TAKE 1 tokens k COST 60                  | [0 -1 [[0 100 40 -1 60000]]]
		RL.CANCEL a                                 | 1
		RL.TAKE 1 tokens k PEEK                     | [0 -1 [[0 100 40 -1 60000]]]
		RL.RESET k                                  | 1
		RL.RESERVE 1 requests k COST 50 TTL 600s ID a | [0 -1 a [[0 100 50 -1 60000]]]
		+60001 RL.TAKE 1 requests k COST 10         | [0 -1 [[0 100 90 -1 60000]]]
		RL.CANCEL a                                 | 1
		RL.TAKE 1 requests k PEEK                   | [0 -1 [[0 100 90 -1 60000]]]
		RL.RESERVE 1 hourly h COST 50 TTL 600s ID a | [0 -1 a [[0 100 50 -1 104999]]]
		+30000 RL.TAKE 1 hourly h COST 10           | [0 -1 [[0 100 40 -1 104999]]]
		RL.SETTLE a ACTUAL 20                       | [1 [[0 100 70 -1 104999]]]
		RL.RESERVE 1 hourly h COST 5 TTL 600s ID a  | [0 -1 a [[0 100 65 -1 104999]]]
		+200000 RL.CANCEL a                         | 1
	`)
}

// TestReserveAfterAChangedPolicy: nothing comes back of a window whose words have changed; the rest does.
func TestReserveAfterAChangedPolicy(t *testing.T) {
	servertest.Converse(t, newReserver(t), `
		RL.RESERVE 3 tokens t requests r hourly h COST 50 TTL 600s ID a | [0 -1 a [[0 100 50 -1 50000] [0 100 50 -1 60000] [0 100 50 -1 110000]]]
		RL.POLICY SET tokens GCRA 200 100 100s     | OK
		RL.POLICY SET requests FIXED 200 60s       | OK
		RL.POLICY SET hourly SLIDING 200 100s SLICES 10 | OK
		RL.SETTLE a ACTUAL 20                      | [1 [[0 200 180 -1 20000] [0 200 150 -1 60000] [0 200 150 -1 110000]]]
		RL.RESERVE 1 tokens t2 COST 50 TTL 600s ID a | [0 -1 a [[0 200 150 -1 50000]]]
		RL.POLICY DEL tokens                       | 1
		RL.SETTLE a ACTUAL 60                      | [1 [[0 200 140 -1 60000]]]
	`)
}

// TestReserveOfWhatBecomesALog: what is used beyond a reservation adds no more entries to a log than a reservation may, also if the policy was
// another one when it was made, and for all pairs together.
func TestReserveOfWhatBecomesALog(t *testing.T) {
	servertest.Converse(t, newReserver(t), `
		RL.POLICY SET p FIXED 10 60s               | OK
		RL.RESERVE 1 p k COST 0 TTL 600s ID a      | [0 -1 a [[0 10 10 -1 0]]]
		RL.POLICY SET p LOG 10 60s                 | OK
		RL.SETTLE a ACTUAL 3000000                 | [1 [[1 10 0 60000 60000]]]
		ZCARD k                                    | 10000
		RL.POLICY SET q LOG 100000 60s             | OK
		RL.RESERVE 2 q l q m COST 1 TTL 600s ID b  | [0 -1 b [[0 100000 99999 -1 60000] [0 100000 99999 -1 60000]]]
		RL.SETTLE b ACTUAL 9000                    | ERR cost of a reserved log must be <= 10000
		RL.SETTLE b ACTUAL 5000                    | [1 [[0 100000 95000 -1 60000] [0 100000 95000 -1 60000]]]
	`)
}

// TestReserveOfManyThatBecomeLogs: one call adds no more entries to logs than any other may, and background work charges the rest.
func TestReserveOfManyThatBecomeLogs(t *testing.T) {
	w := newReserver(t)
	require.Equal(t, "OK", w.Call("RL.POLICY SET p FIXED 10 60s"))
	pairs, keys := "", ""
	for i := range 12 {
		pairs, keys = pairs+fmt.Sprintf(" p k%d", i), keys+fmt.Sprintf(" k%d", i)
	}
	w.Call("RL.RESERVE 12" + pairs + " COST 0 TTL 600s ID a")
	require.Equal(t, "OK", w.Call("RL.POLICY SET p LOG 100000 60s"))
	w.Call("RL.SETTLE a ACTUAL 3000000")
	require.Equal(t, "10000", w.Call("ZCARD k9"))
	require.Equal(t, "0", w.Call("ZCARD k10"))
	require.Equal(t, 1, w.Srv.Reservations.Open())
	require.Equal(t, "[0 []]", w.Call("RL.SETTLE a ACTUAL 0"))
	cron(w.Srv)
	for i := range 12 {
		require.Equal(t, "10000", w.Call(fmt.Sprintf("ZCARD k%d", i)))
	}
	require.Zero(t, w.Srv.Reservations.Open())
	require.Equal(t, "12", w.Call("DEL"+keys))
	require.Equal(t, limits.ReservationCounts{Reserved: 1, Settled: 1, Debts: 1}, w.Srv.Reservations.Counts)
}

// TestSettleOfMost: what was reserved may be nearly as much as there is, and what was used beyond it is charged all the same.
func TestSettleOfMost(t *testing.T) {
	w := newReserver(t)
	require.Equal(t, "OK", w.Call("RL.POLICY SET most FIXED 9223372036854775807 60s"))
	require.Equal(t, "[0 -1 a [[0 9223372036854775807 7 -1 60000]]]", w.Call("RL.RESERVE 1 most k COST 9223372036854775800 TTL 60s ID a"))
	require.Equal(t, "[1 [[0 9223372036854775807 2 -1 60000]]]", w.Call("RL.SETTLE a ACTUAL 9223372036854775805"))
	require.Equal(t, "9223372036854775805", w.Call("GET k"))
}

// TestSettleOfDebt: a client may have written a debt that has not timed out, and settles it with any number.
func TestSettleOfDebt(t *testing.T) {
	w := newReserver(t)
	w.Call(`SET rl:reservation:{a} a~9000000000000~1~requests~k~"FIXED~100~60s"~-9223372036854775808~0~-`)
	w.Call(`SET rl:reservation:{b} b~9000000000000~1~requests~k~"FIXED~100~60s"~-9223372036854775807~0~-`)
	require.Equal(t, "[0 []]", w.Call("RL.SETTLE a ACTUAL 1"))
	require.Equal(t, "[1 [[1 100 0 60000 60000]]]", w.Call("RL.SETTLE b ACTUAL 9223372036854775807"))
}

// TestReservationOfAnotherLimit: where a client has written another limit into a reservation, its end leaves nothing that follows the key.
func TestReservationOfAnotherLimit(t *testing.T) {
	for _, words := range []string{"LOG 100 60s", "GCRA 100 100 60s", "SLIDING 100 60s", "ACQUIRE 2 30s", "UNLIMITED"} {
		w := newReserver(t)
		w.Call("RL.RESERVE 1 requests k COST 40 TTL 60s ID a")
		text := w.Call("GET rl:reservation:{a}")
		require.Equal(t, "OK", w.Ask("SET", "rl:reservation:{a}", strings.Replace(text, "FIXED 100 60s", words, 1)))
		require.Contains(t, w.Call("GET rl:reservation:{a}"), words)
		require.Equal(t, "1", w.Call("RL.CANCEL a"))
		require.Zero(t, w.Srv.Reservations.Memory(), words)
	}
}

// TestSettledLogs: what is used of a log is charged to it, or is an error: what another pair has reserved makes no room, and what a pair
// without a limit has used counts for nothing.
func TestSettledLogs(t *testing.T) {
	servertest.Converse(t, newReserver(t), `
		RL.POLICY SET q LOG 50000 60s              | OK
		RL.RESERVE 3 q k q l q m COST 10000 TTL 600s ID a | [0 -1 a [[0 50000 40000 -1 60000] [0 50000 40000 -1 60000] [0 50000 40000 -1 60000]]]
		RL.SETTLE a ACTUALS 30000 0 0              | ERR cost of a reserved log must be <= 10000
		RL.SETTLE a ACTUALS 10000 10000 9999       | [1 [[0 50000 40000 -1 60000] [0 50000 40000 -1 60000] [0 50000 40001 -1 60000]]]
		DEL k l m                                  | 3
		RL.POLICY SET open LOG -1 60s              | OK
		RL.RESERVE 2 open k q l COSTS 1000000000000 1 TTL 600s ID b | [0 -1 b [[0 -1 -1 -1 0] [0 50000 49999 -1 60000]]]
		RL.SETTLE b ACTUALS 0 30000                | ERR cost of a reserved log must be <= 10000
		RL.SETTLE b ACTUALS 1000000000000 10000    | [1 [[0 -1 -1 -1 0] [0 50000 40000 -1 60000]]]
		ZCARD l                                    | 10000
	`)
}

// TestReservationsAreLeftAloneInAPause: a reservation whose key has been changed is looked at, and the key stays where it is, past its time too.
func TestReservationsAreLeftAloneInAPause(t *testing.T) {
	w := newReserver(t)
	w.Call("RL.RESERVE 1 requests r COST 40 TTL 1h ID a")
	require.Equal(t, "1", w.Ask("PEXPIREAT", "rl:reservation:{a}", fmt.Sprint(w.Now/1e6+50)))
	require.Equal(t, "OK", w.Call("CLIENT PAUSE 1000 WRITE"))
	w.Now += 100 * 1e6
	there := func() bool {
		_, found := w.Srv.Keys.DB(0).Peek(w.Srv.Keys.Key([]byte("rl:reservation:{a}")))
		return found
	}
	cron(w.Srv)
	require.True(t, there())
	require.Zero(t, w.Srv.Reservations.Open())
	w.Now += 1000 * 1e6
	cron(w.Srv)
	require.False(t, there())
	require.Zero(t, w.Srv.Reservations.Open())
}

// TestReservationsThatGoAndComeTakeNoMemory: one that is made again and again under the same id, while nobody has the time to look.
func TestReservationsThatGoAndComeTakeNoMemory(t *testing.T) {
	w := newReserver(t)
	w.Call("RL.RESERVE 1 free f TTL 1h ID other")
	w.Call("DEL rl:reservation:{other}")
	for range 100 {
		w.Call("RL.RESERVE 1 free f TTL 1h ID a")
		w.Call("DEL rl:reservation:{a}")
	}
	require.Equal(t, 2, w.Srv.Reservations.Changed())
	w.Call("RL.RESERVE 1 free f TTL 1h ID a")
	cron(w.Srv)
	require.Zero(t, w.Srv.Reservations.Changed())
	require.Equal(t, 1, w.Srv.Reservations.Open())
}

// TestReservationsOfOneDatabaseAreForgotten, and those of others are not: not their time-outs, nor what may come back of them, nor what others do
// to them.
func TestReservationsOfOneDatabaseAreForgotten(t *testing.T) {
	w := newReserver(t)
	for i := range 20 {
		w.Call(fmt.Sprintf("SELECT %d", 1+i%2))
		w.Call(fmt.Sprintf("RL.RESERVE 1 tokens k COST 1 TTL %ds ID a%d", 1+(i*7)%20, i))
	}
	w.Call("DEL rl:reservation:{a19}")
	w.Call("SELECT 1")
	w.Call("DEL rl:reservation:{a18}")
	require.Equal(t, 20, w.Srv.Reservations.Open())
	w.Call("FLUSHDB")
	require.Equal(t, 10, w.Srv.Reservations.Open())
	require.Equal(t, "[0 -1 b [[0 100 95 -1 5000]]]", w.Call("RL.RESERVE 1 tokens k COST 5 TTL 1h ID b"))
	require.Equal(t, "[1 [[0 100 100 -1 0]]]", w.Call("RL.SETTLE b ACTUAL 0"))
	w.Call("SELECT 2")
	cron(w.Srv)
	require.Equal(t, 9, w.Srv.Reservations.Open())
	require.Equal(t, "[0 100 90 -1 10000]", strings.TrimSuffix(strings.TrimPrefix(w.Call("RL.TAKE 1 tokens k PEEK"), "[0 -1 ["), "]]"))
	require.Equal(t, "[1 [[0 100 91 -1 9000]]]", w.Call("RL.SETTLE a1 ACTUAL 0"))
	w.Now += 5 * 1e9
	cron(w.Srv)
	require.Equal(t, 6, w.Srv.Reservations.Open())
	w.Call("FLUSHALL")
	require.Zero(t, w.Srv.Reservations.Open())
	require.Zero(t, w.Srv.Reservations.Memory())
}

// TestTextsThatAreNoReservations are not split into words, of which they may have millions.
func TestTextsThatAreNoReservations(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Ask("SET", "rl:reservation:{a}", "a 1 1 "+strings.Repeat("ab ", 5_000))
	line := servertest.EncodeCommand("RL.CANCEL", "a")
	require.Equal(t, ":0\r\n", string(w.Run(line)))
	require.Less(t, testing.AllocsPerRun(10, func() { w.Run(line) }), 4000.0)
}

// TestReservationsOfOthersAreNotRead: to whom none is shown, a list costs no more for how many there are than a look at each name.
func TestReservationsOfOthersAreNotRead(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "+@all", "~mine:*")
	const there = 200
	for i := range there {
		reply := admin.Ask("RL.RESERVE", "2", "FIXED 100 1h", fmt.Sprintf("theirs:%d", i), "FIXED 100 1h", fmt.Sprintf("others:%d", i), "TTL", "1h", "ID", fmt.Sprint(i))
		require.NotContains(t, reply, "-ERR")
	}
	list := servertest.EncodeCommand("RL.RESERVATIONS")
	require.Equal(t, "*0\r\n", string(user.Run(list)))
	require.Less(t, testing.AllocsPerRun(10, func() { user.Run(list) }), float64(4*there), "to read one takes ten times as many")
}

// TestReserveUnderExceptions: a key's override is its policy then as now, a pair that only a shadow limits has charged nothing, and a block limits
// reservations, too.
func TestReserveUnderExceptions(t *testing.T) {
	servertest.Converse(t, newReserver(t), `
		RL.POLICY OVERRIDE SET requests vip 1000 60s       | OK
		RL.RESERVE 1 requests vip COST 500 TTL 60s ID a    | [0 -1 a [[0 1000 500 -1 60000]]]
		RL.SETTLE a ACTUAL 100                             | [1 [[0 1000 900 -1 60000]]]
		RL.RESERVE 1 requests vip COST 500 TTL 60s ID a    | [0 -1 a [[0 1000 400 -1 60000]]]
		RL.POLICY OVERRIDE DEL requests vip                | 1
		RL.SETTLE a ACTUAL 100                             | [1 [[1 100 0 60000 60000]]]
		RL.POLICY SET tokens GCRA 100 100 100s SHADOW      | OK
		RL.RESERVE 2 tokens t requests r COST 60 TTL 60s ID a | [0 -1 a [[0 100 40 -1 60000] [0 100 40 -1 60000]]]
		RL.RESERVE 2 tokens t requests r COSTS 60 1 TTL 60s ID b | [0 -1 b [[0 100 40 -1 60000] [0 100 39 -1 60000]]]
		RL.SETTLE b ACTUALS 90 0                           | [1 [[0 -1 -1 -1 0] [0 100 40 -1 60000]]]
		RL.SETTLE a ACTUAL 10                              | [1 [[0 100 90 -1 10000] [0 100 90 -1 60000]]]
		RL.POLICY SET hourly SLIDING 100 100s BLOCK 10m    | OK
		RL.RESERVE 1 hourly h COST 60 TTL 60s ID a         | [0 -1 a [[0 100 40 -1 110000]]]
		RL.RESERVE 1 hourly h COST 60 TTL 60s ID b         | [1 0 nil [[1 100 40 600000 110000]]]
		RL.CANCEL a                                        | 1
		RL.RESERVE 1 hourly h COST 60 TTL 60s ID b         | [1 0 nil [[1 100 100 600000 0]]]
	`)
}

// TestReserveOfALogKeepsOthersEntries: of a log its own entries come back, the newest of them first, also among those of the same millisecond.
func TestReserveOfALogKeepsOthersEntries(t *testing.T) {
	w := newReserver(t)
	servertest.Converse(t, w, `
		RL.TAKE 1 exact k COST 2                   | [0 -1 [[0 100 98 -1 100000]]]
		RL.RESERVE 1 exact k COST 3 TTL 60s ID a   | [0 -1 a [[0 100 95 -1 100000]]]
		RL.TAKE 1 exact k COST 2                   | [0 -1 [[0 100 93 -1 100000]]]
		RL.SETTLE a ACTUAL 1                       | [1 [[0 100 95 -1 100000]]]
	`)
	require.Equal(t, "[1795268710000-0 1795268710000-1 1795268710000-2 1795268710000-5 1795268710000-6]", w.Call("ZRANGE k 0 -1"))
	servertest.Converse(t, w, `
		RL.RESERVE 1 exact k COST 3 TTL 60s ID a   | [0 -1 a [[0 100 92 -1 100000]]]
		RL.CANCEL a                                | 1
		ZCARD k                                    | 5
		RL.RESERVE 1 exact new COST 3 TTL 60s ID a | [0 -1 a [[0 100 97 -1 100000]]]
		RL.CANCEL a                                | 1
		EXISTS new                                 | 0
	`)
}

// TestReserveTimesOut: at its deadline the server cancels a reservation, once, and nobody settles it any more.
func TestReserveTimesOut(t *testing.T) {
	w := newReserver(t)
	cron(w.Srv)
	w.Call("RL.RESERVE 2 requests k parallel p COSTS 40 1 TTL 10s ID a")
	w.Call("RL.RESERVE 1 requests k COST 10 TTL 20s ID b")
	require.Equal(t, 2, w.Srv.Reservations.Open())
	w.Now += 9_999 * 1e6
	cron(w.Srv)
	require.Equal(t, "50", w.Call("GET k"))
	w.Now += 1e6
	cron(w.Srv)
	require.Equal(t, "10", w.Call("GET k"))
	require.Equal(t, "0", w.Call("EXISTS p rl:reservation:{a}"))
	require.Equal(t, "[0 []]", w.Call("RL.SETTLE a ACTUAL 0"))
	w.Now += 10_000 * 1e6 // and whoever comes before the server does finds it timed out, too
	require.Equal(t, "[0 []]", w.Call("RL.SETTLE b ACTUAL 5"))
	require.Equal(t, "0", w.Call("GET k"))
	cron(w.Srv)
	require.Zero(t, w.Srv.Reservations.Open())
	require.Equal(t, limits.ReservationCounts{Reserved: 2, TimedOut: 2}, w.Srv.Reservations.Counts)
}

// TestReserveErrors has the replies to calls that cannot be right, none of which changes anything.
func TestReserveErrors(t *testing.T) {
	w := newReserver(t)
	w.Call("RL.RESERVE 1 tokens k TTL 60s ID there")
	before := w.Contents()
	const usage = "ERR syntax error, try RL.RESERVE numpairs policy key [policy key …] [COST n | COSTS each [each …]] TTL ttl [ID id] [WAIT duration]"
	for call, want := range map[string]string{
		"RL.RESERVE 1 tokens k":                                       "ERR wrong number of arguments for 'rl.reserve' command" + strings.TrimPrefix(usage, "ERR syntax error"),
		"RL.RESERVE 1 tokens k COST 1":                                usage + " (TTL is missing)",
		"RL.RESERVE 0 tokens k TTL 1s":                                "ERR numpairs must be from 1 to 128, not '0'",
		"RL.RESERVE 3 tokens k TTL 1s":                                "ERR numpairs is greater than the number of pairs",
		"RL.RESERVE 1 tokens k TTL 1x":                                "ERR invalid duration '1x', use a number with us, ms, s, m, h, d or w (none: ms)",
		"RL.RESERVE 1 tokens k TTL 1s TTL 1s":                         usage + " (TTL is given twice)",
		"RL.RESERVE 1 tokens k TTL 1s PEEK":                           usage + " (unknown word 'PEEK')",
		"RL.RESERVE 1 tokens k TTL 1s COST":                           usage + " (COST needs a value)",
		"RL.RESERVE 1 tokens k TTL 1s COST -1":                        "ERR cost of a reservation must be >= 0",
		"RL.RESERVE 1 tokens k TTL 1s COST x":                         "ERR COST must be an integer of 64 bits, not 'x'",
		"RL.RESERVE 2 tokens k tokens l TTL 1s COSTS 1":               "ERR COSTS must give one cost for each pair",
		"RL.RESERVE 2 tokens k requests k TTL 1s":                     "ERR duplicate key 'k'",
		"RL.RESERVE 1 nosuch k TTL 1s":                                "ERR no such policy 'nosuch'",
		"RL.RESERVE 1 parallel k TTL 1s COST 2":                       "ERR cost of a lease must be 0 or 1, use COSTS to give each pair its own",
		"RL.RESERVE 1 tokens k TTL 1s ID there":                       "ERR reservation 'there' exists",
		"RL.RESERVE 1 tokens k TTL 1s ID " + strings.Repeat("x", 129): "ERR id must be 1 to 128 bytes",
		"RL.RESERVE 1 tokens rl:reservation:{x} TTL 1s":               "WRONGTYPE Operation against a key holding the wrong kind of value",
		"RL.SETTLE there":                                             "ERR wrong number of arguments for 'rl.settle' command, try RL.SETTLE id <ACTUAL n | ACTUALS each [each …]>",
		"RL.SETTLE there ACTUAL 1 2":                                  "ERR syntax error, try RL.SETTLE id <ACTUAL n | ACTUALS each [each …]>",
		"RL.SETTLE there USED 1":                                      "ERR syntax error, try RL.SETTLE id <ACTUAL n | ACTUALS each [each …]>",
		"RL.SETTLE there ACTUAL -1":                                   "ERR actual must be >= 0",
		"RL.SETTLE there ACTUAL x":                                    "ERR ACTUAL must be an integer of 64 bits, not 'x'",
		"RL.SETTLE there ACTUALS 1 2":                                 "ERR ACTUALS must give one number for each pair",
		"RL.SETTLE nosuch ACTUALS 1 2":                                "[0 []]",
		"RL.CANCEL nosuch":                                            "0",
		"RL.RESET rl:reservation:{there}":                             "WRONGTYPE Operation against a key holding the wrong kind of value",
		"RL.RESERVATIONS COUNT 0":                                     "ERR count must be >= 1, not '0'",
		"RL.RESERVATIONS THERE":                                       "ERR syntax error, try RL.RESERVATIONS [MATCH pattern] [COUNT count]",
		"RL.RESERVATIONS MATCH nosuch":                                "[]",
	} {
		require.Equal(t, want, w.Call(call), call)
	}
	require.Equal(t, before, w.Contents())
	w.Call("RL.POLICY SET longlog LOG 50000 1h")
	require.Equal(t, "ERR cost of a reserved log must be <= 10000", w.Call("RL.RESERVE 1 longlog k2 COST 10001 TTL 1s"))
	w.Call("RL.RESERVE 1 longlog k2 COST 10000 TTL 1s ID log")
	require.Equal(t, "ERR cost of a reserved log must be <= 10000", w.Call("RL.SETTLE log ACTUAL 10001"))
}

// TestReservationsAreListed also chooses by the id and by a key.
func TestReservationsAreListed(t *testing.T) {
	w := newReserver(t)
	w.Call("RL.RESERVE 2 tokens team:1 parallel p COSTS 40 1 TTL 60s ID late")
	w.Now += 5e6
	w.Call("RL.RESERVE 1 tokens team:2 COST 7 TTL 10s ID soon")
	const late = "[id late database 0 age-ms 5 timeout-ms 59995 pairs [[tokens team:1 40] [parallel p 1]]]"
	const soon = "[id soon database 0 age-ms 0 timeout-ms 10000 pairs [[tokens team:2 7]]]"
	require.Equal(t, "["+soon+" "+late+"]", w.Call("RL.RESERVATIONS"))
	require.Equal(t, "["+soon+"]", w.Call("RL.RESERVATIONS COUNT 1"))
	require.Equal(t, "["+late+"]", w.Call("RL.RESERVATIONS MATCH team:1"))
	require.Equal(t, "["+soon+"]", w.Call("RL.RESERVATIONS COUNT 5 MATCH s*"))
}

// TestReservationIsOneUnit: what a reservation and its end change is logged as one transaction of Redis's own commands.
func TestReservationIsOneUnit(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	w.EffectsOf("RL.POLICY SET tokens GCRA 100 100 100s", "RL.POLICY SET parallel ACQUIRE 2 30s")
	const start = 1_700_000_000_123
	value := fmt.Sprintf(`"a" %d %d "tokens" "t" "GCRA 100 100 100s" 40 %d - "parallel" "p" "ACQUIRE 2 30s" 1 0 -`, start+60_000, start*int64(1e6), start*int64(1e6))
	require.Equal(t, []string{
		"MULTI", fmt.Sprintf("SET t %d PXAT %d", (start+40_000)*int64(1e6), start+40_000), fmt.Sprintf("ZADD p %d a", start+30_000), fmt.Sprintf("PEXPIREAT p %d", start+30_000),
		fmt.Sprintf("SET rl:reservation:{a} %s PXAT %d", value, start+60_000+24*3600*1000), "EXEC",
	}, w.EffectsOf("RL.RESERVE 2 tokens t parallel p COSTS 40 1 TTL 60s ID a"))
	require.Equal(t, []string{
		"MULTI", fmt.Sprintf("SET t %d PXAT %d", (start+10_000)*int64(1e6), start+10_000), "DEL p", "DEL rl:reservation:{a}", "EXEC",
	}, w.EffectsOf("RL.SETTLE a ACTUALS 10 1"))
	w.EffectsOf("RL.RESERVE 2 tokens t parallel p COSTS 40 1 TTL 1s ID a")
	w.Now += 1000 * 1e6
	cron(w.Srv)
	require.Equal(t, []string{
		"MULTI", fmt.Sprintf("SET t %d PXAT %d", (start+10_000)*int64(1e6), start+10_000), "DEL p", "DEL rl:reservation:{a}", "EXEC",
	}, w.TakeEffects())
}

// TestReservationsAreFoundAfterARestart: those that are open time out, each once, and give back what time has left of them for certain.
func TestReservationsAreFoundAfterARestart(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	for _, policy := range reservePolicies {
		w.Words(strings.Fields("RL.POLICY SET " + policy)...)
	}
	w.Words(strings.Fields("RL.RESERVE 5 tokens t requests r hourly h exact e parallel p COSTS 40 40 40 40 1 TTL 10s ID a")...)
	w.Words(strings.Fields("RL.RESERVE 1 tokens t COST 30 TTL 20s ID b")...)
	now += 2_000 * 1e6
	w.Kill()
	disk = disk.Clone()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	cron(w.Srv)
	require.Equal(t, 2, w.Srv.Reservations.Open())
	now += 1_000 * 1e6
	require.Equal(t, "*2\r\n:1\r\n*1\r\n*5\r\n:0\r\n:100\r\n:53\r\n:-1\r\n:47000\r\n", w.Words(strings.Fields("RL.SETTLE b ACTUAL 10")...))
	now += 7_000 * 1e6
	cron(w.Srv)
	require.Zero(t, w.Srv.Reservations.Open())
	require.Equal(t, limits.ReservationCounts{Settled: 1, TimedOut: 1}, w.Srv.Reservations.Counts)
	require.Equal(t, "$1\r\n0\r\n", w.Words("GET", "r"))
	require.Equal(t, ":0\r\n", w.Words("EXISTS", "h", "e", "p", "rl:reservation:{a}", "rl:reservation:{b}"))
	state := servertest.Digest(w.Srv)
	w.Kill()
	disk = disk.Clone()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
}

// TestReservationsWithoutUnits: one whose limit is written out, and lacks a unit, ends after a restart as others do.
func TestReservationsWithoutUnits(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Words("RL.RESERVE", "1", "FIXED 10 60000000000", "k", "COST", "5", "TTL", "4s", "ID", "a")
	w.Kill()
	w, err = servertest.StartAOF(disk.Clone(), config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	now += 5_000 * 1e6
	cron(w.Srv)
	require.Equal(t, limits.ReservationCounts{TimedOut: 1}, w.Srv.Reservations.Counts)
	require.Equal(t, "$1\r\n0\r\n", w.Words("GET", "k"))
}

// TestReservationsOfExchangedDatabases: they go with the keys.
func TestReservationsOfExchangedDatabases(t *testing.T) {
	w := newReserver(t)
	cron(w.Srv)
	w.Call("RL.RESERVE 1 requests k COST 40 TTL 10s ID a")
	w.Call("SWAPDB 0 1")
	cron(w.Srv)
	require.Equal(t, 1, w.Srv.Reservations.Open())
	require.Equal(t, "[0 []]", w.Call("RL.SETTLE a ACTUAL 0"))
	w.Now += 10_000 * 1e6
	cron(w.Srv)
	w.Call("SELECT 1")
	require.Equal(t, "0", w.Call("GET k"))
	w.Call("RL.RESERVE 1 requests k COST 40 TTL 10s ID a")
	w.Call("FLUSHALL")
	require.Zero(t, w.Srv.Reservations.Open())
	require.Equal(t, "[0 []]", w.Call("RL.SETTLE a ACTUAL 0"))
}

// TestReservationsAmongExchangedStrangers: where keys were that have a reservation's name and are none, as many reservations are found all the same.
func TestReservationsAmongExchangedStrangers(t *testing.T) {
	w := newReserver(t)
	w.Call("SET rl:reservation:{x} 1")
	w.Call("SET rl:reservation:{y} 1")
	w.Call("SELECT 1")
	w.Call("RL.RESERVE 1 requests k COST 40 TTL 10s ID a")
	cron(w.Srv)
	w.Call("SWAPDB 0 1")
	cron(w.Srv)
	require.Equal(t, 1, w.Srv.Reservations.Open())
	w.Now += 10_000 * 1e6
	cron(w.Srv)
	w.Call("SELECT 0")
	require.Equal(t, "0", w.Call("GET k"))
}

// TestReservationsOfTheLastDatabase: a server that begins to follow a primary forgets the reservations of any database, and finds them when it follows no more.
func TestReservationsOfTheLastDatabase(t *testing.T) {
	const databases, open = 10_000, 10_000
	cfg := servertest.Unsaved()
	cfg.Databases = databases
	w, _ := servertest.NewHandClockClient(t, cfg)
	ask := func(words ...string) string { return string(w.Run(servertest.EncodeCommand(words...))) }
	require.Equal(t, "+OK\r\n", ask("SELECT", fmt.Sprint(databases-1)))
	for i := range open {
		ask("RL.RESERVE", "1", "GCRA 100 100 100s", "k", "COST", "0", "TTL", "1h", "ID", fmt.Sprint(i))
	}
	require.Equal(t, open, w.Srv.Reservations.Open())
	w.Srv.Gate.Set(command.GateFollows, true)
	w.Srv.Cron()
	require.Zero(t, w.Srv.Reservations.Open())
	w.Srv.Gate.Set(command.GateFollows, false)
	for range 100 * open { // each looks for a short time only
		if w.Srv.Cron(); w.Srv.Reservations.Open() == open {
			break
		}
	}
	require.Equal(t, open, w.Srv.Reservations.Open())
}

// TestReservationsFoundAnewGiveBackInFull: what several have charged to one key comes back of each, since none of them takes it from the others.
func TestReservationsFoundAnewGiveBackInFull(t *testing.T) {
	w := newReserver(t)
	for i := range 8 {
		w.Call(fmt.Sprintf("RL.RESERVE 2 requests r tokens t COST 10 TTL %ds ID %d", 60-i, i))
	}
	w.Srv.Gate.Set(command.GateFollows, true)
	cron(w.Srv)
	w.Srv.Gate.Set(command.GateFollows, false)
	cron(w.Srv)
	require.Equal(t, 8, w.Srv.Reservations.Open())
	for i, id := range []int{0, 7, 3, 4, 1, 2, 6, 5} {
		used := 80 - 9*(i+1)
		require.Equal(t, fmt.Sprintf("[1 [[0 100 %d -1 60000] [0 100 %d -1 %d]]]", 100-used, 100-used, 1000*used), w.Call(fmt.Sprintf("RL.SETTLE %d ACTUAL 1", id)))
	}
}

// TestReservationsThatCopiesBring: whatever makes a key that is a reservation, it times out; a name alone makes none.
func TestReservationsThatCopiesBring(t *testing.T) {
	w := newReserver(t)
	cron(w.Srv)
	w.Call("RL.RESERVE 1 requests r COST 40 TTL 10s ID a")
	w.Call("COPY rl:reservation:{a} rl:reservation:{a} DB 2")
	w.Call("SET rl:reservation:{c} nothing")
	w.Call("COPY r r DB 2")
	cron(w.Srv)
	require.Equal(t, 2, w.Srv.Reservations.Open())
	w.Now += 10_000 * 1e6
	cron(w.Srv)
	require.Zero(t, w.Srv.Reservations.Open())
	require.Equal(t, "0", w.Call("GET r"))
	w.Call("SELECT 2")
	require.Equal(t, "0", w.Call("GET r"))
	w.Call("RL.RESERVE 1 requests r COST 40 TTL 10s ID a")
	w.Call("DEL rl:reservation:{a}")
	w.Now += 10_000 * 1e6
	cron(w.Srv)
	require.Equal(t, "40", w.Call("GET r"), "who deletes the key gives nothing back")
	require.Zero(t, w.Srv.Reservations.Open())
}

// TestReservationsWhoseKeysOthersChange: a reservation is open no longer than its key says so, however that went, and one that somebody restores meanwhile
// is found and times out.
func TestReservationsWhoseKeysOthersChange(t *testing.T) {
	for _, change := range []string{
		"DEL rl:reservation:{a}", "UNLINK rl:reservation:{a}", "SET rl:reservation:{a} text", "APPEND rl:reservation:{a} text", "RENAME rl:reservation:{a} other",
		"MOVE rl:reservation:{a} 1", "PEXPIREAT rl:reservation:{a} 1", "SET rl:reservation:{a} $a", "SET rl:reservation:{a} $b",
	} {
		t.Run(change, func(t *testing.T) {
			w := newReserver(t)
			w.Call("RL.RESERVE 1 parallel p TTL 1s ID c")
			restored := w.Call("GET rl:reservation:{c}")
			w.Call("DEL rl:reservation:{c}")
			w.Call("RL.RESERVE 1 parallel p2 TTL 1s ID a")
			a := w.Call("GET rl:reservation:{a}")
			w.Call("RL.CANCEL a")
			cron(w.Srv)
			require.Zero(t, w.Srv.Reservations.Open())

			w.Call("RL.RESERVE 1 requests r COST 40 TTL 1h ID a")
			cron(w.Srv)
			words := strings.Fields(change)
			switch words[len(words)-1] {
			case "$a": // another one under the same name
				words[2] = a
			case "$b": // the same with another time-out
				words[2] = w.Call("GET rl:reservation:{a}")
				words[2] = strings.Replace(words[2], fmt.Sprint(w.Now/1e6+3_600_000), fmt.Sprint(w.Now/1e6+900), 1)
			}
			require.NotContains(t, w.Ask(words...), "ERR")
			require.Equal(t, "OK", w.Ask("SET", "rl:reservation:{c}", restored))
			require.Equal(t, "1", w.Call("EXISTS p"))
			cron(w.Srv)
			open := 1
			if strings.Contains(change, "$") || strings.HasPrefix(change, "MOVE") {
				open = 2
			}
			require.Equal(t, open, w.Srv.Reservations.Open())
			require.Equal(t, open, strings.Count(w.Call("RL.RESERVATIONS"), "age-ms"))
			w.Now += 1000 * 1e6
			cron(w.Srv)
			require.Equal(t, "0", w.Call("EXISTS p rl:reservation:{c}"))
			if strings.HasPrefix(change, "MOVE") {
				require.Equal(t, 1, w.Srv.Reservations.Open())
				w.Now += 3600 * 1000 * 1e6
				cron(w.Srv)
			}
			require.Zero(t, w.Srv.Reservations.Open())
			require.Zero(t, w.Srv.Reservations.Memory())
		})
	}
}

// TestCopiesOfReservationsGiveNothingBack: what was charged once comes back once, whatever is done to the reservation's key meanwhile.
func TestCopiesOfReservationsGiveNothingBack(t *testing.T) {
	for _, tc := range []struct{ policy, want string }{
		{"tokens", "[0 100 85 -1 15000]"}, {"requests", "[0 100 85 -1 60000]"}, {"hourly", "[0 100 85 -1 110000]"}, {"exact", "[0 100 85 -1 100000]"}, {"parallel", "[0 2 2 -1 0]"},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			peek, call := "RL.TAKE 1 "+tc.policy+" k PEEK", "RL.RESERVE 1 "+tc.policy+" k COST 40 TTL 10s ID a"
			w := newReserver(t)
			if tc.policy == "parallel" {
				call = "RL.RESERVE 1 parallel k TTL 10s ID a"
			} else {
				w.Call("RL.TAKE 1 " + tc.policy + " k COST 15")
			}
			w.Call(call)
			held := w.Call(peek)
			require.Equal(t, "1", w.Call("COPY rl:reservation:{a} rl:reservation:{b}"))
			cron(w.Srv)
			require.Equal(t, 1, w.Srv.Reservations.Open())
			require.Equal(t, "0", w.Call("RL.CANCEL b"))
			require.Equal(t, "[0 []]", w.Call("RL.SETTLE b ACTUAL 0"))
			require.Equal(t, held, w.Call(peek))
			require.Equal(t, "1", w.Call("RL.CANCEL a"))
			require.Equal(t, "0", w.Call("RL.CANCEL b"))
			require.Equal(t, strings.Replace("[0 -1 [?]]", "?", tc.want, 1), withoutIDs(w.Call(peek)))
			w.Call(call)
			require.Equal(t, "OK", w.Call("RENAME rl:reservation:{a} rl:reservation:{b}"))
			require.Equal(t, "0 0", w.Call("RL.CANCEL a")+" "+w.Call("RL.CANCEL b"), "its name is gone, so nobody can end it")
			w.Now += 10_000 * 1e6
			cron(w.Srv)
			require.Zero(t, w.Srv.Reservations.Open())
			require.Equal(t, "1", w.Call("EXISTS rl:reservation:{b}"), "it goes with its TTL")
		})
	}
}

// withoutIDs leaves the leases' ids out of an answer of RL.TAKE.
func withoutIDs(answer string) string { return strings.Replace(answer, " [nil]]", "]", 1) }

// TestReservationsOfAReplica: a server that follows a primary cancels nothing by itself. Once it is a primary, it finds what is open and does.
func TestReservationsOfAReplica(t *testing.T) {
	w := newReserver(t)
	cron(w.Srv)
	w.Call("RL.RESERVE 2 requests r tokens t COST 40 TTL 10s ID a")
	w.Srv.Gate.Set(command.GateFollows, true)
	w.Srv.Gate.Refuse(command.GateReadOnly, "READONLY You can't write against a read only replica.")
	w.Now += 20_000 * 1e6
	cron(w.Srv)
	for _, call := range []string{"RL.RESERVE 1 tokens k TTL 1s", "RL.SETTLE a ACTUAL 0", "RL.CANCEL a"} {
		require.Equal(t, "READONLY You can't write against a read only replica.", w.Call(call), call)
	}
	require.Equal(t, "ERR reservation 'a' exists", w.Call("RL.RESERVE 1 tokens k TTL 1s ID a"))
	require.Equal(t, "[1 0 nil [[1 100 100 -1 0]]]", w.Call("RL.RESERVE 1 tokens k COST 101 TTL 1s"), "who is limited is told so")
	cron(w.Srv)
	require.Equal(t, "40", w.Call("GET r"))
	require.Zero(t, w.Srv.Reservations.Open(), "the primary has them")
	w.Srv.Gate.Set(command.GateFollows, false)
	w.Srv.Gate.Refuse(command.GateReadOnly, "")
	cron(w.Srv)
	require.Equal(t, "0", w.Call("GET r"))
	require.Equal(t, "[0 -1 [[0 100 100 -1 0]]]", w.Call("RL.TAKE 1 tokens t PEEK"))
	require.Equal(t, "0", w.Call("EXISTS rl:reservation:{a}"))
	require.Equal(t, uint64(1), w.Srv.Reservations.Counts.TimedOut)
}

// TestReservationsCountAsMemory: what is remembered of them counts towards maxmemory until they end.
func TestReservationsCountAsMemory(t *testing.T) {
	w := newReserver(t)
	for i := range 1000 {
		w.Call(fmt.Sprintf("RL.RESERVE 1 tokens k%d TTL 10s", i))
	}
	require.Greater(t, w.Srv.Reservations.Memory(), 500_000)
	w.Now += 10_000 * 1e6
	for w.Srv.Reservations.Open() > 0 {
		cron(w.Srv)
	}
	require.Zero(t, w.Srv.Reservations.Memory())
}

// TestReservationOfAnotherUser: whoever has no right to the keys can neither settle nor cancel, and does not see the list.
func TestReservationOfAnotherUser(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "~mine:*", "+@throttle")
	admin.Ask("RL.POLICY", "SET", "tokens", "GCRA", "100", "100", "100s")
	require.Contains(t, user.Ask(strings.Fields("RL.RESERVE 1 tokens mine:1 TTL 60s ID a")...), ":0\r\n:-1\r\n$1\r\na\r\n")
	require.Contains(t, user.Ask(strings.Fields("RL.RESERVE 1 tokens other TTL 60s ID b")...), "-NOPERM ")
	admin.Ask(strings.Fields("RL.RESERVE 2 tokens mine:2 tokens other TTL 60s ID b")...)
	const denied = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	require.Equal(t, denied, user.Ask("RL.SETTLE", "b", "ACTUAL", "0"))
	require.Equal(t, denied, user.Ask("RL.CANCEL", "b"))
	require.Equal(t, ":1\r\n", user.Ask("RL.CANCEL", "a"))
	require.Contains(t, user.Ask("RL.RESERVATIONS"), "-NOPERM ")
	require.Equal(t, ":1\r\n", admin.Ask("RL.CANCEL", "b"))
}

// TestReservationsWithoutRoom: without memory nothing is reserved, but what is open ends.
func TestReservationsWithoutRoom(t *testing.T) {
	w := newReserver(t)
	w.Call("RL.RESERVE 1 tokens k COST 40 TTL 60s ID a")
	w.SetShort(true)
	require.Equal(t, "OOM command not allowed when used memory > 'maxmemory'.", w.Call("RL.RESERVE 1 tokens k COST 40 TTL 60s ID b"))
	require.Equal(t, "[1 0 nil [[1 100 60 30000 40000]]]", w.Call("RL.RESERVE 1 tokens k COST 90 TTL 60s ID b"), "who is limited is told so")
	require.Equal(t, "[1 [[1 100 0 50000 150000]]]", w.Call("RL.SETTLE a ACTUAL 150"))
}

// TestReserveDebtOfAnySize: what was used beyond is charged however much that is, and calls are limited from then on.
func TestReserveDebtOfAnySize(t *testing.T) {
	for _, policy := range []string{"tokens", "requests", "hourly"} {
		for _, actual := range []string{"1000", "9223372036854775807"} {
			w := newReserver(t)
			w.Call("RL.RESERVE 1 " + policy + " k COST 10 TTL 60s ID a")
			require.Regexp(t, `^\[1 \[\[[01] 100 0 `, w.Call("RL.SETTLE a ACTUAL "+actual))
			require.Regexp(t, `^\[1 0 \[\[1 100 0 \d+ \d+\]\]\]$`, w.Call("RL.TAKE 1 "+policy+" k"), "%s after %s", policy, actual)
		}
	}
}

// TestReserveLeavesAloneWhatIsNoState: a hash into which somebody else has written is no limiter's any more, and nothing of it is given back; also
// when the reservation was found anew since.
func TestReserveLeavesAloneWhatIsNoState(t *testing.T) {
	for _, foundAnew := range []bool{false, true} {
		w := newReserver(t)
		servertest.Converse(t, w, `
			RL.RESERVE 1 hourly k COST 40 TTL 60s ID a | [0 -1 a [[0 100 60 -1 110000]]]
			HSET k field text                          | 1
			RL.TAKE 1 hourly k PEEK                    | ERR the key holds a value that is no limiter's state
		`)
		if foundAnew {
			w.Srv.Gate.Set(command.GateFollows, true)
			cron(w.Srv)
			w.Srv.Gate.Set(command.GateFollows, false)
			cron(w.Srv)
			require.Equal(t, 1, w.Srv.Reservations.Open())
		}
		servertest.Converse(t, w, `
			RL.CANCEL a                                | 1
			HGETALL k                                  | [1795268710000 40 field text]
		`)
	}
}

// TestReserveByALongText: a limit that a call writes out is kept as long as it may be, and not cut to another one.
func TestReserveByALongText(t *testing.T) {
	w := newReserver(t)
	policy := "FIXED 1" + strings.Repeat(" ", 119) + "10m"
	require.Equal(t, "[0 -1 a [[0 1 0 -1 600000]]]", w.Ask("RL.RESERVE", "1", policy, "k", "TTL", "60s", "ID", "a"))
	require.Equal(t, "1", w.Call("RL.CANCEL a"))
	require.Equal(t, "0", w.Call("GET k"))
}

// TestReserveGivesBackNothingOfOthers: what was deleted or given back since the charge does not come back at the cost of later calls, whatever
// the limit counts with.
func TestReserveGivesBackNothingOfOthers(t *testing.T) {
	for _, policy := range []string{"tokens", "requests", "hourly"} {
		for _, between := range []string{"DEL k", "RL.RESET k", "RL.TAKE 1 " + policy + " k COST -100", "RENAME k other"} {
			t.Run(policy+", "+between, func(t *testing.T) {
				w := newReserver(t)
				w.Call("RL.RESERVE 1 " + policy + " k COST 40 TTL 60s ID a")
				w.Call("RL.RESERVE 1 " + policy + " k COST 10 TTL 60s ID b")
				w.Call(between)
				w.Call("RL.RESERVE 1 " + policy + " k COST 30 TTL 60s ID c")
				require.Equal(t, "1", w.Call("RL.CANCEL a"))
				require.Regexp(t, `^\[0 -1 \[\[0 100 70 `, w.Call("RL.TAKE 1 "+policy+" k PEEK"))
				require.Regexp(t, `^\[1 \[\[0 100 80 `, w.Call("RL.SETTLE c ACTUAL 20"), "all that is unused of a later one")
				require.Equal(t, "1", w.Call("RL.CANCEL b"))
				require.Regexp(t, `^\[0 -1 \[\[0 100 80 `, w.Call("RL.TAKE 1 "+policy+" k PEEK"))
				require.Zero(t, w.Srv.Limits.Reservations.Memory())
			})
		}
	}
}
