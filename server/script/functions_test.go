package script

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
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

// TestWhatFunctionsKeepIsBounded: what functions keep between calls counts for all that are called later, however little each call adds.
func TestWhatFunctionsKeepIsBounded(t *testing.T) {
	const limit = 24 << 20
	for name, add := range map[string]string{
		"long strings":  "string.rep('x', 5e6) .. n",
		"short strings": "string.rep('x', 9e4) .. n",
		"tables":        "(function() local t = {} for i = 1, 90 do t[i] = {} t[i][1000] = i end return t end)()",
	} {
		e := New(newFakeHost(), Options{MaxHeapBytes: limit})
		for _, lib := range []string{"a", "b", "c"} {
			src := "#!lua name=" + lib + "\nlocal kept, n = {}, 0 redis.register_function('" + lib + "', function() n = n + 1 kept[n] = " + add + " return n end)"
			_, err := e.LoadLibrary([]byte(src), false)
			require.NoError(t, err)
		}
		before := inUse()
		refused := 0
		for i := range 3000 {
			if reply := call(e, string(rune('a'+i%3)), nil, nil); reply[0] == '-' {
				require.Contains(t, reply, memoryText, name)
				if refused++; refused == 3 {
					break
				}
			}
		}
		require.Positive(t, refused, name)
		require.Less(t, inUse(), before+limit+limit/4, name)
		require.Greater(t, e.LibraryBytes(), limit/2, name)
		e.DeleteLibrary("a")
		require.Equal(t, ":", call(e, "b", nil, nil)[:1], "%s: there is room again", name)
		e.FlushLibraries()
		require.Less(t, inUse(), before+4<<20, name)
		runtime.KeepAlive(e)
	}
}
