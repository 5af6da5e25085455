package script

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
	"headgate/server/script/limits"
)

// call runs a function and returns the reply.
func call(e *Engine, name string, keys, args []string) string {
	var w resp.Writer
	e.RunFunction(e.Function(name), bytesList(keys), bytesList(args), &w)
	return string(w.Bytes())
}

func TestLibraryErrors(t *testing.T) {
	const head = "#!lua name=lib\n"
	const registering = "ERR Error registering functions: ERR "
	const missing = registering + "user_function:2: Script attempted to access nonexistent global variable "
	for code, want := range map[string]string{
		"":                       "ERR Missing library metadata",
		"#!lua name=lib":         "ERR Invalid library metadata",
		"#!lua\n":                "ERR Library name was not given",
		"#!js name=x\n":          "ERR Engine 'js' not found",
		"#! name=x\n":            "ERR Engine '' not found",
		"#!lua name=a name=b\n":  "ERR Invalid metadata value, name argument was given multiple times",
		"#!lua foo=1 name=x\n":   "ERR Invalid metadata value given: foo=1",
		"#!lua name=a-b\n":       "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
		head:                     "ERR No functions registered",
		head + "x x":             "ERR Error compiling function: user_function:2: '=' expected near 'x'",
		head + "error('x')":      missing + "'error'",
		head + "math.random()":   missing + "'math'",
		head + "redis.call('x')": missing + "'call'",
		head + "local function f() return redis.call('ping') end f()": missing + "'call'",
		head + "return redis.REPL_ALL":                                missing + "'REPL_ALL'",
		head + "redis.log(1, 'x')":                                    "ERR No functions registered",
		head + "x = 1":                                                registering + "user_function:2: Attempt to modify a readonly table",
		head + "local a = nil; return a.b":                            registering + "user_function:2: attempt to index local 'a' (a nil value)",
		head + "redis.register_function()":                            registering + "wrong number of arguments to redis.register_function",
		head + "redis.register_function('a', 1)":                      registering + "second argument to redis.register_function must be a function",
		head + "redis.register_function({}, function() end)":          registering + "first argument to redis.register_function must be a string",
		head + "redis.register_function{callback = function() end}":   registering + "redis.register_function must get a function name argument",
		head + "redis.register_function{function_name = 'a'}":         registering + "redis.register_function must get a callback argument",
		head + "redis.register_function{function_name = 'a', callback = function() end, flags = {'x'}}": registering + "unknown flag given",
		head + "redis.register_function{foo = 1}":                                                       registering + "unknown argument given to redis.register_function",
		head + "redis.register_function('a', function() end) redis.register_function('a', function() end)": registering +
			"Function already exists in the library",
	} {
		e := New(newFakeHost(), Options{})
		_, err := e.LoadLibrary([]byte(code), false)
		require.EqualError(t, err, want, code)
		require.Empty(t, e.ListLibraries(), code)
	}
}

func TestLibraries(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load := func(code string, replace bool) (string, error) { return e.LoadLibrary([]byte(code), replace) }
	name, err := load(`#!LUA NAME=counters
local n = 0
redis.register_function('count', function() n = n + 1 return n end)
redis.register_function{function_name = 'add', callback = function(keys, args) return {#keys, args[1] + 1} end,
	description = 'adds', flags = {'no-writes', 'allow-oom'}}`, false)
	require.NoError(t, err)
	require.Equal(t, "counters", name)
	require.Equal(t, ":1\r\n", call(e, "count", nil, nil))
	require.Equal(t, ":2\r\n", call(e, "count", nil, nil), "a library remembers")
	require.Equal(t, "*2\r\n:1\r\n:42\r\n", call(e, "add", []string{"k"}, []string{"41"}))

	lib := e.ListLibraries()[0]
	require.Equal(t, "LUA", lib.Engine)
	require.Len(t, lib.Functions, 2)
	require.Equal(t, "add", lib.Functions[0].Name)
	require.Equal(t, "adds", lib.Functions[0].Description)
	require.Equal(t, NoWrites|AllowOOM, lib.Functions[0].Flags)
	require.False(t, lib.Functions[1].HasDescription)

	_, err = load("#!lua name=counters\nredis.register_function('x', function() end)", false)
	require.EqualError(t, err, "ERR Library 'counters' already exists")
	_, err = load("#!lua name=other\nredis.register_function('add', function() end)", false)
	require.EqualError(t, err, "ERR Function add already exists")
	_, err = load("#!lua name=counters\nredis.register_function('add', function() return 'new' end)", true)
	require.NoError(t, err)
	require.Equal(t, "$3\r\nnew\r\n", call(e, "add", nil, nil))
	require.Nil(t, e.Function("count"), "replaced")
	require.False(t, e.DeleteLibrary("nothing"))
	require.True(t, e.DeleteLibrary("counters"))
	require.Nil(t, e.Function("add"))
	require.Zero(t, e.LibraryBytes())
}

