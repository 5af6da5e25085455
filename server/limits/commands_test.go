package limits_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// conversations are calls to one limiter after another: "+5 call" is made 5 ms after the one before, "+0.5" half a millisecond.
var conversations = []struct{ name, calls string }{
	{"GCRA", `
		RL.GCRA laoqian:reply 15 30 60s    | [0 15 14 -1 2000]
		RL.GCRA laoqian:reply 15 30 60s    | [0 15 13 -1 4000]
		PTTL laoqian:reply                 | 4000
		TYPE laoqian:reply                 | string
		RL.GCRA laoqian:reply 15 30 60s COST 13 | [0 15 0 -1 30000]
		RL.GCRA laoqian:reply 15 30 60s    | [1 15 0 2000 30000]
		RL.GCRA laoqian:reply 15 30 60s PEEK | [0 15 0 -1 30000]
		RL.GCRA laoqian:reply 15 30 60s PEEK COST 1 | [1 15 0 2000 30000]
		RL.GCRA laoqian:reply 15 30 60s COST 16 | [1 15 0 -1 30000]
		+0.5 RL.GCRA laoqian:reply 15 30 60s | [1 15 0 2000 30000]
		+1999 RL.GCRA laoqian:reply 15 30 60s | [1 15 0 1 28001]
		+1 RL.GCRA laoqian:reply 15 30 60s | [0 15 0 -1 30000]
		RL.GCRA laoqian:reply 15 30 60s COST -3 | [0 15 3 -1 24000]
		RL.GCRA laoqian:reply 15 30 60s COST -300 | [0 15 15 -1 0]
		EXISTS laoqian:reply               | 0`},
	{"the same state as CL.THROTTLE", `
		CL.THROTTLE k 14 30 60 1           | [0 15 14 -1 2]
		RL.GCRA k 15 30 60s                | [0 15 13 -1 4000]
		RL.BUCKET k 15 30 60000            | [0 15 12 -1 6000]
		CL.THROTTLE k 14 30 60 0           | [0 15 12 -1 6]`},
	{"a lowered limit", `
		RL.GCRA k 10 1 1s COST 10          | [0 10 0 -1 10000]
		RL.GCRA k 2 1 1s                   | [1 2 0 9000 10000]
		RL.GCRA k 2 1 1s COST -1           | [0 2 0 -1 9000]
		RL.GCRA k 0 1 1s                   | [1 0 0 -1 9000]
		RL.GCRA k -1 1 1s                  | [0 -1 -1 -1 0]
		RL.GCRA other 0 1 1s               | [1 0 0 -1 0]
		EXISTS other                       | 0`},
	{"rates that are no whole number of nanoseconds", `
		RL.GCRA k 300000000 300000000 1s COST 300000000 | [0 300000000 0 -1 1000]
		+500 RL.GCRA k 300000000 300000000 1s PEEK | [0 300000000 150000000 -1 500]
		RL.GCRA k 300000000 300000000 1s COST 150000001 | [1 300000000 150000000 1 500]
		RL.GCRA k 300000000 300000000 1s COST 150000000 | [0 300000000 0 -1 1000]
		RL.GCRA k 300000000 300000000 1s COST 300000001 | [1 300000000 0 -1 1000]
		RL.BUCKET b 600000000 600000000 1s COST 600000000 | [0 600000000 0 -1 1000]
		+500 RL.BUCKET b 600000000 600000000 1s PEEK | [0 600000000 300000000 -1 500]
		RL.GCRA one 1 3 1s                 | [0 1 0 -1 334]
		RL.GCRA one 1 3 1s                 | [1 1 0 334 334]
		RL.QUEUE q 3 3 1s                  | [0 3 2 -1 334 0]
		RL.QUEUE q 3 3 1s                  | [0 3 1 -1 667 334]
		RL.QUEUE q 3 3 1s                  | [0 3 0 -1 1001 667]
		RL.QUEUE q 3 3 1s                  | [1 3 0 334 1001 -1]
		RL.GCRA high 1000000000000000 1000000000000000 1s COST 500000000000000 | [0 1000000000000000 500000000000000 -1 500]
		RL.GCRA high 1000000000000000 1000000000000000 1s COST 500000000000001 | [1 1000000000000000 500000000000000 1 500]
		RL.POLICY SET bytes GCRA 300000000 300000000 1s | OK
		RL.TAKE 1 bytes t COST 300000000   | [0 -1 [[0 300000000 0 -1 1000]]]`},
	{"unlimited leaves no state", `
		RL.GCRA k -1 1 1s COST 5           | [0 -1 -1 -1 0]
		RL.QUEUE k -1 1 1s                 | [0 -1 -1 -1 0 0]
		RL.FIXED k -1 1s                   | [0 -1 -1 -1 0]
		RL.SLIDING k -1 1s                 | [0 -1 -1 -1 0]
		RL.LOG k -1 1s                     | [0 -1 -1 -1 0]
		EXISTS k                           | 0`},
	{"queue", `
		RL.QUEUE k 3 10 1s                 | [0 3 2 -1 100 0]
		RL.QUEUE k 3 10 1s                 | [0 3 1 -1 200 100]
		RL.QUEUE k 3 10 1s                 | [0 3 0 -1 300 200]
		RL.QUEUE k 3 10 1s                 | [1 3 0 100 300 -1]
		+0.5 RL.QUEUE k 3 10 1s PEEK       | [0 3 0 -1 300 300]
		+100 RL.QUEUE k 3 10 1s            | [0 3 0 -1 300 200]`},
	{"fixed window from its first call", `
		RL.FIXED k 2 1s                    | [0 2 1 -1 1000]
		+400 RL.FIXED k 2 1s               | [0 2 0 -1 600]
		RL.FIXED k 2 1s                    | [1 2 0 600 600]
		GET k                              | 2
		PTTL k                             | 600
		RL.FIXED k 2 1s COST -1            | [0 2 1 -1 600]
		RL.FIXED k 2 1s COST -5            | [0 2 2 -1 0]
		PTTL k                             | 600
		RL.FIXED k 2 1s COST 3             | [1 2 2 -1 0]
		RL.FIXED k 2 1s COST 2             | [0 2 0 -1 600]
		+599 RL.FIXED k 2 1s               | [1 2 0 1 1]
		+1 RL.FIXED k 2 1s                 | [0 2 1 -1 1000]
		RL.FIXED k 2 1s PEEK               | [0 2 1 -1 1000]
		RL.FIXED k 2 1s COST 0             | [0 2 1 -1 1000]
		RL.FIXED k 2 1s PEEK COST 2        | [1 2 1 1000 1000]`},
	{"a counter without its EXPIRE is mended", `
		INCRBY k 2                         | 2
		RL.FIXED k 2 1s PEEK               | [0 2 0 -1 1000]
		PTTL k                             | -1
		RL.FIXED k 2 1s                    | [1 2 0 1000 1000]
		PTTL k                             | 1000
		+1000 RL.FIXED k 2 1s              | [0 2 1 -1 1000]
		PEXPIRE k 100000                   | 1
		RL.FIXED k 2 1s                    | [0 2 0 -1 1000]
		PEXPIRE k 300                      | 1
		RL.FIXED k 2 1s                    | [1 2 0 300 300]`},
	{"aligned windows", `
		RL.FIXED k 2 4s ALIGNED            | [0 2 1 -1 2000]
		+2000 RL.FIXED k 2 4s ALIGNED      | [0 2 1 -1 4000]`},
	{"calendar units", `
		RL.FIXED h 9 HOUR                  | [0 9 8 -1 890000]
		RL.FIXED d 9 day                   | [0 9 8 -1 36890000]
		RL.FIXED w 9 WEEK                  | [0 9 8 -1 123290000]
		RL.FIXED m 9 MONTH                 | [0 9 8 -1 814490000]
		RL.FIXED y 9 YEAR                  | [0 9 8 -1 3492890000]
		RL.FIXED b 9 DAY TZ Europe/Berlin  | [0 9 8 -1 33290000]
		RL.FIXED t 9 MONTH TZ Asia/Tokyo COST 2 | [0 9 7 -1 782090000]`},
	{"sliding window counter", `
		RL.SLIDING k 10 1s SLICES 1        | [0 10 9 -1 2000]
		RL.SLIDING k 10 1s SLICES 1 COST 7 | [0 10 2 -1 2000]
		HGETALL k                          | [1795268710000 8]
		+1250 RL.SLIDING k 10 1s SLICES 1  | [0 10 3 -1 1750]
		RL.SLIDING k 10 1s SLICES 1 COST 4 | [1 10 3 125 1750]
		+124 RL.SLIDING k 10 1s SLICES 1 PEEK COST 4 | [1 10 3 1 1626]
		+1 RL.SLIDING k 10 1s SLICES 1 COST 4 | [0 10 0 -1 1625]
		RL.SLIDING k 10 1s SLICES 1 COST -6 | [0 10 6 -1 625]
		PTTL k                             | 625
		RL.SLIDING k 10 1s SLICES 1 COST -60 | [0 10 10 -1 0]
		EXISTS k                           | 0`},
	{"sliding window with slices, and another number of them", `
		RL.SLIDING k 3 1s SLICES 4         | [0 3 2 -1 1250]
		+300 RL.SLIDING k 3 1s SLICES 4    | [0 3 1 -1 1200]
		HGETALL k                          | [1795268710000 1 1795268710250 1]
		RL.SLIDING k 3 1s SLICES 2         | [0 3 0 -1 1200]
		HGETALL k                          | [1795268710000 3]
		+1500 RL.SLIDING k 3 1s SLICES 2   | [0 3 2 -1 1200]
		HGETALL k                          | [1795268711500 1]`},
	{"sliding log: the worked example", `
		+100 RL.LOG k 2 1000               | [0 2 1 -1 1000]
		+300 RL.LOG k 2 1000               | [0 2 0 -1 1000]
		+100 RL.LOG k 2 1000               | [1 2 0 600 900]
		+600 RL.LOG k 2 1000               | [0 2 0 -1 1000]
		ZRANGE k 0 -1 WITHSCORES           | [1795268710400-0 1795268710400 1795268711100-0 1795268711100]
		PTTL k                             | 1000`},
	{"sliding log: costs", `
		RL.LOG k 5 1s COST 3               | [0 5 2 -1 1000]
		ZRANGE k 0 -1                      | [1795268710000-0 1795268710000-1 1795268710000-2]
		+10 RL.LOG k 5 1s                  | [0 5 1 -1 1000]
		RL.LOG k 5 1s COST 2               | [1 5 1 990 1000]
		RL.LOG k 5 1s COST 5               | [1 5 1 1000 1000]
		RL.LOG k 5 1s COST 6               | [1 5 1 -1 1000]
		RL.LOG k 5 1s COST -1              | [0 5 2 -1 990]
		PTTL k                             | 990
		RL.LOG k 5 1s COST -2 PEEK         | [0 5 2 -1 990]
		RL.LOG k 5 1s COST -9              | [0 5 5 -1 0]
		EXISTS k                           | 0`},
	{"sliding log: what has expired goes in slices", `
		RL.LOG k 9000 1s COST 5000         | [0 9000 4000 -1 1000]
		+1 RL.LOG k 9000 1s                | [0 9000 3999 -1 1000]
		+999 RL.LOG k 9000 1s              | [0 9000 8998 -1 1000]
		ZCARD k                            | 4994
		RL.LOG k 9000 1s COST 3            | [0 9000 8995 -1 1000]
		ZCARD k                            | 4989
		RL.LOG k 9000 1s PEEK              | [0 9000 8995 -1 1000]
		ZCARD k                            | 4989`},
	{"sliding log: members", `
		RL.LOG k 2 1s MEMBER a             | [0 2 1 -1 1000]
		+10 RL.LOG k 2 1s MEMBER b         | [0 2 0 -1 1000]
		+10 RL.LOG k 2 1s MEMBER a         | [0 2 0 -1 990]
		RL.LOG k 2 1s MEMBER c             | [1 2 0 980 990]
		ZRANGE k 0 -1 WITHSCORES           | [a 1795268710000 b 1795268710010]
		RL.LOG k 2 1s MEMBER b COST -1     | [0 2 1 -1 980]
		RL.LOG k 2 1s MEMBER b COST -1     | [0 2 1 -1 980]
		RL.LOG k 2 1s COST 2 MEMBER x      | ERR with MEMBER the cost must be 1 or less
		+980 RL.LOG k 2 1s MEMBER a        | [0 2 1 -1 1000]
		ZSCORE k a                         | 1795268711000`},
	{"sliding log: a look at an id that is inside, under a lowered limit", `
		RL.LOG k 3 1s MEMBER a             | [0 3 2 -1 1000]
		RL.LOG k 3 1s MEMBER b             | [0 3 1 -1 1000]
		RL.LOG k 3 1s MEMBER c             | [0 3 0 -1 1000]
		RL.LOG k 2 1s MEMBER a             | [0 2 0 -1 1000]
		RL.LOG k 2 1s MEMBER a PEEK        | [0 2 0 -1 1000]
		RL.LOG k 2 1s MEMBER a COST 0      | [0 2 0 -1 1000]
		RL.LOG k 2 1s MEMBER a PEEK COST 1 | [0 2 0 -1 1000]
		RL.LOG k 2 1s MEMBER d PEEK        | [1 2 0 1000 1000]
		RL.LOG k 2 1s MEMBER d COST 0      | [1 2 0 1000 1000]
		RL.LOG k 2 1s PEEK                 | [1 2 0 1000 1000]
		+1000 RL.LOG k 2 1s MEMBER a PEEK  | [0 2 2 -1 0]
		ZCARD k                            | 3`},
	{"sliding window: a slice in the future does not count", `
		HSET k 1795268711000 9             | 1
		RL.SLIDING k 2 1s SLICES 2 PEEK    | [0 2 2 -1 0]
		RL.SLIDING k 2 1s SLICES 2 COST -1 | [0 2 2 -1 0]
		RL.SLIDING k 2 1s SLICES 2         | [0 2 1 -1 1500]
		PTTL k                             | 1500
		RL.SLIDING k 2 1s SLICES 2         | [0 2 0 -1 1500]
		RL.SLIDING k 2 1s SLICES 2         | [1 2 0 1250 1500]
		RL.SLIDING k 2 1s SLICES 2 COST -1 | [0 2 1 -1 1500]
		HGETALL k                          | [1795268711000 9 1795268710000 1]
		RL.SLIDING k 2 1s SLICES 2 COST -1 | [0 2 2 -1 0]
		EXISTS k                           | 0`},
	{"sliding window: slices that a foreign hand has written", `
		HSET k 9223372036854775807 1       | 1
		HSET k -9223372036854775808 7      | 1
		RL.SLIDING k 2 1s                  | [0 2 1 -1 1100]
		HGETALL k                          | [9223372036854775807 1 1795268710000 1]
		HSET k 1795268710001 5             | 1
		RL.SLIDING k 2 1s                  | [0 2 0 -1 1100]
		RL.SLIDING k 2 1s SLICES 4         | [1 2 0 1125 1250]
		RL.SLIDING k 3 1s SLICES 4         | [0 3 0 -1 1250]
		HGETALL k                          | [9223372036854775807 1 1795268710000 3 1795268710001 5]`},
	{"sliding window: several at once over a key with a slice in the future", `
		RL.POLICY SET s SLIDING 2 1s       | OK
		HSET k 1795268710100 9             | 1
		RL.TAKE 1 s k                      | [0 -1 [[0 2 1 -1 1100]]]
		RL.TAKE 1 s k COST 2               | [1 0 [[1 2 1 1100 1100]]]
		PTTL k                             | 1100
		+99 RL.TAKE 1 s k PEEK             | [0 -1 [[0 2 1 -1 1001]]]`},
	{"sliding log: what lies outside the window does not count", `
		ZADD k 1795268709000 old 1795268709001 in 1795268710001 later | 3
		RL.LOG k 2 1s PEEK                 | [0 2 1 -1 1]
		RL.LOG k 2 1s                      | [0 2 0 -1 1000]
		ZSCORE k old                       | nil`},
	{"state of the wrong shape", `
		HSET h f v                         | 1
		SET s text                         | OK
		ZADD z 1 m                         | 1
		RL.GCRA h 1 1 1s                   | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.GCRA s 1 1 1s                   | ERR the key holds a value that is no limiter's state
		RL.QUEUE z 1 1 1s                  | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.FIXED s 1 1s                    | ERR the key holds a value that is no limiter's state
		RL.FIXED h 1 1s                    | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.SLIDING s 1 1s                  | WRONGTYPE Operation against a key holding the wrong kind of value
		RL.SLIDING h 1 1s                  | ERR the key holds a value that is no limiter's state
		RL.LOG s 1 1s                      | WRONGTYPE Operation against a key holding the wrong kind of value
		GET s                              | text`},
}

