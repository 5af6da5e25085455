package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

// globalNames are the globals of redis-server 7.0.15, and server.
const globalNames = "ARGV KEYS _G _VERSION __redis__err__handler assert bit cjson cmsgpack collectgarbage coroutine error gcinfo " +
	"getmetatable ipairs load loadstring math next pairs pcall rawequal rawget rawset redis select server setmetatable string " +
	"struct table tonumber tostring type unpack xpcall"

// libraryNames are the fields of the libraries of redis-server 7.0.15.
var libraryNames = map[string]string{
	"bit":       "arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex",
	"cmsgpack":  "_COPYRIGHT _DESCRIPTION _NAME _VERSION pack unpack unpack_limit unpack_one",
	"coroutine": "create resume running status wrap yield",
	"cjson": "_NAME _VERSION decode decode_invalid_numbers decode_max_depth encode encode_invalid_numbers encode_keep_buffer " +
		"encode_max_depth encode_number_precision encode_sparse_array new null",
	"math": "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min mod modf pi pow rad random " +
		"randomseed sin sinh sqrt tan tanh",
	"redis": "LOG_DEBUG LOG_NOTICE LOG_VERBOSE LOG_WARNING REDIS_VERSION REDIS_VERSION_NUM REPL_ALL REPL_AOF REPL_NONE REPL_REPLICA " +
		"REPL_SLAVE acl_check_cmd breakpoint call debug error_reply log pcall replicate_commands set_repl setresp sha1hex status_reply",
	"string": "byte char dump find format gfind gmatch gsub len lower match rep reverse sub upper",
	"struct": "pack size unpack",
	"table":  "concat foreach foreachi getn insert maxn remove setn sort",
}

const listNames = "local names = {} for name in pairs(%s) do names[#names + 1] = name end table.sort(names) return table.concat(names, ' ')"

func TestGlobals(t *testing.T) {
	e := New(newFakeHost(), Options{})
	names := func(table string) string {
		reply := eval(e, strings.Replace(listNames, "%s", table, 1), resp.RESP2, nil, nil)
		return strings.Split(reply, "\r\n")[1]
	}
	require.Equal(t, globalNames, names("_G"))
	for library, want := range libraryNames {
		require.Equal(t, want, names(library), library)
	}
	require.Equal(t, libraryNames["redis"], names("server"))
}

// TestScriptsDoNotSeeEachOther runs a script that tries to leave something
// behind and then one that looks for it.
func TestScriptsDoNotSeeEachOther(t *testing.T) {
	const refused = "readonly table"
	e := New(newFakeHost(), Options{})
	for _, c := range []struct{ leave, says, look, sees string }{
		{"leftover = 1", refused, "return leftover", "nonexistent global variable"},
		{"_G.leftover = 1", refused, "return rawget(_G, 'leftover')", "$-1"},
		{"rawset(_G, 'leftover', 1)", refused, "return rawget(_G, 'leftover')", "$-1"},
		{"string.len = nil", refused, "return #'abc'", ":3"},
		{"rawset(string, 'len', 1)", refused, "return ('abc'):len()", ":3"},
		{"table.insert(math, 1)", refused, "return #math", ":0"},
		{"getmetatable('').__index = nil", refused, "return ('abc'):len()", ":3"},
		{"getmetatable('').__add = print", "print", "return '1' + 1", ":2"},
		{"setmetatable(redis, {})", refused, "return redis.call('ECHO', 'x')", "x"},
		{"setmetatable(_G, {__index = function() return 7 end})", refused, "return nothing", "nonexistent"},
		{"getmetatable(_G).__index = nil", refused, "return nothing", "nonexistent"},
		{"KEYS[2] = 'kept' ARGV.x = 'kept' setmetatable(KEYS, {__index = function() return 'kept' end})", "$-1",
			"return {KEYS[2] or 'none', ARGV.x or 'none', KEYS.y or 'none'}", "none\r\n$4\r\nnone\r\n$4\r\nnone"},
		{"redis.setresp(3)", "$-1", "return {true}", "*1\r\n:1"},
		{"local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co)", "$-1", "return coroutine.running()", "$-1"},
		{"local t = {} for i = 1, 20000 do t[i] = i end error('x')", "-ERR", "return #{}", ":0"},
		{"local function f() f() end f()", "stack overflow", "local function f(n) return n < 1 and 0 or f(n - 1) end return f(1000)", ":0"},
		{"return redis.call('FAIL')", "WRONGTYPE", "return redis.call('ECHO', 'fine')", "fine"},
	} {
		require.Contains(t, eval(e, c.leave, resp.RESP2, []string{"k"}, []string{"a"}), c.says, c.leave)
		require.Contains(t, eval(e, c.look, resp.RESP2, []string{"k"}, []string{"a"}), c.sees, c.leave)
	}
}

