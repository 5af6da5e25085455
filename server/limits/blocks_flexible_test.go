package limits_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestBlocksAsRateLimiterFlexible: a fixed window with BLOCK decides as that library does with blockDuration, call by call, and says the same of when to come
// again. What the library has answered is recorded (tests/clients/foreign/blocks.mjs).
func TestBlocksAsRateLimiterFlexible(t *testing.T) {
	file, err := os.Open("testdata/rate-limiter-flexible.txt")
	require.NoError(t, err)
	defer file.Close()
	w := servertest.NewClockClient(t)
	begin, points, limited, calls := w.Now, 0, 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		var duration, block, at, n, ms int
		var key, answer string
		if _, err := fmt.Sscanf(line, "limiter %d %d %d", &points, &duration, &block); err == nil {
			w.Call("FLUSHALL")
			require.Equal(t, "OK", w.Call(fmt.Sprintf("RL.POLICY SET p FIXED %d %ds BLOCK %ds", points, duration, block)))
			continue
		}
		if _, err := fmt.Sscanf(line, "%d %s block %d", &at, &key, &n); err == nil {
			w.Now = begin + int64(at)*1e6
			require.Equal(t, "OK", w.Call(fmt.Sprintf("RL.BLOCK p %s %ds", key, n)), line)
			continue
		}
		_, err := fmt.Sscanf(line, "%d %s %d %s %d", &at, &key, &n, &answer, &ms)
		require.NoError(t, err, line)
		w.Now = begin + int64(at)*1e6
		reply := w.Call(fmt.Sprintf("RL.TAKE 1 p %s COST %d", key, n))
		calls++
		var got [5]int
		_, err = fmt.Sscanf(strings.Split(reply, "[[")[1], "%d %d %d %d %d", &got[0], &got[1], &got[2], &got[3], &got[4])
		require.NoError(t, err, reply)
		if answer == "limited" {
			limited++
			require.Equal(t, []int{1, ms}, []int{got[0], got[3]}, "%s: %s", line, reply)
		} else {
			require.Equal(t, []int{0, ms}, []int{got[0], got[4]}, "%s: %s", line, reply)
		}
	}
	require.Greater(t, calls, 3000)
	require.Greater(t, limited, 1000)
}