func TestLimiterConversations(t *testing.T) {
	for _, tc := range conversations {
		t.Run(tc.name, func(t *testing.T) { servertest.Converse(t, servertest.NewClockClient(t), tc.calls) })
	}
}

// TestLimiterEffects replays what the conversations have logged on another server, which must come to hold the same.
func TestLimiterEffects(t *testing.T) {
	for _, tc := range slices.Concat(conversations, commandConversations) {
		t.Run(tc.name, func(t *testing.T) {
			w, replayed := servertest.NewClockClient(t), servertest.NewClockClient(t)
			w.Srv.Effects.Enable(math.MaxInt64)
			servertest.Converse(t, w, tc.calls)
			// The replay is at another time, at which nothing that came to be has expired.
			for _, command := range (&servertest.EffectsClient{WorkerClient: *w.WorkerClient}).TakeEffects() {
				for _, limiter := range []string{"RL.", "GCRA ", "INCREX"} {
					require.False(t, strings.HasPrefix(command, limiter), "a replay decides nothing anew")
				}
				words := strings.Split(command, " ")
				if words[0] == "HSET" { // a policy is one word with spaces
					words = strings.SplitN(command, " ", 4)
				}
				require.NotContains(t, string(replayed.Run(servertest.EncodeCommand(words...))), "-ERR", command)
			}
			require.Equal(t, w.Contents(), replayed.Contents())
		})
	}
}
