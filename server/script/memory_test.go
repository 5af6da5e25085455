package script

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// forced returns how many collections the program has asked for.
func forced() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestAScriptWaitsForNoCollection: whatever the heap has grown by since the last
// script, and however much garbage a script makes, it asks for no collection,
// which would hold up everybody for as long as all data take.
func TestAScriptWaitsForNoCollection(t *testing.T) {
	e := New(newFakeHost(), Options{})
	var others [][]byte
	for range 4 {
		for range 20 {
			others = append(others, make([]byte, 1<<20))
		}
		before := forced()
		require.Equal(t, ":4501500\r\n", eval(e, "local n = 0 for i = 1, 3000 do n = n + i end return n", resp.RESP2, nil, nil))
		require.Equal(t, ":1\r\n", eval(e, "local t = {} for i = 1, 1e6 do t[i % 100] = {i} end return 1", resp.RESP2, nil, nil))
		require.Equal(t, before, forced())
	}
	runtime.KeepAlive(others)
}

// TestWhatAScriptStoresIsNotItsOwn: the bound is for its values; what the server
// keeps of them, and has kept of others', is the server's.
func TestWhatAScriptStoresIsNotItsOwn(t *testing.T) {
	host := newFakeHost()
	e := New(host, Options{})
	src := "local s = string.rep('x', 1e6) for i = 1, 100 do redis.call('SET', 'k' .. i, s .. i) end return 1"
	require.Equal(t, ":1\r\n", eval(e, src, resp.RESP2, nil, nil))
	require.Len(t, host.values, 100)
	reply := eval(e, "local t = {} for i = 1, 100 do t[i] = redis.call('GET', 'k' .. i) end return 1", resp.RESP2, nil, nil)
	require.Contains(t, reply, memoryText, "but what it reads again is its own")
}

// TestArgumentsAreNotTheScriptsOwn: a client may send more than a script may make.
func TestArgumentsAreNotTheScriptsOwn(t *testing.T) {
	e := New(newFakeHost(), Options{MaxHeapBytes: 16 << 20})
	long := strings.Repeat("x", 20<<20)
	src := "for i = 1, 20 do local s = string.rep('x', 5e6) end redis.call('SET', KEYS[1], ARGV[1]) return #ARGV[1]"
	require.Equal(t, ":20971520\r\n", eval(e, src, resp.RESP2, []string{"k"}, []string{long}))
	require.Contains(t, eval(e, "return #(ARGV[1] .. ARGV[1])", resp.RESP2, nil, []string{long}), memoryText)
}

// TestStoresAtFarIndexesCount: each fills an array up to there, and many of them
// make one expression, in which nothing else counts.
func TestStoresAtFarIndexesCount(t *testing.T) {
	for name, src := range map[string]string{
		"rawset":       "local t = {" + strings.Repeat("rawset({}, 8000, 1),", 600) + "} return #t",
		"table.insert": "local t = {} for i = 1, 600 do t[i] = {} end local x = {" + inserts(600) + "} return #t",
		"cmsgpack":     "local t = cmsgpack.unpack('\\220\\2\\88' .. ('\\129\\205\\31\\64\\1'):rep(600)) return #t",
	} {
		e := New(newFakeHost(), Options{MaxHeapBytes: 20 << 20})
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), memoryText, name)
	}
}

func inserts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "table.insert(t[%d], 8000, 1),", i+1)
	}
	return b.String()
}

// keys are n fields of a table constructor with long keys.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[s .. %d] = 1,", i)
	}
	return b.String()
}

// TestWhatAScriptHoldsIsFound: wherever it lies, it counts.
func TestWhatAScriptHoldsIsFound(t *testing.T) {
	const long = "string.rep('x', 1e6)"
	for name, src := range map[string]string{
		"a key of a part":         "local s = " + long + " local t = {" + strings.Repeat("1,", 50) + keys(50) + "}",
		"an upvalue":              "local f = function() end for i = 1, 50 do local g, s = f, " + long + " .. i f = function() return g, s end end",
		"a metatable":             "local t = {} for i = 1, 50 do t = setmetatable({}, {__index = t, s = " + long + "}) end",
		"a key":                   "local t = {} for i = 1, 50 do t[" + long + " .. i] = 1 end",
		"a key that is gone":      "local t = {} for i = 1, 50 do local s = " + long + " .. i t[s] = 1 t[s] = nil end",
		"a coroutine's variables": "local t = {} for i = 1, 50 do t[i] = coroutine.create(function() local s = " + long + " coroutine.yield() return s end) coroutine.resume(t[i]) end",
		"a coroutine's closures":  "local t = {} for i = 1, 50 do t[i] = coroutine.wrap(function() local s, n = " + long + " .. i, i coroutine.yield(function() return n end) return s end)() end",
		"inside a coroutine":      "coroutine.wrap(function() local t = {} for i = 1, 50 do t[i] = " + long + " end end)()",
		"varargs":                 "local function f(n, ...) if n > 0 then return f(n - 1, " + long + ", ...) end return select('#', ...) end f(50)",
		"the calls of functions":  "local function f(n) local s = " + long + " .. n if n > 0 then f(n - 1) end return s end f(50)",
		"a callback's callers":    "local function f(n) return (('x'):gsub('x', function() local s = " + long + " .. n if n > 0 then f(n - 1) end return #s end)) end f(50)",
		"a reply":                 "local t = {} for i = 1, 50 do t[i] = redis.call('ECHO', " + long + ") end",
		"an error's value":        "local function f(n) local s = " + long + " .. n local ok, e = pcall(error, {s}) if n > 0 then f(n - 1) end return e end f(50)",
	} {
		e := New(newFakeHost(), Options{MaxHeapBytes: 30 << 20})
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), memoryText, name)
		require.Equal(t, ":2\r\n", eval(e, "return 1 + 1", resp.RESP2, nil, nil), name)
	}
}

