package script

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// onDeepStack is a script that does something within 190 calls of pcall or xpcall, above 19,000 calls of Lua functions.
func onDeepStack(protected, body string) string {
	return fmt.Sprintf("local function same(e) return e end local function g(n) if n > 0 then return (%s) end %s end "+
		"local function f(n) if n > 0 then local x = f(n - 1) return x end return g(190) end return f(19000)", protected, body)
}

// TestOverflowsInHandlers: where the calls that a handler makes overflow the stack once more, no matter how many registers they use, the stack is not
// described.
func TestOverflowsInHandlers(t *testing.T) {
	for _, parameters := range []int{0, 49, 60, 100} {
		e := New(newFakeHost(), Options{})
		src := "local function f(a" + strings.Repeat(", a", parameters) + ") return 1 + f(a) end local function h() return xpcall(f, h) end return {xpcall(f, h)}"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, "*2\r\n$-1\r\n$-1\r\n", eval(e, src, resp.RESP2, nil, nil), parameters)
		runtime.ReadMemStats(&after)
		require.Less(t, after.Mallocs-before.Mallocs, uint64(30_000), "%d parameters: objects", parameters)
	}
}

// TestStopsOnDeepStacks: however a script is stopped, its calls are not described for each pcall that the stop passes: that would make a few objects
// for each of them.
func TestStopsOnDeepStacks(t *testing.T) {
	const loop, grow = "while true do end", "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e6) .. i end"
	const failing = "while true do xpcall(error, function(e) for i = 1, 100 do xpcall(error, function() error(e) end) end end) end"
	for _, c := range []struct{ name, body, want string }{
		{"time", loop, timeLimitText}, {"kill", loop, killedText}, {"memory", grow, memoryText}, {"load", loop, loadTimeText}, {"handlers", failing, timeLimitText},
		{"errors", "while true do pcall(error, ('x'):rep(1e5)) end", timeLimitText},
	} {
		for _, protected := range []string{"pcall(g, n - 1)", "xpcall(function() return g(n - 1) end, same)"} {
			slices := 0
			e := New(newFakeHost(), Options{OnSlice: func(elapsed time.Duration) Action {
				slices++
				switch {
				case c.name == "kill" && slices == 50:
					return Kill
				case c.want == timeLimitText && slices == 50:
					return TimeLimit
				}
				return Continue
			}})
			src := onDeepStack(protected, c.body)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if c.name == "load" {
				_, err := e.LoadLibrary([]byte("#!lua name=deep\n"+src), false)
				require.ErrorContains(t, err, c.want)
			} else {
				require.Contains(t, eval(e, src, resp.RESP2, nil, nil), c.want, c.name)
			}
			runtime.ReadMemStats(&after)
			require.Less(t, after.Mallocs-before.Mallocs, uint64(500_000), "%s: objects", c.name)
		}
	}
}
