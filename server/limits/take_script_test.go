package limits_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkAndIncrement is what gateways to language models have a Redis run: several counters, each with the start of its window in a key beside it, are
// all looked at before any is incremented. ARGV has the time and the window in seconds, and for each counter its limit and what to add.
const checkAndIncrement = `
local now, window, limiting = tonumber(ARGV[1]), tonumber(ARGV[2]), -1
local counts = {}
for i = 1, #KEYS / 2 do
  local start = redis.call('GET', KEYS[2 * i - 1])
  if start and now - tonumber(start) < window then
    counts[i] = tonumber(redis.call('GET', KEYS[2 * i]) or 0)
  end
  if limiting < 0 and (counts[i] or 0) + ARGV[2 * i + 2] > tonumber(ARGV[2 * i + 1]) then limiting = i - 1 end
end
for i = 1, #KEYS / 2 do
  if limiting < 0 and tonumber(ARGV[2 * i + 2]) > 0 then
    if not counts[i] then redis.call('SET', KEYS[2 * i - 1], now, 'EX', window) end
    counts[i] = (counts[i] or 0) + ARGV[2 * i + 2]
    redis.call('SET', KEYS[2 * i], counts[i], 'EX', window)
  end
  counts[i] = counts[i] or 0
end
return {limiting, unpack(counts)}`

// TestTakeDecidesAsACheckAndIncrement: RL.TAKE and RL.RESERVE over fixed windows answer what such a script does, at every call.
func TestTakeDecidesAsACheckAndIncrement(t *testing.T) {
	w := servertest.NewClockClient(t)
	const window = 60
	limits := []int64{3, 50, 9}
	for i, limit := range limits {
		require.Equal(t, "OK", w.Call(fmt.Sprintf("RL.POLICY SET p%d FIXED %d %ds", i, limit, window)))
	}
	limited, calls := 0, 0
	checkHistories(t, *limiterHistories/5, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w.Now += 2 * window * 1e9
		for range 12 {
			w.Now += []int64{0, 0, 1, 10, window - 1, window, rnd.Int64N(2 * window)}[rnd.IntN(7)] * 1e9
			pairs := 1 + rnd.IntN(len(limits))
			now := w.Now / 1e9
			script := []string{"EVAL", checkAndIncrement, strconv.Itoa(2 * pairs)}
			argv := []string{strconv.FormatInt(now, 10), strconv.Itoa(window)}
			take, costs := []string{"RL.TAKE", strconv.Itoa(pairs)}, []string{"COSTS"}
			for i := range pairs {
				cost := strconv.FormatInt(rnd.Int64N(limits[i]/2+2), 10)
				script = append(script, fmt.Sprintf("{a}:window:%d", i), fmt.Sprintf("{a}:count:%d", i))
				argv = append(argv, strconv.FormatInt(limits[i], 10), cost)
				take, costs = append(take, fmt.Sprintf("p%d", i), fmt.Sprintf("key:%d", i)), append(costs, cost)
			}
			want := strings.Fields(strings.Trim(w.Ask(append(script, argv...)...), "[]"))
			take = append(take, costs...)
			which := 1
			if rnd.IntN(2) == 0 {
				take[0] = "RL.RESERVE"
				take = append(take, "TTL", "1000d")
			}
			got := strings.FieldsFunc(w.Ask(take...), func(r rune) bool { return strings.ContainsRune("[] ", r) })
			require.Equal(t, want[0], got[which], "%q", take)
			numbers := got[len(got)-5*pairs:]
			for i := range pairs {
				left := limits[i] - mustParse(want[1+i])
				require.Equal(t, strconv.FormatInt(left, 10), numbers[5*i+2], "what remains of %d after %q", i, take)
			}
			if calls++; want[0] != "-1" {
				limited++
			}
		}
		w.Ask("FLUSHALL")
		for i, limit := range limits {
			w.Call(fmt.Sprintf("RL.POLICY SET p%d FIXED %d %ds", i, limit, window))
		}
	})
	t.Logf("%d histories of %d calls in all, %d of them limited", *limiterHistories/5, calls, limited)
	require.Greater(t, limited, calls/10)
}

func mustParse(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