func TestFunctionErrors(t *testing.T) {
	e := New(newFakeHost(), Options{})
	_, err := e.LoadLibrary([]byte(`#!lua name=failing
redis.register_function('raise', function() error('x') end)
redis.register_function('index', function() local a; return a.b end)
redis.register_function('keys', function() return KEYS end)
redis.register_function('refused', function() return redis.call('nope') end)
redis.register_function('register', function() redis.register_function('z', function() end) end)
redis.register_function('keep', function(keys) kept = keys end)`), false)
	require.NoError(t, err)
	for name, want := range map[string]string{
		"raise":    "-ERR user_function:2: x script: raise, on @user_function:2.\r\n",
		"index":    "-ERR user_function:3: attempt to index local 'a' (a nil value) script: index, on @user_function:3.\r\n",
		"keys":     "-ERR user_function:4: Script attempted to access nonexistent global variable 'KEYS' script: keys, on @user_function:4.\r\n",
		"refused":  "-ERR Unknown Redis command called from script script: refused, on @user_function:5.\r\n",
		"register": "-ERR user_function:6: attempt to call field 'register_function' (a nil value) script: register, on @user_function:6.\r\n",
		"keep":     "-ERR user_function:7: Attempt to modify a readonly table script: keep, on @user_function:7.\r\n",
	} {
		require.Equal(t, want, call(e, name, nil, nil))
	}
}

// TestFunctionKeepsArguments checks that a library's memory does not share that
// of the command it came with.
func TestFunctionKeepsArguments(t *testing.T) {
	e := New(newFakeHost(), Options{})
	_, err := e.LoadLibrary([]byte("#!lua name=l\nlocal kept\nredis.register_function('f', function(_, args)\n"+
		"local before = kept kept = args[1] return before end)"), false)
	require.NoError(t, err)
	arg := []byte("first")
	var w resp.Writer
	e.RunFunction(e.Function("f"), nil, [][]byte{arg}, &w)
	copy(arg, "xxxxx")
	w.Reset()
	e.RunFunction(e.Function("f"), nil, [][]byte{arg}, &w)
	require.Equal(t, "$5\r\nfirst\r\n", string(w.Bytes()))
}

// load loads libraries of functions, each with a name of its own.
func load(t *testing.T, e *Engine, libraries map[string]string) {
	for name, code := range libraries {
		_, err := e.LoadLibrary([]byte("#!lua name="+name+"\n"+code), false)
		require.NoError(t, err, name)
	}
}

// TestWhatFunctionsKeepIsBounded: what the functions of a library keep between calls counts for those of it that are called later, however little each
// call adds, and for no others.
func TestWhatFunctionsKeepIsBounded(t *testing.T) {
	const limit = 24 << 20
	for name, add := range map[string]string{
		"long strings":  "string.rep('x', 5e6) .. n",
		"short strings": "string.rep('x', 9e4) .. n",
		"tables":        "(function() local t = {} for i = 1, 90 do t[i] = {} t[i][1000] = i end return t end)()",
		"arguments":     "args[1]",
	} {
		e := New(newFakeHost(), Options{MaxHeapBytes: limit})
		load(t, e, map[string]string{
			"hoard":    "local kept, n = {}, 0 redis.register_function('hoard', function(keys, args) n = n + 1 kept[n] = " + add + " return n end)",
			"innocent": "redis.register_function('innocent', function(keys, args) local n = 0 for i = 1, 5000 do n = n + #tostring(i) end return n end)",
		})
		before := inUse()
		refused := 0
		long := strings.Repeat("x", 3e6)
		for i := 0; i < 3000 && refused < 3; i++ {
			if reply := call(e, "hoard", nil, []string{long}); reply[0] == '-' {
				require.Contains(t, reply, memoryText, name)
				refused++
			}
			if i%10 == 0 {
				require.Equal(t, ":18893\r\n", call(e, "innocent", nil, nil), name)
			}
		}
		require.Positive(t, refused, name)
		require.Less(t, inUse(), before+limit+limit/4, name)
		require.Greater(t, e.LibraryBytes(), limit/2, name)
		e.DeleteLibrary("hoard")
		require.Less(t, inUse(), before+4<<20, name)
		runtime.KeepAlive(e)
	}
}

