package lua

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// walk lists each global and each member of a global table with its type, and which tables have a metatable.
const walk = `
local out = {}
local function list(t, prefix)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  for _, k in ipairs(keys) do
    local v = rawget(t, k)
    out[#out + 1] = prefix .. tostring(k) .. ' ' .. type(v)
    if type(v) == 'table' and v ~= _G then list(v, prefix .. tostring(k) .. '.') end
  end
end
list(_G, '')
for k in pairs(getmetatable('')) do out[#out + 1] = 'string metatable ' .. tostring(k) end
table.sort(out)
return out`

// walkLibrary is the same inside a function of a library, whose globals are others than a script's.
const walkLibrary = "#!lua name=walk\nredis.register_function('walk', function()" + walk + "\nend)"

// TestGlobals: what a script can name is what redis-server 7.0.15 offers, and server, which is redis by another name.
func TestGlobals(t *testing.T) {
	l := startPair(t).dial(t, 2)
	for _, call := range [][]string{{"EVAL", walk, "0"}, {"FCALL", "walk", "0"}} {
		if call[0] == "FCALL" {
			_, _, err := l.exchange(harness.Command("FUNCTION", "LOAD", walkLibrary))
			require.NoError(t, err)
		}
		subject, reference, err := l.exchange(harness.Command(call...))
		require.NoError(t, err)
		require.EqualValues(t, '*', reference.Kind, "%s", reference.Text)
		require.EqualValues(t, '*', subject.Kind, "%s", subject.Text)
		names, alias := withoutServer(subject.Strings())
		assert.Equal(t, reference.Strings(), names, call[0])
		if harness.SubjectIsReference(t) {
			continue
		}
		var members []string
		for _, name := range names {
			if rest, ok := strings.CutPrefix(name, "redis."); ok {
				members = append(members, rest)
			}
		}
		assert.Equal(t, members, alias, "%s: the members of server", call[0])
	}
}

// withoutServer splits what walk lists into the names that redis-server has too and the members of server.
func withoutServer(listed []string) (names, members []string) {
	for _, name := range listed {
		rest, ok := strings.CutPrefix(name, "server.")
		switch {
		case ok:
			members = append(members, rest)
		case name != "server table":
			names = append(names, name)
		}
	}
	slices.Sort(members)
	return names, members
}

// tricks are ways to change what the next script will run.
var tricks = []string{
	"setmetatable(_G, {})",
	"local g = getmetatable(_G) g.__index = {}",
	"redis = function() return 1 end",
	"_G = {}",
	"redis.call = function() return 1 end",
	"cjson.encode = function() return 1 end",
	"cmsgpack.pack = function() return 1 end",
	"bit.band = function() return 1 end",
	"struct.pack = function() return 1 end",
	"string.upper = function() return 'changed' end",
	"table.insert = nil",
	"math.floor = nil",
	"coroutine.wrap = nil",
	"rawset(_G, 'evil', 1)",
	"rawset(string, 'upper', nil)",
	"getmetatable('').__index = function() return 'changed' end",
	"getmetatable('').__index.upper = function() return 'changed' end",
	"getmetatable('').__add = function() return 'changed' end",
	"rawset(getmetatable(''), '__index', {})",
	"setmetatable(string, {__index = {}})",
	"setmetatable(getmetatable(''), {})",
	"tostring = nil",
	"KEYS = 1",
	"table.insert(redis, 1)",
	"server = nil",
}

// TestTricks: each is refused in Redis's words, and the globals are the same afterwards, for this client and for others.
func TestTricks(t *testing.T) {
	p := startPair(t)
	l := p.dial(t, 2)
	other := harness.Dial(t, p.subject.Addr)
	before := l.subject.Ask("EVAL", walk, "0").Wire()
	for _, trick := range tricks {
		subject, reference, err := l.exchange(harness.Command("EVAL", trick, "0"))
		require.NoError(t, err, trick)
		assert.Equal(t, reference.Wire(), subject.Wire(), trick)
		assert.Contains(t, subject.Wire(), "Attempt to modify a readonly table", trick)
		subject, reference, err = l.exchange(harness.Command("EVAL", "local ok, e = pcall(function() "+trick+" end) return {ok, e}", "0"))
		require.NoError(t, err, trick)
		assert.Equal(t, reference.Wire(), subject.Wire(), "%s, caught", trick)
		require.Equal(t, before, other.Ask("EVAL", walk, "0").Wire(), "globals after %s", trick)
		require.Equal(t, "$5\r\nUPPER\r\n", other.Ask("EVAL", "return ('upper'):upper()", "0").Wire(), "strings after %s", trick)
	}
}

// leaks are pairs of scripts: the second looks for what the first has done.
var leaks = []struct{ do, look string }{
	{"KEYS.x = 1 ARGV.x = 1 KEYS[5] = 5 return 1", "return {tostring(KEYS.x), tostring(ARGV.x), tostring(KEYS[5]), #KEYS, #ARGV}"},
	{"setmetatable(KEYS, {__index = function() return 'leak' end}) return 1", "return tostring(KEYS[1])"},
	{"redis.setresp(3) return 1", "return redis.call('hgetall', 'nosuch')"},
	{"redis.setresp(3) error('ends badly')", "return redis.call('hgetall', 'nosuch')"},
	{"cjson.encode_number_precision(3) return 1", "return cjson.encode(1/3)"},
	{"cjson.encode_sparse_array(true, 1, 1) return 1", "return {pcall(cjson.encode, {[1] = 1, [100] = 2})}"},
	{"cjson.encode_max_depth(2) return 1", "return cjson.encode({{{{}}}})"},
	{"cjson.decode_max_depth(2) return 1", "return cjson.encode(cjson.decode('[[[[]]]]'))"},
	{"cjson.encode_invalid_numbers(true) return 1", "return {pcall(cjson.encode, 1/0)}"},
	{"redis.call('select', 3) return 1", "return redis.call('exists', 'only-in-0')"},
	{"redis.call('select', 3) error('ends badly')", "return redis.call('exists', 'only-in-0')"},
	{"redis.set_repl(redis.REPL_NONE) return 1", "return redis.call('set', 'only-in-0', 1)"},
	{"co = nil", "return tostring(rawget(_G, 'co'))"},
	{"local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) return 1", "return tostring(coroutine.running())"},
	{"collectgarbage('stop') return 1", "return tostring(collectgarbage('count') > 0)"},
	{"return (' '):rep(1000000)", "return #tostring({}) > 0"},
	{"local t = {} t[1] = t return 1", "return #KEYS"},
	{"local function f() return f() end pcall(f) return 1", "return 'fine'"},
}

// TestNothingLeaks looks before and after. redis-server keeps the settings of cjson, which headgate resets: here it does
// not judge.
func TestNothingLeaks(t *testing.T) {
	if harness.SubjectIsReference(t) {
		t.Skip("redis-server keeps the settings of cjson from script to script")
	}
	server := harness.Start(t, "--script-time-limit", "200")
	first, second := harness.Dial(t, server.Addr), harness.Dial(t, server.Addr)
	first.Do("SET", "only-in-0", "1")
	for _, leak := range leaks {
		before := second.Ask("EVAL", leak.look, "0").Wire()
		first.Do("EVAL", leak.do, "1", "key", "argument")
		require.Equal(t, before, second.Ask("EVAL", leak.look, "0").Wire(), "another client after %s", leak.do)
		require.Equal(t, before, first.Ask("EVAL", leak.look, "0").Wire(), "the same client after %s", leak.do)
	}
}
