package script

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// inUse returns how many bytes of the heap are in use once it has been collected.
func inUse() uint64 {
	runtime.GC()
	runtime.GC() // What a pool holds survives one.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestStoppedScriptsMakeNoStackAnew: whoever has scripts stopped over and over costs the server no memory that others have not touched.
func TestStoppedScriptsMakeNoStackAnew(t *testing.T) {
	slices := 0
	e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 1)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const stops = 20
	for range stops {
		require.Contains(t, eval(e, "while true do end", resp.RESP2, nil, nil), timeLimitText)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/stops, uint64(256<<10), "bytes per script that was stopped")
}

// TestAScriptLeavesNothingBehind: what a script held is garbage when it has ended, however it ended.
func TestAScriptLeavesNothingBehind(t *testing.T) {
	const deep = "local f f = function(n) local s = string.rep('x', 1e6) .. n " +
		"local g = function() if n > 0 then return #s + f(n - 1) end %s return #s end return 1 + g() end return f(30)"
	for name, last := range map[string]string{"returned": "", "failed": "error('x')", "stopped": "while true do end"} {
		slices := 0
		e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 500)})
		before := inUse()
		reply := eval(e, fmt.Sprintf(deep, last), resp.RESP2, nil, nil)
		require.NotContains(t, reply, memoryText, name)
		require.Less(t, inUse(), before+4<<20, name)
		runtime.KeepAlive(e)
	}
	for name, src := range map[string]string{
		"registers": "local function f(...) return select('#', ...) end return f(('x'):rep(9e6), ('y'):rep(9e6), ('z'):rep(9e6))",
		"many":      "local t = {} for i = 1, 7000 do t[i] = 'x' .. ('y'):rep(4000) .. i end return select('#', unpack(t))",
	} {
		e := New(newFakeHost(), Options{})
		before := inUse()
		require.Equal(t, byte(':'), eval(e, src, resp.RESP2, nil, nil)[0], name)
		require.Less(t, inUse(), before+4<<20, name)
		runtime.KeepAlive(e)
	}
}