// TestAPartKeepsNotTheWhole: what is made of a long string, or was in the same place, does not keep that string in memory.
func TestAPartKeepsNotTheWhole(t *testing.T) {
	for name, add := range map[string]string{
		"a table after the last was removed":  "(function() local x = {long} table.remove(x) return x end)()",
		"a table after the first was removed": "(function() local x = {long, 1} table.remove(x, 1) return x end)()",
		"an error's code":                     "redis.error_reply('A\\0' .. long)",
		"an error":                            "redis.error_reply('A b\\0' .. long)",
		"a function of a text with a comment": "loadstring('return xyzzy -- ' .. long)",
		"a function's variables":              "loadstring('local abc = ... return function() return abc end -- ' .. long)",
		"the name of a text":                  "loadstring('return 1', '=abc' .. long)",
		"the name of a file":                  "loadstring('return 1', '@abc\\0' .. long)",
		"a part":                              "long:sub(3, 5)",
		"what was found":                      "long:match('x(%d+)$')",
	} {
		e := New(newFakeHost(), Options{})
		load(t, e, map[string]string{
			"keeper": "local kept, n = {}, 0 redis.register_function('keep', function(keys, args) n = n + 1 local long = string.rep('x', 1e6) .. n kept[n] = " + add + " return n end)",
		})
		before := inUse()
		for range 20 {
			require.Equal(t, byte(':'), call(e, "keep", nil, nil)[0], name)
		}
		require.Less(t, inUse(), before+4<<20, name)
		runtime.KeepAlive(e)
	}
}

// TestTablesThatFunctionsEmpty: keys come and go without an end in a table that a library keeps.
func TestTablesThatFunctionsEmpty(t *testing.T) {
	e := New(newFakeHost(), Options{MaxHeapBytes: 24 << 20})
	load(t, e, map[string]string{"cache": `local live, count = {stays = 'here'}, 0
		redis.register_function('enter', function(keys, args) for i = 1, 1000 do live[args[1] .. i] = true count = count + 1 end return count end)
		redis.register_function('leave', function(keys, args) for i = 1, 1000 do live[args[1] .. i] = nil count = count - 1 end return live.stays end)
		redis.register_function('walk', function() local n = 0 for k in pairs(live) do n = n + 1 end return n end)`})
	refused := 0
	for i := range 600 {
		name := []string{"user:" + strconv.Itoa(i) + ":"}
		for _, reply := range []string{call(e, "enter", nil, name), call(e, "leave", nil, name)} {
			if reply[0] == '-' {
				refused++
			}
		}
	}
	require.LessOrEqual(t, refused, 2, "until its tables are compacted")
	require.Less(t, inUse(), uint64(100<<20))
	if refused == 0 {
		require.Equal(t, ":1\r\n", call(e, "walk", nil, nil))
	}
}

// TestTablesAreCompactedOnce: keys that are gone, and too few of a table to drop, do not have each call go through all that the library keeps.
func TestTablesAreCompactedOnce(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load(t, e, map[string]string{"half": `local t = {}
		redis.register_function('fill', function() for i = 1, 130000 do t['k' .. i] = true end for i = 1, 60000 do t['k' .. i] = nil end end)
		redis.register_function('get', function(keys, args) return t[args[1]] and 1 end)`})
	require.Equal(t, "$-1\r\n", call(e, "fill", nil, nil))
	lib := e.ListLibraries()[0]
	lib.weigh(&limits.Scale{})
	require.Greater(t, lib.gone, goneMax)
	require.Equal(t, ":1\r\n", call(e, "get", nil, []string{"k100000"}))
	require.Zero(t, lib.gone)
}