// TestOneGenerator: as in Redis, all scripts draw from one sequence.
func TestOneGenerator(t *testing.T) {
	const draw = "return tostring(math.random())"
	e, again := New(newFakeHost(), Options{}), New(newFakeHost(), Options{})
	first, second := eval(e, draw, resp.RESP2, nil, nil), eval(e, draw, resp.RESP2, nil, nil)
	require.NotEqual(t, first, second)
	require.Equal(t, first, eval(again, draw, resp.RESP2, nil, nil))
	seeded := eval(e, "math.randomseed(5) "+draw, resp.RESP2, nil, nil)
	next := eval(e, draw, resp.RESP2, nil, nil)
	require.NotEqual(t, seeded, next)
	eval(again, "math.randomseed(5)", resp.RESP2, nil, nil)
	require.Equal(t, seeded, eval(again, draw, resp.RESP2, nil, nil))
	require.Equal(t, next, eval(again, draw, resp.RESP2, nil, nil))
}

func TestArguments(t *testing.T) {
	e := New(newFakeHost(), Options{})
	many := make([]string, 3*reusedMax)
	for i := range many {
		many[i] = strings.Repeat("x", i%7)
	}
	const read = "return {#KEYS, #ARGV, KEYS[1], ARGV[#ARGV]}"
	const keep = "local k, a = KEYS, ARGV return {#k, #a, k[1], a[#a]}"
	for _, src := range []string{read, keep} {
		require.Equal(t, "*4\r\n:1\r\n:2\r\n$1\r\nk\r\n$1\r\nb\r\n", eval(e, src, resp.RESP2, []string{"k"}, []string{"a", "b"}))
		require.Equal(t, "*4\r\n:192\r\n:1\r\n$0\r\n\r\n$1\r\nz\r\n", eval(e, src, resp.RESP2, many, []string{"z"}))
		require.Equal(t, "*4\r\n:60\r\n:3\r\n$0\r\n\r\n$1\r\nc\r\n", eval(e, src, resp.RESP2, many[:60], []string{"a", "b", "c"}))
		require.Equal(t, "*3\r\n:2\r\n:0\r\n$1\r\nk\r\n", eval(e, src, resp.RESP2, []string{"k", "l"}, nil))
	}
}

// TestScriptsNearTheLimits: a loop that counts its rounds in blocks takes more variables, but not so that a script which had room for it has none.
func TestScriptsNearTheLimits(t *testing.T) {
	e := New(newFakeHost(), Options{})
	nested := func(n int) string {
		return strings.Repeat("for i = 1, 1 do ", n) + strings.Repeat("end ", n) + "return 1"
	}
	locals := func(n int) string {
		return "local a" + strings.Repeat(", a", n-1) + " for i = 1, 1 do end return 1"
	}
	for name, src := range map[string]string{"nested": nested(48), "locals": locals(191)} {
		require.Equal(t, ":1\r\n", eval(e, src, resp.RESP2, nil, nil), name)
	}
	for name, src := range map[string]string{"nested": nested(60), "locals": locals(199)} {
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), "user_script:1: ", name)
	}
}

// TestWordsOfErrors: what the machine words in its own way is said as Lua says it.
func TestWordsOfErrors(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for src, want := range map[string]string{
		"local t = {} setmetatable(t, {__index = t}) return t.x":                                      "-ERR user_script:1: loop in gettable script",
		"local t = {} setmetatable(t, {__newindex = t}) t[1] = 1":                                     "-ERR user_script:1: loop in settable script",
		"local t t = setmetatable({}, {__concat = function(a, b) return t .. b end}) return t .. 'x'": "-ERR user_script:1: C stack overflow script",
		"string:rep(2)":                                        "-ERR user_script:1: calling 'rep' on bad self (string expected, got table) script",
		"return math:floor()":                                  "-ERR user_script:1: calling 'floor' on bad self (number expected, got table) script",
		"table.insert(string)":                                 "-ERR user_script:1: wrong number of arguments to 'insert' script",
		"table.insert(redis, {}, 5)":                           "-ERR user_script:1: bad argument #2 to 'insert' (number expected, got table) script",
		"table.insert(string, 1, 2, 3)":                        "-ERR user_script:1: wrong number of arguments to 'insert' script",
		"table.insert(redis, 1, 5)":                            "-ERR Attempt to modify a readonly table script",
		"table.insert(redis, 5)":                               "-ERR Attempt to modify a readonly table script",
		"local function f(s) return s:gsub('.', f) end f('a')": "-ERR C stack overflow script",
		"return {select(2^53, 1)}":                             "bad argument #1 to 'select' (index out of range)",
		"return {select(2^32 + 1, 7)}":                         ":7\r\n",
		"return {select('##', 1, 2)}":                          ":2\r\n",
	} {
		require.Contains(t, eval(e, src, resp.RESP2, nil, nil), want, src)
	}
}
