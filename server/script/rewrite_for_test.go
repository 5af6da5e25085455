package script

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// TestLoopsOverNumbers runs random loops, also those that are counted in blocks, and compares what they have seen with the same
// arithmetic in Go.
func TestLoopsOverNumbers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	e := New(newFakeHost(), Options{})
	limits := []float64{math.Inf(-1), -1e300, -1, 0, 0.5, 1, 2.5, 98, 99, 99.5, 100, 101, 199, 200, 201, 299.9, 1000, math.NaN()}
	for range 3000 {
		init, step := float64(rnd.IntN(4)), float64(1+rnd.IntN(3)*rnd.IntN(60))
		limit := limits[rnd.IntN(len(limits))]
		if rnd.IntN(2) == 0 {
			limit = float64(rnd.IntN(4000)) / 4
		}
		leave := float64(rnd.IntN(400))
		if rnd.IntN(2) == 0 {
			leave = -1
		}
		body := []string{"", "local t = {i, i, i}", "i = i + 1", "for j = 1, i % 4 do inner = inner + 1 if j == 3 then break end end",
			"local t = {} t[1] = i t[2] = i t[3] = i"}[rnd.IntN(5)]
		src := fmt.Sprintf("local n, sum, inner, seen = 0, 0, 0, nil for i = %v, ARGV[1], %v do local at = i do if i == %v then break end end n = n + 1 sum = sum + i "+
			"seen = function() return at end %s end return {n, tostring(sum), tostring(seen and seen()), inner}", init, step, leave, body)
		if step == 1 && rnd.IntN(2) == 0 {
			src = fmt.Sprintf("local n, sum, inner, seen = 0, 0, 0, nil for i = %v, ARGV[1] do local at = i if at == %v then break end n = n + 1 sum = sum + at "+
				"seen = function() return at end %s end return {n, tostring(sum), tostring(seen and seen()), inner}", init, leave, body)
		}
		n, sum, seen, inner := 0, 0.0, "nil", 0
		for i := init; i <= limit && i != leave; i += step {
			n, sum, seen = n+1, sum+i, strconv.FormatFloat(i, 'g', 14, 64)
			if body[:min(len(body), 3)] == "for" {
				inner += int(i) % 4
			}
		}
		total := strconv.FormatFloat(sum, 'g', 14, 64)
		want := fmt.Sprintf("*4\r\n:%d\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:%d\r\n", n, len(total), total, len(seen), seen, inner)
		require.Equal(t, want, eval(e, src, resp.RESP2, nil, []string{strconv.FormatFloat(limit, 'g', -1, 64)}), "%s with %v", src, limit)
	}
}

// TestBoundsAreCheckedLast: a loop has all of its bounds evaluated before it looks at any, as in redis-server 7.0.15, whose results these are.
func TestBoundsAreCheckedLast(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for bounds, want := range map[string]string{
		"{}, f(2)": "2: 'for' initial value", "f(1), f({}), f(nil)": "1tablenil: 'for' limit", "{}, n.x, f(1)": ": attempt to index",
		"f(1), f(2), f({})": "12table: 'for' step", "1, {}, f(3)": "3: 'for' limit", "f(), 2": "nil: 'for' initial value",
		"f('1'), (f('2')), f(2)": "122: 1", "f(3), f(1), -f(1)": "311: 6", "n, f(2)": "2: 'for' initial value", "1, f(2)": "2: 3",
	} {
		src := "local seen, sum, n = '', 0 local function f(x) seen = seen .. (type(x) == 'table' and 'table' or tostring(x)) return x end " +
			"local ok, e = pcall(function() for i = " + bounds + " do sum = sum + i end return sum end) return seen .. ': ' .. tostring(e):gsub('^user_script:1: ', '')"
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), want, bounds)
	}
}

// TestRoundsAreCounted: whatever loops stand within each other, about every stepsPerTick rounds are a tick.
func TestRoundsAreCounted(t *testing.T) {
	for src, rounds := range map[string]int{
		"for i = 1, 1e6 do end":                                                   1_000_000,
		"for i = 1, 1e6, 7 do end":                                                1_000_000 / 7,
		"for i = 5, 1e5 do local t = {i, i, i, i} end":                            100_000,
		"for i = 1, 1e5 do local t = {} t[i] = 1 end":                             100_000 * (1 + storeSteps),
		"for i = 1, 1e5 do for j = 1, 0 do end end":                               100_000,
		"for i = 1, 1e5 do for j = 1, 1 do end end":                               200_000,
		"for i = 1, 1e4 do for j = 1, 99 do end end":                              1_000_000,
		"for i = 1, 1e4 do for j = 1, 100 do end end":                             1_010_000,
		"for i = 1, 1e4 do for j = 1, 101 do end end":                             1_020_000,
		"for i = 1, 1e3 do for j = 1, 10 do for k = 1, 10 do end end end":         111_000,
		"for i = 1, 1e4 do for j = 1, 99, 10 do end end":                          110_000,
		"for i = 1, 1e4 do for j = 1, 1e9 do break end end":                       1_010_000, // a loop that is left counts as the block that it is in
		"local f = function() for i = 1, 50 do end end for i = 1, 1e4 do f() end": 520_000,
		"local i = 0 while i < 1e5 do i = i + 1 for j = 1, 3 do end end":          400_000,
	} {
		h := &tickHost{fakeHost: newFakeHost()}
		h.engine = New(h, Options{})
		require.Equal(t, "$1\r\nx\r\n", eval(h.engine, src+" return redis.call('ECHO', 'x')", resp.RESP2, nil, nil), src)
		require.InDelta(t, 1, float64(h.ticks*stepsPerTick)/float64(rounds), 0.1, "%s: %d ticks", src, h.ticks)
	}
}

// tickHost notes how many ticks there were when a command is called.
type tickHost struct {
	*fakeHost
	engine *Engine
	ticks  int
}

func (h *tickHost) Call(args [][]byte, resp3 bool) []byte {
	h.ticks = h.engine.eval.heap.ticks
	return h.fakeHost.Call(args, resp3)
}