// TestGoingOnWhereAKeyWas: who goes through a table in parts, and removes what it has seen, goes on from keys that the table has dropped meanwhile.
// They are forgotten when the table has got new ones.
func TestGoingOnWhereAKeyWas(t *testing.T) {
	const elements, atOnce = 200_000, 10_000
	for _, sweep := range []string{"next", "pairs"} {
		e := New(newFakeHost(), Options{})
		load(t, e, map[string]string{"janitor": `local t, n, key, co = {[1e6] = true, [{}] = true}, 2, nil, nil
			redis.register_function('fill', function(keys, args) for i = 1, args[1] do t[args[2] .. i] = true n = n + 1 end return n end)
			redis.register_function('next', function(keys, args)
				for i = 1, args[1] do key = next(t, key) if not key then break end t[key] = nil n = n - 1 end return n end)
			redis.register_function('pairs', function(keys, args)
				co = co or coroutine.wrap(function() for k in pairs(t) do t[k] = nil n = n - 1 if n % 10000 == 0 then coroutine.yield() end end end)
				co() return n end)
			redis.register_function('left', function() local left = 0 for k in pairs(t) do left = left + 1 end return left end)`})
		lib := e.ListLibraries()[0]
		require.Equal(t, ":200002\r\n", call(e, "fill", nil, []string{strconv.Itoa(elements), "session:"}))
		compacted, gone := 0, 0
		for swept := 0; swept < elements; swept += atOnce {
			require.Equal(t, byte(':'), call(e, sweep, nil, []string{strconv.Itoa(atOnce)})[0])
			if lib.weigh(&limits.Scale{}); lib.gone < gone {
				compacted++
			}
			gone = lib.gone
		}
		require.Greater(t, compacted, 1)
		call(e, sweep, nil, []string{"10"})
		require.Equal(t, ":0\r\n", call(e, "left", nil, nil), sweep)

		kept := lib.kept
		require.Equal(t, ":1\r\n", call(e, "fill", nil, []string{"1", "other:"}))
		lib.weigh(&limits.Scale{})
		require.Equal(t, ":1\r\n", call(e, "left", nil, nil))
		require.Less(t, lib.kept, kept/2, "the table has got a key since")
	}
}

// TestWhatOthersAllocate between two calls of a function does not have all be weighed that its library keeps.
func TestWhatOthersAllocate(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load(t, e, map[string]string{"large": `local t = {}
		redis.register_function('fill', function() for i = 1, 100000 do t[i] = {i} end end)
		redis.register_function('work', function() local n = 0 for i = 1, 5000 do n = n + #tostring(i) end return n end)`})
	require.Equal(t, "$-1\r\n", call(e, "fill", nil, nil))
	lib := e.ListLibraries()[0]
	lib.weigh(&limits.Scale{})
	kept, weighed := lib.kept, 0
	require.Greater(t, kept, 10<<20)
	for range 50 {
		lib.kept = kept + 1
		require.Equal(t, ":18893\r\n", call(e, "work", nil, nil))
		if lib.kept != kept+1 {
			weighed++
		}
		garbage = make([]byte, 60<<20)
		garbage = nil
	}
	require.LessOrEqual(t, weighed, 3)
}

// garbage is what others allocate.
var garbage []byte

