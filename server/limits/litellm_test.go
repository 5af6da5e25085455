package limits_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var litellm = flag.String("limiter.litellm", "", "LiteLLM's litellm/proxy/hooks/parallel_request_limiter_v3.py, with whose scripts reservations are compared")

// pythonScripts are the Lua scripts that a file of Python has, by their names.
func pythonScripts(t *testing.T, path string) map[string]string {
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	scripts := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)\n?([A-Z_]+_SCRIPT)[^\n"]*= """(.*?)"""`).FindAllStringSubmatch(string(source), -1) {
		scripts[found[1]] = found[2]
	}
	return scripts
}

// guarded is what a history keeps of a reservation that it has made by both.
type guarded struct {
	id     string
	costs  []int64
	starts []string // of the windows
}

// TestReserveAsLiteLLM: RL.RESERVE and RL.SETTLE over fixed windows decide and count as LiteLLM's own scripts do that check, increment, and give back what was
// not used while its window is the same.
func TestReserveAsLiteLLM(t *testing.T) {
	if *litellm == "" {
		t.Skip("run by `make limits LITELLM=path`")
	}
	scripts := pythonScripts(t, *litellm)
	check, correct := scripts["CHECK_AND_INCREMENT_BY_N_SCRIPT"], scripts["WINDOW_GUARDED_TOKEN_INCREMENT_SCRIPT"]
	require.NotEmpty(t, check)
	require.NotEmpty(t, correct)
	w := servertest.NewClockClient(t)
	const window = 60
	limits := []int64{3, 50, 9}
	setPolicies := func() {
		for i, limit := range limits {
			require.Equal(t, "OK", w.Call(fmt.Sprintf("RL.POLICY SET p%d FIXED %d %ds", i, limit, window)))
		}
	}
	limited, reserved, settled, late, debts := 0, 0, 0, 0, 0
	histories := *limiterHistories / 5
	checkHistories(t, histories, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w.Now += 2 * window * 1e9
		w.Ask("FLUSHALL")
		setPolicies()
		var open []guarded
		compare := func(what string, numbers []string, counters []int64) {
			for i, n := range counters {
				require.Equal(t, strconv.FormatInt(max(limits[i]-n, 0), 10), numbers[5*i+2], "what remains of %d after %s", i, what)
			}
		}
		for step := range 12 {
			w.Now += []int64{0, 0, 1, 10, window - 1, window, rnd.Int64N(2 * window)}[rnd.IntN(7)] * 1e9
			if i := len(open); i > 0 && rnd.IntN(3) == 0 {
				i = rnd.IntN(i)
				o := open[i]
				open = slices.Delete(open, i, i+1)
				// In the very ms in which a window ends its key is still there, by which they give back.
				for strings.Contains(w.Ask("MGET", "{a}:window:0", "{a}:window:1", "{a}:window:2"), strconv.FormatInt(w.Now/1e9-window, 10)) {
					w.Now += 1e9
				}
				current := true
				for i, start := range o.starts {
					current = current && w.Ask("GET", fmt.Sprintf("{a}:window:%d", i)) == start
				}
				words := []string{"EVAL", correct, strconv.Itoa(2 * len(o.costs))}
				var argv []string
				settle := []string{"RL.SETTLE", o.id, "ACTUALS"}
				for i, cost := range o.costs {
					actual := rnd.Int64N(cost + 1)
					if current && rnd.IntN(4) == 0 { // what is used beyond the reservation they charge to its window, and RL.SETTLE to that of now
						actual = cost + rnd.Int64N(5)
						debts++
					}
					words = append(words, fmt.Sprintf("{a}:window:%d", i), fmt.Sprintf("{a}:count:%d", i))
					argv = append(argv, o.starts[i], strconv.FormatInt(actual-cost, 10), strconv.Itoa(window))
					settle = append(settle, strconv.FormatInt(actual, 10))
				}
				answer := strings.Fields(strings.Trim(w.Ask(append(words, argv...)...), "[]"))
				var counters []int64
				for i := range o.costs {
					counters = append(counters, mustParse(answer[2*i+1]))
				}
				got := strings.FieldsFunc(w.Ask(settle...), func(r rune) bool { return strings.ContainsRune("[] ", r) })
				require.Equal(t, "1", got[0], "%q", settle)
				compare(fmt.Sprintf("%q", settle), got[1:], counters)
				if settled++; !current {
					late++
				}
				continue
			}
			pairs := 1 + rnd.IntN(len(limits))
			words := []string{"EVAL", check, strconv.Itoa(2 * pairs)}
			var argv []string
			o := guarded{id: strconv.Itoa(step)}
			reserve, costs := []string{"RL.RESERVE", strconv.Itoa(pairs)}, []string{"COSTS"}
			for i := range pairs {
				cost := 1 + rnd.Int64N(limits[i]/2+1)
				o.costs = append(o.costs, cost)
				text := strconv.FormatInt(cost, 10)
				words = append(words, fmt.Sprintf("{a}:window:%d", i), fmt.Sprintf("{a}:count:%d", i))
				argv = append(argv, strconv.FormatInt(limits[i], 10), text, strconv.Itoa(window), strconv.Itoa(window))
				reserve, costs = append(reserve, fmt.Sprintf("p%d", i), fmt.Sprintf("key:%d", i)), append(costs, text)
			}
			reserve = append(append(reserve, costs...), "TTL", "1000d", "ID", o.id)
			answer := strings.Fields(strings.Trim(w.Ask(append(words, argv...)...), "[]"))
			got := strings.FieldsFunc(w.Ask(reserve...), func(r rune) bool { return strings.ContainsRune("[] ", r) })
			require.Equal(t, answer[0], got[0], "%q", reserve)
			numbers := got[len(got)-5*pairs:]
			if answer[0] == "1" {
				limiting := mustParse(answer[1]) - 1
				require.Equal(t, strconv.FormatInt(limiting, 10), got[1], "%q", reserve)
				require.Equal(t, strconv.FormatInt(max(limits[limiting]-mustParse(answer[2]), 0), 10), numbers[5*limiting+2], "%q", reserve)
				limited++
				continue
			}
			var counters []int64
			for i := range pairs {
				counters = append(counters, mustParse(answer[1+2*i]))
				o.starts = append(o.starts, answer[2+2*i])
			}
			compare(fmt.Sprintf("%q", reserve), numbers, counters)
			open = append(open, o)
			reserved++
		}
	})
	t.Logf("%d histories: %d reservations, %d calls limited, %d settled, %d of them after their window, %d with a debt", histories, reserved, limited, settled, late, debts)
	require.NotZero(t, limited)
	require.NotZero(t, late)
	require.NotZero(t, debts)
}
