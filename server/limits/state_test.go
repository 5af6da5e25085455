package limits_test

import (
	"regexp"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestLimitersTellOfWhatTheyChange: each change of a limiter's state is told under the names that key-space events have in Redis, in the
// order in which the log has them, and nothing is told of calls that change nothing.
func TestLimitersTellOfWhatTheyChange(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Run([]byte("HELLO 3\r\nCONFIG SET notify-keyspace-events EA\r\nPSUBSCRIBE __keyevent@0__:*\r\n"))
	event := regexp.MustCompile(`__keyevent@0__:(\w+)\r\n\$\d+\r\n(\w+)`)
	for _, tc := range []struct {
		call, want string
		later      int64 // ms after the call before
	}{
		{"CL.THROTTLE t 1 1 60", "set t expire t", 0},
		{"CL.THROTTLE t 1 1 60", "set t expire t", 0},
		{"CL.THROTTLE t 1 1 60", "", 0},
		{"CL.THROTTLE t 1 1 60 0", "", 0},
		{"CL.THROTTLE t 1 1 60 -5", "del t", 0},
		{"RL.GCRA g 2 1 60s", "set g expire g", 0},
		{"RL.GCRA g 2 1 60s PEEK", "", 0},
		{"RL.GCRA g 2 1 60s COST -1", "del g", 0},
		{"RL.FIXED f 1 60s", "set f expire f", 0},
		{"RL.FIXED f 1 60s", "", 0},
		{"RL.SLIDING s 9 4ms SLICES 4", "hset s expire s", 0},
		{"RL.SLIDING s 9 4ms SLICES 4", "hset s expire s", 4},
		{"RL.SLIDING s 9 4ms SLICES 4", "hset s expire s", 2},
		{"RL.SLIDING s 9 4ms SLICES 4 PEEK", "", 0},
		{"RL.SLIDING s 9 4ms SLICES 4 COST -2", "del s", 0},
		{"RL.LOG l 9 4ms COST 2", "zadd l expire l", 0},
		{"RL.LOG l 9 4ms", "zadd l expire l", 3},
		{"RL.LOG l 9 4ms", "zremrangebyrank l zadd l expire l", 2},
		{"RL.LOG l 9 4ms COST -1", "zremrangebyrank l expire l", 0},
		{"RL.LOG l 9 4ms COST -1", "del l", 0},
		{"RL.LOG m 1 4ms MEMBER id", "zadd m expire m", 0},
		{"RL.LOG m 1 4ms MEMBER other", "", 0},
		{"RL.LOG m 1 4ms MEMBER id", "", 0},
		{"RL.LOG m 1 4ms MEMBER id COST -1", "zrem m del m", 0},
		{"RL.ACQUIRE a 2 60s MEMBER one", "zadd a expire a", 0},
		{"RL.ACQUIRE a 2 60s MEMBER two", "zadd a expire a", 0},
		{"RL.ACQUIRE a 2 60s", "", 0},
		{"RL.RENEW a one 90s", "zadd a expire a", 0},
		{"RL.RENEW a three 90s", "", 0},
		{"RL.RELEASE a one", "zrem a expire a", 0},
		{"RL.RELEASE a one", "", 0},
		{"RL.RELEASE a two", "del a", 0},
		{"RL.GCRA g 2 1 60s", "set g expire g", 0},
		{"RL.ACQUIRE a 2 60s MEMBER one", "zadd a expire a", 0},
		{"RL.RESET g a none g", "del g del a", 0},
		{"RL.RESET g a", "", 0},
	} {
		w.Now += tc.later * 1e6
		reply := string(w.Run(servertest.EncodeCommand(strings.Fields(tc.call)...)))
		var told []string
		for _, found := range event.FindAllStringSubmatch(reply, -1) {
			told = append(told, found[1], found[2])
		}
		require.Equal(t, tc.want, strings.Join(told, " "), "%s\n%s", tc.call, reply)
	}
}