// TestAFullLibrary: its functions that take next to nothing go on, and asking for more does not have it weighed each time; it grows no further.
func TestAFullLibrary(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load(t, e, map[string]string{"full": `local t = {}
		redis.register_function('grow', function() for i = 1, 20 do local x = i t[#t + 1] = function() x = x + 1 return x end end return #t end)
		redis.register_function('work', function() local x = 0 for i = 1, 2000 do x = x + 1 end return x end)`})
	lib := e.ListLibraries()[0]
	for !strings.Contains(call(e, "grow", nil, nil), memoryText) {
	}
	require.Equal(t, ":2000\r\n", call(e, "work", nil, nil))
	weighed, before := 0, lib.kept
	for range 1000 {
		lib.kept = 0
		call(e, "grow", nil, nil)
		if lib.kept != 0 {
			weighed++
		}
	}
	lib.weigh(&limits.Scale{})
	require.Less(t, lib.kept, before+heapSlack/fullShare*2)
	require.Less(t, weighed, 100)
	t.Logf("%d weighings, %d bytes more", weighed, lib.kept-before)
}

// TestTablesThatAreGoneLeaveNoKeys: what a table has dropped goes with it.
func TestTablesThatAreGoneLeaveNoKeys(t *testing.T) {
	e := New(newFakeHost(), Options{})
	load(t, e, map[string]string{"dropper": `local t, kept = {}, {}
		redis.register_function('fill', function() for i = 1, 100000 do t['key:' .. i] = true end for k in pairs(t) do t[k] = nil end end)
		redis.register_function('none', function() end)
		redis.register_function('drop', function() t = nil end)
		redis.register_function('grow', function() for i = 1, 1000 do kept[i] = string.rep('x', 40000) end end)`})
	lib := e.ListLibraries()[0]
	call(e, "fill", nil, nil)
	lib.weigh(&limits.Scale{})
	call(e, "none", nil, nil) // it is compacted when this one ends
	require.NotEmpty(t, lib.removed)
	call(e, "drop", nil, nil)
	call(e, "grow", nil, nil)
	require.Empty(t, lib.removed)
}

// TestVariablesOutliveStops: a stop, or an error with a long text, leaves functions that a library keeps their variables.
func TestVariablesOutliveStops(t *testing.T) {
	const tooMuch = "while true do a = a .. b end"
	for name, calls := range map[string]string{
		"outside":     "f()",
		"in pcall":    "pcall(f)",
		"in xpcall":   "xpcall(f, function(e) return e end)",
		"in a reader": "load(f)",
	} {
		for _, failing := range []string{"error(a)", "return n[a]", tooMuch} {
			e := New(newFakeHost(), Options{})
			load(t, e, map[string]string{"keeper": "local n, keep = 1, function() return 'none' end " +
				"redis.register_function('fail', function(keys, args) " +
				"local function f() local x = 'secret' keep = function() return x end local a, b = string.rep('y', args[1]), string.rep('z', args[1]) " + failing + " end " +
				calls + " end) redis.register_function('kept', function() return keep() end)"})
			stopped := false
			for size := 15_000_000; size < 32_000_000; size += 2_000_000 {
				stopped = strings.Contains(call(e, "fail", nil, []string{strconv.Itoa(size)}), memoryText) || stopped
				require.Equal(t, "$6\r\nsecret\r\n", call(e, "kept", nil, nil), "%s: %s with %d bytes", name, failing, size)
			}
			require.Equal(t, failing == tooMuch, stopped, "%s: %s", name, failing)
		}
	}
}

// TestCoroutinesOutliveStops: a coroutine that a library keeps goes on when another function has been stopped.
func TestCoroutinesOutliveStops(t *testing.T) {
	slices := 0
	e := New(newFakeHost(), Options{OnSlice: stopAfter(&slices, 3)})
	load(t, e, map[string]string{"kept": `local n = 0 local co
		redis.register_function('next', function() co = co or coroutine.create(function() while true do n = n + 1 coroutine.yield(n) end end)
			local ok, v = coroutine.resume(co) return {tostring(ok), tostring(v), coroutine.status(co)} end)
		redis.register_function('endless', function() coroutine.wrap(function() while true do end end)() end)
		redis.register_function('deep', function() local function f() return 1 + f() end return f() end)`})
	for i := 1; i < 10; i++ {
		n := strconv.Itoa(i)
		require.Equal(t, "*3\r\n$4\r\ntrue\r\n$1\r\n"+n+"\r\n$9\r\nsuspended\r\n", call(e, "next", nil, nil))
		require.Equal(t, "-", call(e, []string{"endless", "deep"}[i%2], nil, nil)[:1])
	}
}
