package limits_test

import (
	"bytes"
	"flag"
	"fmt"
	"testing"

	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestExceptions: what policies have for single keys, written as conversations are. A fixed window of 2 in 10 s limits the third call.
func TestExceptions(t *testing.T) {
	for _, tc := range []struct{ name, calls string }{
		{"canonical text", `
			RL.POLICY SET a fixed 2 10s block 600 double 3600s shadow failure open | OK
			RL.POLICY GET a                    | FIXED 2 10s SHADOW BLOCK 600ms DOUBLE 3600s FAILURE OPEN
			RL.POLICY SET a FIXED 2 10s BLOCK 10m DOUBLE 10m | OK
			RL.POLICY SET a FIXED 2 10s BLOCK 10m DOUBLE 9m | ERR DOUBLE must be at least as long as BLOCK
			RL.POLICY SET a FIXED 2 10s BLOCK 10us | ERR duration '10us' is below 1ms
			RL.POLICY SET a FIXED 2 10s BLOCK 10x | ERR invalid duration '10x', use a number with us, ms, s, m, h, d or w (none: ms)
			RL.POLICY GET a                    | FIXED 2 10s BLOCK 10m DOUBLE 10m`},
		{"shadow", `
			RL.POLICY SET p FIXED 2 10s SHADOW | OK
			RL.TAKE 1 p k                      | [0 -1 [[0 2 1 -1 10000]]]
			RL.TAKE 1 p k COST 2               | [0 -1 [[0 2 1 -1 10000]]]
			RL.TAKE 1 p k                      | [0 -1 [[0 2 0 -1 10000]]]
			RL.TAKE 1 p k                      | [0 -1 [[0 2 0 -1 10000]]]
			RL.TAKE 1 p k PEEK COST 1          | [0 -1 [[0 2 0 -1 10000]]]
			GET k                              | 2
			RL.POLICY SET p FIXED 2 10s        | OK
			RL.TAKE 1 p k                      | [1 0 [[1 2 0 10000 10000]]]`},
		{"nothing beside the keys of limits that are written out", `
			RL.BLOCK FIXED~5~1m k 1h           | ERR no such policy 'FIXED 5 1m'
			RL.POLICY OVERRIDE SET FIXED~5~1m k FIXED 1 1m | ERR no such policy 'FIXED 5 1m'
			RL.POLICY OVERRIDE LIST FIXED~5~1m | ERR no such policy 'FIXED 5 1m'
			DBSIZE                             | 0`},
		{"shadow among others", `
			RL.POLICY SET p FIXED 1 10s SHADOW | OK
			RL.POLICY SET q FIXED 2 10s        | OK
			RL.TAKE 2 p k q l                  | [0 -1 [[0 1 0 -1 10000] [0 2 1 -1 10000]]]
			RL.TAKE 2 p k q l                  | [0 -1 [[0 1 0 -1 10000] [0 2 0 -1 10000]]]
			RL.TAKE 2 p k q l                  | [1 1 [[0 1 0 -1 10000] [1 2 0 10000 10000]]]
			RL.TAKE 2 p fresh q l              | [1 1 [[0 1 1 -1 0] [1 2 0 10000 10000]]]
			EXISTS fresh                       | 0`},
		{"shadow mends a counter without a TTL", `
			RL.POLICY SET p FIXED 2 10s SHADOW | OK
			SET k 5                            | OK
			RL.TAKE 1 p k                      | [0 -1 [[0 2 0 -1 10000]]]
			PTTL k                             | 10000`},
		{"shadow and leases", `
			RL.POLICY SET p ACQUIRE 0 10s SHADOW | OK
			RL.TAKE 1 p k                      | [0 -1 [[0 0 0 -1 0]] [nil]]`},
		{"block", `
			RL.POLICY SET p FIXED 2 10s BLOCK 60s | OK
			RL.TAKE 1 p k COST 2               | [0 -1 [[0 2 0 -1 10000]]]
			RL.TAKE 1 p k COST 0               | [0 -1 [[0 2 0 -1 10000]]]
			RL.TAKE 1 p k PEEK COST 1          | [1 0 [[1 2 0 60000 10000]]]
			EXISTS rl:block:{k}:p              | 0
			RL.TAKE 1 p k                      | [1 0 [[1 2 0 60000 10000]]]
			GET rl:block:{k}:p                 | ban
			PTTL rl:block:{k}:p                | 60000
			+1000 RL.TAKE 1 p k                | [1 0 [[1 2 0 59000 9000]]]
			RL.TAKE 1 p k COST 5               | [1 0 [[1 2 0 -1 9000]]]
			RL.TAKE 1 p k PEEK                 | [1 0 [[1 2 0 59000 9000]]]
			RL.TAKE 1 p k COST 0               | [1 0 [[1 2 0 59000 9000]]]
			RL.TAKE 1 p k COST -1              | [0 -1 [[0 2 1 -1 9000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 2 1 59000 9000]]]
			+58999 RL.TAKE 1 p k               | [1 0 [[1 2 2 1 0]]]
			RL.TAKE 1 p other                  | [0 -1 [[0 2 1 -1 10000]]]
			+1 RL.TAKE 1 p k                   | [0 -1 [[0 2 1 -1 10000]]]
			+1 EXISTS rl:block:{k}:p           | 0`},
		{"a cost that can never pass starts no block", `
			RL.POLICY SET p LOG 5 1m BLOCK 10m DOUBLE 1h | OK
			RL.TAKE 1 p k COST 6               | [1 0 [[1 5 5 -1 0]]]
			EXISTS rl:block:{k}:p              | 0
			RL.TAKE 1 p k COST 5               | [0 -1 [[0 5 0 -1 60000]]]
			RL.TAKE 1 p k COST 6               | [1 0 [[1 5 0 -1 60000]]]
			EXISTS rl:block:{k}:p              | 0
			RL.TAKE 1 p k COST 5               | [1 0 [[1 5 0 600000 60000]]]
			RL.TAKE 1 p k COST 6               | [1 0 [[1 5 0 -1 60000]]]
			GET rl:block:{k}:p                 | 10m
			RL.POLICY SET g GCRA 2 1 1s BLOCK 10m SHADOW | OK
			RL.TAKE 1 g l COST 3               | [0 -1 [[0 2 2 -1 0]]]
			RL.RESERVE 1 g l COST 3 TTL 1s ID i | [0 -1 i [[0 2 2 -1 0]]]
			EXISTS rl:block:{l}:g              | 0`},
		{"a block shorter than the limit itself", `
			RL.POLICY SET p FIXED 1 10s BLOCK 2s | OK
			RL.TAKE 1 p k                      | [0 -1 [[0 1 0 -1 10000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 10000 10000]]]
			+1000 RL.TAKE 1 p k                | [1 0 [[1 1 0 9000 9000]]]
			+1000 RL.TAKE 1 p k PEEK           | [0 -1 [[0 1 0 -1 8000]]]`},
		{"doubling", `
			RL.POLICY SET p FIXED 1 1s BLOCK 60s DOUBLE 3m | OK
			RL.TAKE 1 p k                      | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 60000 1000]]]
			GET rl:block:{k}:p                 | 1m
			PTTL rl:block:{k}:p                | 120000
			+60000 RL.TAKE 1 p k               | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 120000 1000]]]
			GET rl:block:{k}:p                 | 2m
			PTTL rl:block:{k}:p                | 240000
			+120000 RL.TAKE 1 p k              | [0 -1 [[0 1 0 -1 1000]]]
			+118999 RL.TAKE 1 p k              | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 180000 1000]]]
			+180000 RL.TAKE 1 p k              | [0 -1 [[0 1 0 -1 1000]]]
			+179000 RL.TAKE 1 p k              | [0 -1 [[0 1 0 -1 1000]]]
			+999 RL.TAKE 1 p k                 | [1 0 [[1 1 0 180000 1]]]
			+360000 RL.TAKE 1 p k              | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 60000 1000]]]`},
		{"a block survives in its key", `
			RL.POLICY SET p FIXED 1 1s BLOCK 60s DOUBLE 3m | OK
			RL.TAKE 1 p k COST 1               | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 60000 1000]]]
			RENAME rl:block:{k}:p rl:block:{l}:p | OK
			RL.TAKE 1 p l                      | [1 0 [[1 1 1 60000 0]]]
			COPY rl:block:{l}:p rl:block:{m}:p | 1
			+61000 RL.TAKE 1 p m               | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p m                      | [1 0 [[1 1 0 120000 1000]]]
			SET rl:block:{n}:p ban             | OK
			RL.TAKE 1 p n                      | [1 0 [[1 1 1 -1 0]]]
			SET rl:block:{o}:p anything PX 500 | OK
			RL.TAKE 1 p o                      | [1 0 [[1 1 1 500 0]]]
			HSET rl:block:{q}:p f v            | 1
			RL.TAKE 1 p q                      | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p q                      | [1 0 [[1 1 0 60000 1000]]]`},
		{"only who limits is blocked", `
			RL.POLICY SET a FIXED 1 1s BLOCK 60s | OK
			RL.POLICY SET b FIXED 9 1s BLOCK 60s | OK
			RL.POLICY SET c FIXED 1 1s BLOCK 60s | OK
			RL.TAKE 3 a k1 b k2 c k3           | [0 -1 [[0 1 0 -1 1000] [0 9 8 -1 1000] [0 1 0 -1 1000]]]
			RL.TAKE 3 a k1 b k2 c k3 COSTS 0 1 1 | [1 2 [[0 1 0 -1 1000] [0 9 8 -1 1000] [1 1 0 60000 1000]]]
			KEYS rl:block:*                    | [rl:block:{k3}:c]
			RL.TAKE 3 a k1 b k2 c k3           | [1 0 [[1 1 0 60000 1000] [0 9 8 -1 1000] [1 1 0 60000 1000]]]
			+1000 RL.TAKE 2 a k1 c k3          | [1 0 [[1 1 1 59000 0] [1 1 1 59000 0]]]`},
		{"shadow and blocks", `
			RL.POLICY SET p FIXED 1 1s SHADOW BLOCK 60s | OK
			RL.TAKE 1 p k                      | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [0 -1 [[0 1 0 -1 1000]]]
			PTTL rl:block:{k}:p                | 60000
			+5000 RL.TAKE 1 p k                | [0 -1 [[0 1 1 -1 0]]]
			EXISTS k                           | 0
			+55000 RL.TAKE 1 p k               | [0 -1 [[0 1 0 -1 1000]]]`},
		{"bans", `
			RL.BLOCK p k 60s                   | ERR no such policy 'p'
			RL.POLICY SET p GCRA 10 1 1s       | OK
			RL.BLOCK p k 1x                    | ERR invalid duration '1x', use a number with us, ms, s, m, h, d or w (none: ms)
			RL.BLOCK p k 500us                 | ERR duration '500us' is below 1ms
			RL.BLOCK p k 60s                   | OK
			GET rl:block:{k}:p                 | ban
			PTTL rl:block:{k}:p                | 60000
			RL.TAKE 1 p k                      | [1 0 [[1 10 10 60000 0]]]
			RL.TAKE 1 p other                  | [0 -1 [[0 10 9 -1 1000]]]
			EXISTS k                           | 0
			RL.BLOCK p k 5s                    | OK
			+1000 RL.TAKE 1 p k PEEK           | [1 0 [[1 10 10 4000 0]]]
			RL.UNBLOCK p k                     | 1
			RL.UNBLOCK p k                     | 0
			RL.TAKE 1 p k                      | [0 -1 [[0 10 9 -1 1000]]]
			RL.BLOCK p k 5s                    | OK
			RL.POLICY DEL p                    | 1
			RL.UNBLOCK p k                     | 1
			RL.UNBLOCK nosuch k                | ERR no such policy 'nosuch'
			RL.UNBLOCK p/q k                   | ERR policy name must be 1 to 64 characters of A-Z a-z 0-9 _ . : -
			RL.POLICY SET free UNLIMITED       | OK
			RL.BLOCK free k 5s                 | OK
			RL.TAKE 1 free k                   | [1 0 [[1 -1 -1 5000 0]]]
			+5000 RL.TAKE 1 free k             | [0 -1 [[0 -1 -1 -1 0]]]`},
		{"an operator ends a block and its doubling", `
			RL.POLICY SET p FIXED 1 1s BLOCK 60s DOUBLE 3m | OK
			RL.TAKE 1 p k COST 1               | [0 -1 [[0 1 0 -1 1000]]]
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 60000 1000]]]
			+60000 RL.TAKE 1 p k               | [0 -1 [[0 1 0 -1 1000]]]
			RL.UNBLOCK p k                     | 0
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 60000 1000]]]
			RL.UNBLOCK p k                     | 1
			RL.TAKE 1 p k                      | [1 0 [[1 1 0 60000 1000]]]`},
		{"overrides", `
			RL.POLICY SET p GCRA 2 1 1s        | OK
			RL.POLICY OVERRIDE SET p big GCRA 20 10 1s | OK
			RL.POLICY OVERRIDE SET p small 1 1 60 EX 100 | OK
			RL.POLICY OVERRIDE SET p free unlimited | OK
			RL.POLICY OVERRIDE GET p big       | GCRA 20 10 1s
			RL.POLICY OVERRIDE GET p small     | GCRA 1 1 60ms
			RL.POLICY OVERRIDE GET p other     | nil
			GET rl:override:{big}:p            | GCRA 20 10 1s
			TTL rl:override:{small}:p          | 100
			RL.POLICY OVERRIDE LIST p COUNT 100 | [0 [big GCRA 20 10 1s free UNLIMITED small GCRA 1 1 60ms]]
			RL.TAKE 1 p big                    | [0 -1 [[0 20 19 -1 100]]]
			RL.TAKE 1 p small                  | [0 -1 [[0 1 0 -1 60]]]
			RL.TAKE 1 p small                  | [1 0 [[1 1 0 60 60]]]
			RL.TAKE 1 p free COST 1000         | [0 -1 [[0 -1 -1 -1 0]]]
			RL.TAKE 1 p other                  | [0 -1 [[0 2 1 -1 1000]]]
			RL.POLICY OVERRIDE DEL p big       | 1
			RL.POLICY OVERRIDE DEL p big       | 0
			RL.TAKE 1 p big                    | [0 -1 [[0 2 0 -1 1100]]]
			+100001 RL.TAKE 1 p small          | [0 -1 [[0 2 1 -1 1000]]]
			RL.POLICY OVERRIDE LIST p          | [0 [free UNLIMITED]]
			SET rl:override:{x}:p 5~5~1m       | OK
			RL.TAKE 1 p x                      | [0 -1 [[0 5 4 -1 12000]]]
			SET rl:override:{x}:p rubbish      | OK
			RL.POLICY OVERRIDE GET p x         | nil
			RL.TAKE 1 p x                      | [1 0 [[1 2 0 11000 12000]]]
			RL.POLICY SET p FIXED 3 1s         | OK
			RL.POLICY OVERRIDE SET p y GCRA 1 1 1s | ERR an override must be of the policy's algorithm, FIXED, or UNLIMITED
			SET rl:override:{y}:p GCRA~1~1~1s  | OK
			RL.TAKE 1 p y                      | [0 -1 [[0 3 2 -1 1000]]]
			RL.TAKE 1 p free                   | [0 -1 [[0 -1 -1 -1 0]]]`},
		{"overrides: bad calls", `
			RL.POLICY SET p GCRA 2 1 1s        | OK
			RL.POLICY OVERRIDE SET none k 1 1 1s | ERR no such policy 'none'
			RL.POLICY OVERRIDE SET p k         | ERR syntax error, try RL.POLICY OVERRIDE <SET policy key words [words …] [EX seconds] | GET policy key | DEL policy key | LIST policy [CURSOR cursor] [COUNT n]>
			RL.POLICY OVERRIDE SET p k 1 1     | ERR syntax error, try RL.POLICY OVERRIDE SET policy key GCRA capacity count period [SHADOW] [BLOCK length [DOUBLE max]] [WHEN-UNWRITABLE <ERROR | MEMORY>] [FAILURE <ERROR | OPEN | CLOSED | LOCAL>] [<LEASE | NOLEASE>]
			RL.POLICY OVERRIDE SET p k x 1 1s  | ERR limit must be -1 or >= 0, not 'x'
			RL.POLICY OVERRIDE SET p k 1 1 1s EX 0 | ERR invalid expire time in 'rl.policy|override' command
			RL.POLICY OVERRIDE SET p k 1 1 1s EX x | ERR value is not an integer or out of range
			RL.POLICY OVERRIDE GET p           | ERR syntax error, try RL.POLICY OVERRIDE <SET policy key words [words …] [EX seconds] | GET policy key | DEL policy key | LIST policy [CURSOR cursor] [COUNT n]>
			RL.POLICY OVERRIDE LIST p COUNT 0  | ERR count must be >= 1, not '0'
			RL.POLICY OVERRIDE LIST p COUNT 1  | [0 []]
			RL.POLICY OVERRIDE LIST p CURSOR x | ERR invalid cursor
			RL.POLICY OVERRIDE LIST none       | ERR no such policy 'none'
			DBSIZE                             | 1`},
		{"an override has the policy's clauses that it does not say itself", `
			RL.POLICY SET p FIXED 1 1s BLOCK 60s | OK
			RL.POLICY OVERRIDE SET p k FIXED 2 1s | OK
			RL.POLICY OVERRIDE SET p l FIXED 2 1s BLOCK 5s | OK
			RL.POLICY OVERRIDE SET p m FIXED 1 1s SHADOW | OK
			RL.TAKE 3 p k p l p m              | [0 -1 [[0 2 1 -1 1000] [0 2 1 -1 1000] [0 1 0 -1 1000]]]
			RL.TAKE 1 p k COST 2               | [1 0 [[1 2 1 60000 1000]]]
			PTTL rl:block:{k}:p                | 60000
			RL.TAKE 1 p l COST 2               | [1 0 [[1 2 1 5000 1000]]]
			PTTL rl:block:{l}:p                | 5000
			RL.TAKE 1 p m                      | [0 -1 [[0 1 0 -1 1000]]]
			RL.POLICY OVERRIDE SET p k UNLIMITED | OK
			RL.TAKE 1 p k                      | [1 0 [[1 -1 -1 60000 0]]]
			RL.UNBLOCK p k                     | 1
			RL.TAKE 1 p k                      | [0 -1 [[0 -1 -1 -1 0]]]`},
		{"names", `
			RL.POLICY SET a:b FIXED 1 1s BLOCK 60s | OK
			RL.POLICY SET a FIXED 1 1s BLOCK 60s | OK
			RL.TAKE 4 a:b user a x{user}y a b:{user} a } | [0 -1 [[0 1 0 -1 1000] [0 1 0 -1 1000] [0 1 0 -1 1000] [0 1 0 -1 1000]]]
			RL.TAKE 2 a:b user a x{user}y      | [1 0 [[1 1 0 60000 1000] [1 1 0 60000 1000]]]
			RL.TAKE 2 a b:{user} a }           | [1 0 [[1 1 0 60000 1000] [1 1 0 60000 1000]]]
			EXISTS rl:block:{user}:a;b rl:block:{user}:a:x{user}y rl:block:{user}:a:b:{user} rl:block::a:} | 4
			DBSIZE                             | 9`},
	} {
		t.Run(tc.name, func(t *testing.T) { servertest.Converse(t, servertest.NewClockClient(t), tc.calls) })
	}
}

// TestEffectsOfExceptions: what replicas and the append-only file are given are Redis's own commands, with absolute times.
func TestEffectsOfExceptions(t *testing.T) {
	w := servertest.NewEffectsClient(t)
	w.EffectsOf("RL.POLICY SET p FIXED 1 1s BLOCK 60s DOUBLE 3m", "RL.POLICY SET q LOG 1 1s BLOCK 60s", "RL.TAKE 2 p k q k0")
	now := w.Now / 1e6
	require.Equal(t, []string{fmt.Sprintf("SET rl:block:{k}:p 1m PXAT %d", now+120_000)}, w.EffectsOf("RL.TAKE 1 p k"))
	require.Equal(t, []string{fmt.Sprintf("SET rl:block:{k0}:q ban PXAT %d", now+60_000)}, w.EffectsOf("RL.TAKE 1 q k0"))
	require.Empty(t, w.EffectsOf("RL.TAKE 2 p k q k2", "RL.TAKE 1 q k0 PEEK COST 1"))
	require.Equal(t, []string{fmt.Sprintf("SET rl:block:{k}:p ban PXAT %d", now+5_000)}, w.EffectsOf("RL.BLOCK p k 5s"))
	require.Equal(t, []string{"DEL rl:block:{k}:p"}, w.EffectsOf("RL.UNBLOCK p k", "RL.UNBLOCK p k"))
	require.Equal(t, []string{"SET rl:override:{k}:p FIXED 9 1s"}, w.EffectsOf("RL.POLICY OVERRIDE SET p k 9 1s"))
	require.Equal(t, []string{fmt.Sprintf("SET rl:override:{k}:p UNLIMITED PXAT %d", now+7_000)}, w.EffectsOf("RL.POLICY OVERRIDE SET p k UNLIMITED EX 7"))
	require.Equal(t, []string{"DEL rl:override:{k}:p"}, w.EffectsOf("RL.POLICY OVERRIDE DEL p k", "RL.POLICY OVERRIDE GET p k", "RL.POLICY OVERRIDE LIST p"))
}

// TestBlocksThatCannotBeKept: the call is limited without one, and counted.
func TestBlocksThatCannotBeKept(t *testing.T) {
	w := servertest.NewClockClient(t)
	servertest.Converse(t, w, `
		RL.POLICY SET p FIXED 1 1s BLOCK 60s   | OK
		RL.TAKE 1 p k                          | [0 -1 [[0 1 0 -1 1000]]]
		RL.TAKE 1 p l                          | [0 -1 [[0 1 0 -1 1000]]]
		RL.TAKE 1 p l                          | [1 0 [[1 1 0 60000 1000]]]`)
	w.SetShort(true)
	servertest.Converse(t, w, `
		RL.TAKE 1 p k                          | [1 0 [[1 1 0 1000 1000]]]
		RL.TAKE 1 p l                          | [1 0 [[1 1 0 60000 1000]]]
		EXISTS rl:block:{k}:p                  | 0
		RL.BLOCK p m 60s                       | OOM command not allowed when used memory > 'maxmemory'.
		RL.POLICY OVERRIDE SET p m 9 1s        | OOM command not allowed when used memory > 'maxmemory'.
		RL.UNBLOCK p l                         | 1`)
	require.EqualValues(t, 1, w.Srv.Policies.BlocksFailed)
	w.SetShort(false)
	servertest.Converse(t, w, `
		RL.TAKE 1 p k                          | [1 0 [[1 1 0 60000 1000]]]`)
}

// TestExceptionsAreDumpedAndRestored: a block and its doubling, and an override, move with what DUMP says.
func TestExceptionsAreDumpedAndRestored(t *testing.T) {
	at, to := servertest.NewClockClient(t), servertest.NewClockClient(t)
	servertest.Converse(t, at, `
		RL.POLICY SET p FIXED 1 1s BLOCK 60s DOUBLE 1h | OK
		RL.POLICY OVERRIDE SET p k FIXED 2 1s          | OK
		RL.TAKE 1 p k                                  | [0 -1 [[0 2 1 -1 1000]]]
		RL.TAKE 1 p k COST 2                           | [1 0 [[1 2 1 60000 1000]]]`)
	for _, key := range []string{"rl:block:{k}:p", "rl:override:{k}:p"} {
		until := at.Call("PEXPIRETIME " + key)
		if until == "-1" {
			until = "0"
		}
		to.Srv.Config.Get().EnableRestoreCommand = config.AccessYes
		dump := at.Run(servertest.EncodeCommand("DUMP", key))
		_, payload, _ := bytes.Cut(dump, []byte("\r\n"))
		require.Equal(t, "OK", to.Ask("RESTORE", key, until, string(bytes.TrimSuffix(payload, []byte("\r\n"))), "ABSTTL"))
	}
	servertest.Converse(t, to, `
		RL.POLICY SET p FIXED 1 1s BLOCK 60s DOUBLE 1h | OK
		RL.TAKE 1 p k                                  | [1 0 [[1 2 2 60000 0]]]
		+60000 RL.TAKE 1 p k                           | [0 -1 [[0 2 1 -1 1000]]]
		RL.TAKE 1 p k COST 2                           | [1 0 [[1 2 1 120000 1000]]]
		GET rl:block:{k}:p                             | 2m`)
}

// TestExceptionsOfReservations: RL.RESERVE is limited by blocks and begins them, and what the shadow lets pass is neither charged nor given back.
func TestExceptionsOfReservations(t *testing.T) {
	servertest.Converse(t, servertest.NewClockClient(t), `
		RL.POLICY SET p FIXED 5 10s BLOCK 60s      | OK
		RL.POLICY SET s LOG 1 10s SHADOW           | OK
		RL.RESERVE 2 p k s l COSTS 2 3 TTL 5s ID a | [0 -1 a [[0 5 3 -1 10000] [0 1 1 -1 0]]]
		EXISTS l                                   | 0
		RL.SETTLE a ACTUALS 1 4                    | [1 [[0 5 4 -1 10000] [0 -1 -1 -1 0]]]
		EXISTS l                                   | 0
		RL.RESERVE 1 p k COST 5 TTL 5s             | [1 0 nil [[1 5 4 60000 10000]]]
		RL.TAKE 1 p k                              | [1 0 [[1 5 4 60000 10000]]]
		RL.POLICY OVERRIDE SET p m 100 10s         | OK
		RL.RESERVE 1 p m COST 90 TTL 5s ID b       | [0 -1 b [[0 100 10 -1 10000]]]
		RL.SETTLE b ACTUAL 30                      | [1 [[0 100 70 -1 10000]]]`)
}

var exceptionKeys = flag.Int("exceptions.keys", 30_000, "how many overrides, and how many blocks, memory is measured with; make limits has a million")

// TestMemoryOfExceptions: what so many overrides and blocks take, all counted, of names up to 40 bytes.
func TestMemoryOfExceptions(t *testing.T) {
	keys := *exceptionKeys
	for _, tc := range []struct {
		name string
		call func(w *servertest.ClockClient, i int)
	}{
		{"overrides", func(w *servertest.ClockClient, i int) {
			w.Ask("RL.POLICY", "OVERRIDE", "SET", "api", fmt.Sprintf("customer:%013d", i), "GCRA", "200", "200", "60s")
		}},
		{"blocks", func(w *servertest.ClockClient, i int) {
			key := fmt.Sprintf("customer:%022d", i)
			for range 2 {
				w.Ask("RL.TAKE", "1", "api", key)
			}
			w.Ask("DEL", key)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := servertest.NewClockClient(t)
			w.Call("RL.POLICY SET api GCRA 1 1 1s BLOCK 10m DOUBLE 1d")
			before := w.Srv.Keys.Used()
			for i := range keys {
				tc.call(w, i)
			}
			each := float64(w.Srv.Keys.Used()-before) / float64(keys)
			t.Logf("%.1f bytes each of %d", each, keys)
			require.Equal(t, keys+1, w.Srv.Keys.DB(0).Len())
			require.LessOrEqual(t, each, 100.0)
		})
	}
}

// TestNoLimiterHasAKeyBeside: whoever may call limiters with keys of strangers' choice must not have a block or an override by that.
func TestNoLimiterHasAKeyBeside(t *testing.T) {
	servertest.Converse(t, servertest.NewClockClient(t), `
		RL.GCRA rl:block:{x}:p 5 1 2s          | WRONGTYPE Operation against a key holding the wrong kind of value
		CL.THROTTLE rl:block:{x}:p 5 1 2       | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.FIXED rl:override:{x}:p 5 2s        | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.LOG rl:override:{x}:p 5 2s          | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.POLICY SET p GCRA 5 1 1s            | OK
		RL.BLOCK p x 60s                       | OK
		RL.TAKE 1 p rl:block:{x}:p             | ERR the key holds a value that is no limiter's state
		RL.GCRA rl:block:{x}:p 5 1 2s          | ERR the key holds a value that is no limiter's state
		CL.THROTTLE rl:block:{x}:p 5 1 2       | ERR value is not an integer or out of range
		RL.LOG rl:block:{x}:p 5 2s             | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.RESET rl:block:{x}:p                | WRONGTYPE Operation against a key holding the wrong kind of value
		GET rl:block:{x}:p                     | ban`)
}

// TestWaitAndExceptions: a call that waits begins no block, and waits for the end of one; nobody waits for what the shadow lets pass; and operators' changes
// are seen at once.
func TestWaitAndExceptions(t *testing.T) {
	for _, tc := range []struct{ name, lines string }{
		{"blocks", `
			x RL.POLICY SET p FIXED 1 100ms BLOCK 1s | OK
			x RL.TAKE 1 p k                          | [0 -1 [[0 1 0 -1 100]]]
			a RL.TAKE 1 p k WAIT 500ms               | -
			x EXISTS rl:block:{k}:p                  | 0
			+100 a                                   | [0 -1 [[0 1 0 -1 100]]]
			b RL.TAKE 1 p k WAIT 50ms                | [1 0 [[1 1 0 1000 100]]]
			x EXISTS rl:block:{k}:p                  | 1
			c RL.TAKE 1 p k WAIT 999ms               | [1 0 [[1 1 0 1000 100]]]
			c RL.TAKE 1 p k COST 0 WAIT 2s           | [1 0 [[1 1 0 1000 100]]]
			c RL.TAKE 1 p k WAIT 2s                  | -
			d RL.TAKE 1 p k WAIT 2s                  | -
			+999.9 c                                 | -
			+0.1 c                                   | [0 -1 [[0 1 0 -1 100]]]
			d                                        | -
			+100 d                                   | [0 -1 [[0 1 0 -1 100]]]`},
		{"a wait that is over begins a block", `
			x RL.POLICY SET p LOG 1 100ms BLOCK 1s   | OK
			x RL.TAKE 1 p k                          | [0 -1 [[0 1 0 -1 100]]]
			a RL.TAKE 1 p k WAIT 150ms               | -
			+50 x RL.RELEASE other id                | 0
			x ZADD k 1795268710090 later             | 1
			+100 a                                   | [1 0 [[1 1 0 1000 90]]]
			x EXISTS rl:block:{k}:p                  | 1`},
		{"bans end", `
			x RL.POLICY SET q GCRA 1 1 100ms         | OK
			x RL.BLOCK q k 10s                       | OK
			a RL.TAKE 1 q k WAIT 20s                 | -
			b RL.TAKE 1 q k WAIT 20s                 | -
			x RL.UNBLOCK q k                         | 1
			a                                        | [0 -1 [[0 1 0 -1 100]]]
			b                                        | -
			+100 b                                   | [0 -1 [[0 1 0 -1 100]]]
			x RL.POLICY SET free UNLIMITED           | OK
			x RL.BLOCK free k 1s                     | OK
			a RL.TAKE 1 free k WAIT 5s               | -
			+1000 a                                  | [0 -1 [[0 -1 -1 -1 0]]]`},
		{"shadow", `
			x RL.POLICY SET s GCRA 1 1 10s SHADOW    | OK
			x RL.TAKE 1 s k                          | [0 -1 [[0 1 0 -1 10000]]]
			a RL.TAKE 1 s k WAIT 5s                  | [0 -1 [[0 1 0 -1 10000]]]`},
		{"overrides", `
			x RL.POLICY SET o FIXED 1 10s            | OK
			x RL.TAKE 1 o k                          | [0 -1 [[0 1 0 -1 10000]]]
			a RL.TAKE 1 o k WAIT 20s                 | -
			x RL.POLICY OVERRIDE SET o k UNLIMITED   | OK
			a                                        | [0 -1 [[0 -1 -1 -1 0]]]`},
	} {
		t.Run(tc.name, func(t *testing.T) { newCrowd(t).converse(tc.lines) })
	}
}