// TestClosuresOutliveTheirCoroutines: however a coroutine has ended, its variables
// go on in the closures that use them, and nothing else of it does.
func TestClosuresOutliveTheirCoroutines(t *testing.T) {
	for name, last := range map[string]string{
		"returned":        "return 1",
		"failed":          "error('x')",
		"failed deep":     "local function deep(d) if d == 0 then error({}) end return 1 + deep(d - 1) end deep(1000)",
		"failed in pcall": "pcall(error) local x = nil + 1",
		"tail call":       "return tostring(1)",
	} {
		src := "local kept, n = {}, 0 redis.register_function('f', function() for i = 1, 10 do n = n + 1 " +
			"local co co = coroutine.create(function() local s, k = string.rep('x', 1e5) .. n, n " +
			"kept[n] = function(d) k = k + d return k end kept[-n] = function() k = k + 100 return coroutine.status(co) end " +
			"local used = s " + last + " end) coroutine.resume(co) " +
			"if coroutine.status(co) ~= 'dead' or select(2, coroutine.resume(co)) ~= 'cannot resume dead coroutine' then error('alive') end end end) " +
			"redis.register_function('g', function(keys, args) local i = tonumber(args[1]) return kept[-i]() .. kept[i](1) .. kept[i](1) end)"
		e := New(newFakeHost(), Options{})
		load(t, e, map[string]string{"l": src})
		before := inUse()
		for range 40 {
			require.Equal(t, "$-1\r\n", call(e, "f", nil, nil), name)
		}
		require.Equal(t, "$10\r\ndead108109\r\n", call(e, "g", nil, []string{"7"}), name)
		require.Equal(t, "$10\r\ndead501502\r\n", call(e, "g", nil, []string{"400"}), name)
		require.Less(t, inUse(), before+4<<20, name)
		runtime.KeepAlive(e)
	}
}

// TestClosuresOutliveTheirCalls: nor do those of a function of a library that
// failed when many were running keep the registers of these.
func TestClosuresOutliveTheirCalls(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load(t, e, map[string]string{"l": "local kept, n = {}, 0 local function deep(d) if d == 0 then n = n + 1 local k = n kept[n] = function() k = k + 1 return k end error('x') end " +
		"return 1 + deep(d - 1) end redis.register_function('f', function() return deep(10000) end) redis.register_function('g', function() return kept[7]() + kept[7]() end)"})
	before := inUse()
	for range 20 {
		require.Contains(t, call(e, "f", nil, nil), "-ERR user_function:2: x")
	}
	require.Equal(t, ":17\r\n", call(e, "g", nil, nil))
	require.Less(t, inUse(), before+4<<20)
	runtime.KeepAlive(e)
}

// TestClosuresKeepNoOtherVariables: those of a function that failed lie in a row
// until then.
func TestClosuresKeepNoOtherVariables(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load(t, e, map[string]string{"l": "local kept, n = {}, 0 redis.register_function('f', function() for i = 1, 10 do n = n + 1 pcall(function() local k, s = n, string.rep('x', 1e5) .. n " +
		"kept[n] = function() k = k + 1 return k end local other = function() return s end error('x') end) end return kept[n]() + kept[n]() end)"})
	before := inUse()
	for i := range 40 {
		n := 10 * (i + 1)
		require.Equal(t, fmt.Sprintf(":%d\r\n", 2*n+3), call(e, "f", nil, nil))
	}
	require.Less(t, inUse(), before+4<<20)
	runtime.KeepAlive(e)
}

// TestManySmallTables: a table that begins empty, and gets a field, takes hundreds of bytes, not thousands.
func TestManySmallTables(t *testing.T) {
	e := New(newFakeHost(), Options{})
	require.Equal(t, ":50000\r\n", eval(e, "local t = {} for i = 1, 50000 do local x = {} x.name = i t[i] = x end return #t", resp.RESP2, nil, nil))
}

// TestAScriptThatMakesMuchSaysSo: as often as it has made some more MiB, and not if it makes little.
func TestAScriptThatMakesMuchSaysSo(t *testing.T) {
	told := 0
	e := New(newFakeHost(), Options{OnGrowth: func() { told++ }})
	require.Equal(t, ":1\r\n", eval(e, "local t = {} for i = 1, 1e4 do t[i % 100] = {i} end return 1", resp.RESP2, nil, nil))
	require.Zero(t, told)
	const made = 8 * growthTold
	for name, body := range map[string]string{
		"a part": "string.rep('x', size)",
		"one":    "string.rep('x', growth + 1)",
		"concat": "table.concat({a, a})",
		"cjson":  "cjson.encode({a})",
	} {
		told = 0
		src := fmt.Sprintf("local size, growth = %d, %d local a = string.rep('x', size) for i = 1, %d do local b = %s end return 1", growthTold/4, growthTold, 4*made/growthTold, body)
		require.Equal(t, ":1\r\n", eval(e, src, resp.RESP2, nil, nil), name)
		require.GreaterOrEqual(t, told, made/growthTold-2, name)
	}
}
