package cjson

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
	"headgate/server/script/lualib/internal/luatest"
)

// encodeCases are bodies of Lua functions, which must return here what they
// return in redis-server. Objects have one key where their order would show.
var encodeCases = []string{
	`local out = {} for k, v in pairs(cjson) do out[k] = type(v) == 'string' and v or type(v) end return out`,
	`local out = {} for k, v in pairs(cjson.new()) do out[k] = type(v) == 'string' and v or type(v) end return out`,
	`return cjson.null == cjson.decode('null'), cjson.new().null == cjson.null, type(cjson.null), cjson.null == nil`,

	`return cjson.encode(nil), cjson.encode(true), cjson.encode(false), cjson.encode(cjson.null), cjson.encode(cjson.decode('null'))`,
	`return cjson.encode(0), cjson.encode(1), cjson.encode(-1), cjson.encode(1.5), cjson.encode(0.1), cjson.encode(1/3), cjson.encode(-0.0)`,
	`return cjson.encode(1e14), cjson.encode(1e15), cjson.encode(123456789012345), cjson.encode(2^53), cjson.encode(1e100), cjson.encode(1e-5), cjson.encode(0.0001)`,
	`return cjson.encode(99999999999999), cjson.encode(100000000000000), cjson.encode(99999999999999.5), cjson.encode(0.1 + 0.2), cjson.encode(5e-324), cjson.encode(1.7976931348623157e308)`,
	`return cjson.encode(0 * -1), cjson.encode(100), cjson.encode(1e10), cjson.encode(-1.25e-7)`,
	`return cjson.encode(1/0)`,
	`return cjson.encode(-1/0)`,
	`return cjson.encode(0/0)`,
	`return cjson.encode({[1/0] = 1})`,
	`return cjson.encode({[-1/0] = 1})`,
	`return cjson.encode({1, 0/0})`,
	`return cjson.encode(''), cjson.encode('abc'), cjson.encode('a"b\\c/d'), cjson.encode('\b\f\n\r\t\v'), cjson.encode('\0\1\31\127\128\255')`,
	`return cjson.encode('\195\169\226\130\172\240\159\152\128'), cjson.encode('\237\160\128'), cjson.encode(('x'):rep(100) .. '\0')`,
	`local s = '' for i = 0, 255 do s = s .. string.char(i) end return cjson.encode(s)`,

	// Tables.
	`return cjson.encode({}), cjson.encode({{}}), cjson.encode({1, 2, 3}), cjson.encode({'a', true, false, cjson.null}), cjson.encode({{1}, {2}})`,
	`return cjson.encode({a = 1}), cjson.encode({['1'] = 1}), cjson.encode({[''] = ''}), cjson.encode({['a"b'] = {}})`,
	`return cjson.encode({1, nil, 3}), cjson.encode({nil, 2}), cjson.encode({[2] = 1}), cjson.encode({[10] = 1})`,
	`local t = {1, 2, 3} t[3] = nil return cjson.encode(t)`,
	`local t = {1} t[1] = nil return cjson.encode(t)`,
	`local t = {1, 2, x = 3} t.x = nil return cjson.encode(t)`,
	`return cjson.encode({[0] = 1}), cjson.encode({[-1] = 1}), cjson.encode({[1.5] = 1}), cjson.encode({[1e20] = 1}), cjson.encode({[0.1] = 1})`,
	`return cjson.encode({[2^31] = 1}), cjson.encode({[2^32 + 1] = 1}), cjson.encode({[1e300] = 1})`,
	`return cjson.encode({[11] = 1})`,
	`return cjson.encode({[100] = 1})`,
	`return cjson.encode({[2^31 - 1] = 1})`,
	`return cjson.encode({1, [20000] = 1})`,
	`local t = {1, 2, 3, 4, 5} t[11] = 6 return cjson.encode(t)`,
	`local t = {1, 2, 3, 4, 5} t[12] = 6 return cjson.encode(t)`,
	`local t = {1, 2, 3, 4, 5} t[13] = 6 return cjson.encode(t)`,
	`local t = {} for i = 10000, 1, -1 do t[i] = i end local s = cjson.encode(t) return #s, s:sub(1, 20), s:sub(-20)`,
	`local t = {} for i = 1, 10000 do t[i] = i end local s = cjson.encode(t) return #s, cjson.decode(s)[9999]`,
	`local t = {} for i = 1, 8190 do t[i] = i end t[8193] = 'x' return cjson.encode(t):sub(-30)`,
	`return cjson.encode({[true] = 1})`,
	`return cjson.encode({[{}] = 1})`,
	`return cjson.encode({[cjson.null] = 1})`,
	`return cjson.encode({[tostring] = 1})`,
	`return cjson.encode(tostring)`,
	`return cjson.encode({tostring})`,
	`return cjson.encode({a = coroutine.create(function() end)})`,
	`return cjson.encode(setmetatable({1}, {__index = function() return 1 end, __len = function() return 5 end, __tostring = function() return 'x' end}))`,

	// Nesting.
	`local t = {} t[1] = t return cjson.encode(t)`,
	`local t = {} t.a = t return cjson.encode(t)`,
	`local t = 1 for i = 1, 1000 do t = {t} end return #cjson.encode(t)`,
	`local t = 1 for i = 1, 1001 do t = {t} end return #cjson.encode(t)`,
	`local t = 1 for i = 1, 1000 do t = {a = t} end return #cjson.encode(t)`,
	`local t = {tostring} for i = 1, 1000 do t = {t} end return #cjson.encode(t)`,
	`local t = {[100] = 1} for i = 1, 1000 do t = {t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(3) return cjson.encode({{{1}}})`,
	`cjson.encode_max_depth(3) return cjson.encode({{{{1}}}})`,
	`cjson.encode_max_depth(1) return cjson.encode(1), cjson.encode({1}), pcall(function() return cjson.encode({{}}) end)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 7990 do t = {t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 7996 do t = {t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 7997 do t = {t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 7998 do t = {t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 3998 do t = {a = t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 3999 do t = {a = t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = 1 for i = 1, 4000 do t = {a = t} end return #cjson.encode(t)`,
	`cjson.encode_max_depth(1e6) local t = {} t[1] = t return cjson.encode(t)`,

	// Arguments.
	`return cjson.encode()`,
	`return cjson.encode(1, 2)`,
	`return cjson.encode(nil, nil)`,
	`return cjson.new(1, 2).encode({1})`,
}

var settingsCases = []string{
	`return cjson.encode_sparse_array(), cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision(), cjson.encode_keep_buffer(), cjson.encode_invalid_numbers(), cjson.decode_invalid_numbers()`,
	`return cjson.encode_sparse_array()`,
	`return cjson.encode_sparse_array(true)`,
	`return cjson.encode_sparse_array(false, 3, 4)`,
	`return cjson.encode_sparse_array(nil, 3), cjson.encode_sparse_array(nil, nil, 7)`,
	`return cjson.encode_sparse_array('on'), cjson.encode_sparse_array('off')`,
	`return cjson.encode_sparse_array('yes')`,
	`return cjson.encode_sparse_array(1)`,
	`return cjson.encode_sparse_array({})`,
	`return cjson.encode_sparse_array(true, -1)`,
	`return cjson.encode_sparse_array(true, 1, -1)`,
	`return cjson.encode_sparse_array(true, 'x')`,
	`return cjson.encode_sparse_array(true, 2^31)`,
	`return cjson.encode_sparse_array(true, 2^32 + 5)`,
	`return cjson.encode_sparse_array(true, '4', 5.9)`,
	`return cjson.encode_sparse_array(true, 1, 2, 3)`,
	`cjson.encode_sparse_array(true) return cjson.encode({[100] = 1}), cjson.encode({1, [200] = 1}):len(), cjson.encode({[11] = {[12] = 1}})`,
	`cjson.encode_sparse_array(true, 1, 0) return cjson.encode({[2] = 1}), cjson.encode({1, 2}), cjson.encode({[1] = 1})`,
	`cjson.encode_sparse_array(false, 0) return #cjson.encode({[1000] = 1})`,
	`cjson.encode_sparse_array(false, 2, 3) return cjson.encode({[4] = 1})`,
	`cjson.encode_sparse_array(false, 2^31 - 1, 0) return cjson.encode({[4] = 1, [5] = 2})`,
	`cjson.encode_sparse_array(false, 2^31 - 1, 0) return cjson.encode({[4] = 1, [5] = 2, [6] = 3})`,
	`return cjson.encode_max_depth(5), cjson.encode_max_depth(), cjson.encode_max_depth(nil), cjson.encode_max_depth('7')`,
	`return cjson.encode_max_depth(0)`,
	`return cjson.encode_max_depth(-1)`,
	`return cjson.encode_max_depth('x')`,
	`return cjson.encode_max_depth(true)`,
	`return cjson.encode_max_depth(1, 2)`,
	`return cjson.encode_max_depth(2^31)`,
	`return cjson.encode_max_depth(2^31 - 1)`,
	`return cjson.encode_max_depth(1e300)`,
	`return cjson.encode_max_depth(0/0)`,
	`return cjson.decode_max_depth(5), cjson.decode_max_depth()`,
	`return cjson.decode_max_depth(0)`,
	`return cjson.decode_max_depth(1, nil)`,
	`return cjson.encode_number_precision(3), cjson.encode(1/3), cjson.encode(1000), cjson.encode(12345), cjson.encode(0.00012345), cjson.encode(0.000012345)`,
	`cjson.encode_number_precision(1) return cjson.encode(9.9), cjson.encode(15), cjson.encode(0.05), cjson.encode(7), cjson.encode(0), cjson.encode(-0.0)`,
	`cjson.encode_number_precision(10) return cjson.encode(1e9), cjson.encode(1e10), cjson.encode(9999999999.5), cjson.encode(1/7), cjson.encode(-2/3e7), cjson.encode({[1/3] = 1})`,
	`return cjson.encode_number_precision(14)`,
	`return cjson.encode_number_precision(15)`,
	`return cjson.encode_number_precision(16)`,
	`return cjson.encode_number_precision(17)`,
	`return cjson.encode_number_precision(0)`,
	`return cjson.encode_number_precision({})`,
	`return cjson.encode_keep_buffer(false), cjson.encode_keep_buffer(), cjson.encode({1}), cjson.encode_keep_buffer(true), cjson.encode({1})`,
	`return cjson.encode_keep_buffer('off'), cjson.encode_keep_buffer('on'), cjson.encode_keep_buffer(nil)`,
	`return cjson.encode_keep_buffer(0)`,
	`return cjson.encode_invalid_numbers(true), cjson.encode_invalid_numbers('null'), cjson.encode_invalid_numbers(), cjson.encode_invalid_numbers(false)`,
	`return cjson.encode_invalid_numbers('on'), cjson.encode_invalid_numbers('off'), cjson.encode_invalid_numbers(nil)`,
	`return cjson.encode_invalid_numbers('maybe')`,
	`return cjson.encode_invalid_numbers(1)`,
	`cjson.encode_invalid_numbers(true) return cjson.encode({1/0, -1/0, 0/0, -(0/0)})`,
	`cjson.encode_invalid_numbers(true) return cjson.encode({[1/0] = 1}), cjson.encode({[-1/0] = 1})`,
	`cjson.encode_invalid_numbers('null') return cjson.encode({1/0, -1/0, 0/0}), cjson.encode({[1/0] = 1}), cjson.encode({[-1/0] = 1})`,
	`return cjson.decode_invalid_numbers(false), cjson.decode_invalid_numbers(), cjson.decode_invalid_numbers('on'), cjson.decode_invalid_numbers('off')`,
	`return cjson.decode_invalid_numbers('null')`,
	`local c = cjson.new() c.encode_max_depth(1) c.encode_number_precision(3) return cjson.encode({{1/3}}), pcall(function() return c.encode({{1}}) end)`,
	`cjson.encode_max_depth(7) return cjson.new().encode_max_depth(), cjson.new().new().encode_max_depth()`,
	`local c = cjson.new() c.x = 1 return c.x, cjson.x`,
}

// decodeTexts are decoded both with and without decode_invalid_numbers.
var decodeTexts = []string{
	`1`, `0`, `-1`, `1.5`, `-1.5e3`, `1E+2`, `1e-2`, `0.1`, `123456789012345678`, `1e308`, `1e309`, `-1e309`, `1e-400`, `5e-324`, `2e-324`,
	`00`, `01`, `-01`, `-00.5`, `+1`, `+`, `-`, `- 1`, `+-1`, `--1`, `1.`, `.5`, `-.5`, `-.`, `+.5`, `1.5.5`, `1e`, `1e+`, `1e5x`, `1e5.5`, `1 2`, `1,2`, `12a`,
	`0x10`, `0X1F`, `-0x10`, `+0x10`, `0x`, `0xg`, `0x.8`, `0x1.8p1`, `0x1p`, `0x1p-1074`, `0x1p-1075`, `0x1p1024`, `0x1.fffffffffffff8p1023`, `0x.`, `0x1p+`, `-0x1.8P+3z`,
	`inf`, `-inf`, `+inf`, `Inf`, `INF`, `infinity`, `-Infinity`, `infinit`, `infinityx`, `nan`, `NaN`, `-nan`, `nan(123)`, `nan(1-2)`, `nan(`, `nanx`, `-`, `-i`, `-n`, `n`, `i`, `I`, `N`, `iNf`, `na`, `nul`, `tru`, `fals`,
	`true`, `false`, `null`, `True`, `truex`, `nullnull`, `true false`, ` true `, "\t\r\n1\n", "\v1", "\f1", ``, ` `, "\x00", "1\x00", "12\x00junk", "\x001", "\xef\xbb\xbf1", `'a'`, `a`, `#`, `/**/1`,
	`""`, `"a"`, `"abc`, `"`, `"a\"b\\c\/d"`, `"\b\f\n\r\t"`, `"\a"`, `"\`, `"\"`, `"\x41"`, "\"a\nb\"", "\"a\x00b\"", "\"\\\x00\"", "\"\xff\xfe\"", `"a" "b"`, `"\u0041"`, `"\u00e9\u20AC"`, `"\u0000"`, `"\u007F\u0080\u07ff\u0800\uffff"`,
	`"\u"`, `"\u12"`, `"\u123g"`, `"\u12`, `"\ud83d\ude00"`, `"\uD83D\uDE00x"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\ude00"`, `"\ude00\ud83d"`, `"\ud83d\ud83d"`, `"\ud83d\u"`, `"\udbff\udfff"`, `"\ud800\udc00"`, `"ab\u0063d\n"`, `"abc\q"`,
	`[]`, `[ ]`, `[1]`, `[1,2,3]`, `[1, [2, [3]], {}]`, `[null]`, `[null,1]`, `[1,null]`, `[null,null,3]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `[1`, `[1,`, `]`, `[}`, `[1}`, `[:]`, `["a":1]`, `[[[]]]`, `[true,false,"x",1.5]`, `[1,,2]`, `[1]]`, `[nan,inf]`, `[01]`, `[+1]`, `["a\q"]`, `["a`,
	`{}`, `{ }`, `{"a":1}`, `{"a":1,"b":2}`, `{"a":{"b":{"c":[]}}}`, `{"a":null}`, `{"a":1,"a":2}`, `{"":1}`, `{"1":1}`, `{"1":"a","2":"b"}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{1:2}`, `{a:1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `}`, `{]`, `{"a":1]`, `{"a"::1}`, `{null:1}`, `{"a\u0000b":1}`, `{"a":tru}`, `{"a":"b`, `{"\q":1}`, `{nan:1}`, `{"a":-}`, `{"a",1}`,
	`{"user":"jo","limits":[{"rate":10.5,"per":"s"},{"rate":100,"per":"m"}],"ok":true,"none":null}`,
}

var decodeCases = []string{
	`return cjson.decode()`,
	`return cjson.decode(nil)`,
	`return cjson.decode({})`,
	`return cjson.decode(true)`,
	`return cjson.decode('1', 2)`,
	`return cjson.decode(12), cjson.decode(0.1)`,
	`return cjson.decode(1/0)`,
	`return #cjson.decode(('['):rep(1000) .. (']'):rep(1000))`,
	`return cjson.decode(('['):rep(1001) .. (']'):rep(1001))`,
	`return cjson.decode(('['):rep(1001))`,
	`return cjson.decode((' ['):rep(1001))`,
	`return cjson.decode(('{"a":'):rep(1000) .. '1' .. ('}'):rep(1000)) ~= nil`,
	`return cjson.decode(('{"a":'):rep(1001) .. '1' .. ('}'):rep(1001))`,
	`cjson.decode_max_depth(2) return cjson.decode('[[1],[2],{"a":3}]')`,
	`cjson.decode_max_depth(2) return cjson.decode('[[1],[2],{"a":[]}]')`,
	`cjson.decode_max_depth(2) return cjson.decode('[[],{},[],{},[[1]]]')`,
	`cjson.decode_max_depth(1) return cjson.decode('1'), cjson.decode('[]'), pcall(function() return cjson.decode('[[]]') end)`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('['):rep(7997) .. (']'):rep(7997)))`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('['):rep(7998) .. (']'):rep(7998)))`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('['):rep(7999) .. (']'):rep(7999)))`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('['):rep(20000)))`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('{"a":'):rep(3998) .. '1' .. ('}'):rep(3998)))`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('{"a":'):rep(3999) .. '1' .. ('}'):rep(3999)))`,
	`cjson.decode_max_depth(1e6) return type(cjson.decode(('{"a":'):rep(4000) .. '1' .. ('}'):rep(4000)))`,
	`local t = cjson.decode('[1,2,3]') t[4] = 4 t.x = 5 return t, #t`,
	`local t = cjson.decode('{}') t[1] = 1 t.a = 2 return t`,
	`local t = cjson.decode('{"a":null}') return t.a == cjson.null, t.b == nil`,
	`local t = cjson.decode('[' .. ('"x\\n",'):rep(9000) .. '7]') return t[1], t[8191], t[8192], t[8193], t[9000], t[9001], t[9002]`,
	`return cjson.encode(cjson.decode('[{"a":[1,2,{"b":null}]},"\\u00e9\\/",1e3,[],{}]'))`,
	`return cjson.decode('"' .. ('x'):rep(5000) .. '\\n' .. ('y'):rep(5000) .. '"')`,
	`return cjson.decode(('1'):rep(400)), cjson.decode('0.' .. ('0'):rep(400) .. '1e400'), cjson.decode('1' .. ('0'):rep(50) .. 'e-50')`,
}

func compare(t *testing.T, redis *luatest.Redis, vm *luatest.VM, body string, args ...string) {
	t.Helper()
	Reset(vm.L.GetGlobal("cjson").(*lua.LTable))
	want, got := redis.Run(t, body, args...), vm.Run(t, body, args...)
	assert.Equal(t, want, got, "%s %q\nredis: %s\nhere:  %s", body, args, luatest.Explain(want), luatest.Explain(got))
}

func TestAgainstRedis(t *testing.T) {
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "cjson", Open)
	for _, bodies := range [][]string{encodeCases, settingsCases, decodeCases} {
		for _, body := range bodies {
			compare(t, redis, vm, body)
		}
	}
	for _, text := range decodeTexts {
		compare(t, redis, vm, `return cjson.decode((...))`, text)
		compare(t, redis, vm, `cjson.decode_invalid_numbers(false) return cjson.decode((...))`, text)
	}
}

// TestReset: no setting survives, and libraries of cjson.new keep their own.
func TestReset(t *testing.T) {
	vm := luatest.NewVM(t, "cjson", Open)
	const read = `return cjson.encode_max_depth(), cjson.decode_max_depth(), cjson.encode_number_precision(), cjson.encode_keep_buffer(),
		cjson.encode_invalid_numbers(), cjson.decode_invalid_numbers(), cjson.encode_sparse_array()`
	want := vm.Run(t, read)
	vm.Run(t, `cjson.encode_max_depth(1) cjson.decode_max_depth(2) cjson.encode_number_precision(3) cjson.encode_keep_buffer(false)
		cjson.encode_invalid_numbers('null') cjson.decode_invalid_numbers(false) cjson.encode_sparse_array(true, 5, 6)
		own = cjson.new() own.encode_max_depth(9)`)
	require.NotEqual(t, want, vm.Run(t, read))
	Reset(vm.L.GetGlobal("cjson").(*lua.LTable))
	require.Equal(t, want, vm.Run(t, read))
	require.Equal(t, "true n9", vm.Run(t, `return own.encode_max_depth()`))
	Reset(vm.L.NewTable()) // some other table: nothing happens
}

// TestIsNull tells null from other userdata.
func TestIsNull(t *testing.T) {
	vm := luatest.NewVM(t, "cjson", Open)
	require.True(t, IsNull(vm.L.GetGlobal("cjson").(*lua.LTable).RawGetString("null")))
	other := vm.L.NewUserData()
	other.Value = t
	require.False(t, IsNull(other))
	require.False(t, IsNull(lua.LNil))
	vm.L.SetGlobal("other", other)
	require.Contains(t, luatest.Explain(vm.Run(t, `return cjson.encode(other)`)), "Cannot serialise userdata: type not supported")
}

// TestLimits: no call builds more than the budget allows.
func TestLimits(t *testing.T) {
	vm := luatest.NewVM(t, "cjson", Open)
	vm.Budget.MaxString, vm.Budget.MaxTable = 100, 10
	for _, body := range []string{
		`return cjson.encode(('x'):rep(200))`,
		`return cjson.encode(('\0'):rep(20))`,
		`local t = {} for i = 1, 200 do t[i] = i end return cjson.encode(t)`,
		`local t = {} for i = 1, 16 do t = {t, t, t, t} end return cjson.encode(t)`,
		`local t = {} for i = 1, 16 do t = {a = t, b = t, c = t} end return cjson.encode(t)`,
		`cjson.encode_sparse_array(false, 0) return cjson.encode({[2^31 - 1] = 1})`,
		`return cjson.decode('[1' .. (',1'):rep(10) .. ']')`,
		`local s = {} for i = 1, 11 do s[i] = '"' .. i .. '":1' end return cjson.decode('{' .. table.concat(s, ',') .. '}')`,
	} {
		require.Contains(t, luatest.Explain(vm.Run(t, body)), "not enough memory", body)
	}
	require.Equal(t, "true n62", vm.Run(t, `return #cjson.encode(('x'):rep(60))`))
}

// TestSteps: what calls cost grows with what they read and write.
func TestSteps(t *testing.T) {
	vm := luatest.NewVM(t, "cjson", Open)
	vm.L.SetGlobal("text", lua.LString(strings.Repeat("x", 800_000)))
	for _, body := range []string{`cjson.encode(text)`, `cjson.decode('"' .. text .. '"')`, `cjson.decode('"\\n' .. text .. '"')`,
		`cjson.decode((' '):rep(800000))`, `cjson.decode(('1'):rep(800000))`, `cjson.encode({[8000] = 1})`, `cjson.decode('"' .. text)`} {
		const before, least = 1 << 30, 1000
		vm.Budget.Steps = before
		vm.Run(t, body)
		require.Less(t, vm.Budget.Steps, int64(before-least), body)
	}
}

// TestLargeResult: a result that becomes the buffer itself is not overwritten.
func TestLargeResult(t *testing.T) {
	vm := luatest.NewVM(t, "cjson", Open)
	require.Equal(t, "true true true", vm.Run(t, `
		local a = cjson.encode(('x'):rep(200000)) local b = cjson.encode(('y'):rep(200000))
		return a == '"' .. ('x'):rep(200000) .. '"', b == '"' .. ('y'):rep(200000) .. '"'`))
}

// randomJSON returns a text that is JSON more often than not, with objects of
// one key at most, whose order cannot differ.
func randomJSON(rng *rand.Rand, depth int) string {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	switch kind := rng.IntN(12); {
	case kind < 3 && depth > 0:
		values := make([]string, rng.IntN(5))
		for i := range values {
			values[i] = randomJSON(rng, depth-1)
		}
		return "[" + strings.Join(values, pick(",", ",", ",", " , ", ",\n")) + pick("]", "]", "]", "]", "}", "")
	case kind < 6 && depth > 0:
		return "{" + pick(`"a"`, `"\u0062"`, `""`, `"c d"`, `"a"`, `1`) + pick(":", ":", ":", " : ", "") + randomJSON(rng, depth-1) + pick("}", "}", "}", "}", "]", ",}")
	case kind == 6:
		return pick("true", "false", "null", "nul", "nan", "-inf", "[]", "{}")
	case kind < 9:
		return luatest.RandomNumber(rng)
	case kind == 9:
		return strconv.Itoa(rng.IntN(1000)) + pick("", ".5", "e3", "E-7", "e", ".", ".e1", "x")
	}
	var text strings.Builder
	for range rng.IntN(6) {
		text.WriteString(pick(`a`, `\n`, `\"`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "\x01", "\xff", `\/`, `\\`, `é`, `\u0`, ` `))
	}
	return `"` + text.String() + pick(`"`, `"`, `"`, `"`, `"`, ``)
}

// TestRandomAgainstRedis decodes texts, and encodes what they hold.
func TestRandomAgainstRedis(t *testing.T) {
	const rounds = 3000
	const body = `local value = cjson.decode((...)) return value, pcall(cjson.encode, value)`
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "cjson", Open)
	rng := luatest.NewRand(t)
	for range rounds {
		text := randomJSON(rng, 5)
		want, got := redis.RunAgain(t, body, text), vm.Run(t, body, text)
		if strings.Contains(want, "false s43616e6e6f742073657269616c697365") {
			continue // an error of encode, whose position pcall hides in Redis
		}
		require.Equal(t, want, got, "%q\nredis: %s\nhere:  %s", text, luatest.Explain(want), luatest.Explain(got))
	}
}

// TestRandomNumbersAgainstRedis encodes numbers with every precision.
func TestRandomNumbersAgainstRedis(t *testing.T) {
	const rounds = 1000
	const body = `local out = {} for precision = 1, 14 do cjson.encode_number_precision(precision) out[precision] = cjson.encode(tonumber((...))) end return out`
	redis := luatest.Start(t)
	vm := luatest.NewVM(t, "cjson", Open)
	rng := luatest.NewRand(t)
	for range rounds {
		text := luatest.RandomNumber(rng)
		require.Equal(t, redis.RunAgain(t, body, text), vm.Run(t, body, text), "%s", text)
	}
}

// FuzzCJSONDecode reads any text. What it holds encodes to a text that decodes
// to what encodes to as long a text again.
func FuzzCJSONDecode(f *testing.F) {
	for _, text := range decodeTexts {
		f.Add(text)
	}
	f.Add(strings.Repeat("[", 1500))
	f.Add(strings.Repeat(`{"a":`, 1500))
	vm := luatest.NewVM(f, "cjson", Open)
	lib := vm.L.GetGlobal("cjson").(*lua.LTable)
	call := func(name string, arg lua.LValue) lua.LValue {
		results, _ := vm.Call(lib.RawGetString(name).(*lua.LFunction), arg)
		if results == nil {
			return nil
		}
		return results[0]
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := call("decode", lua.LString(text))
		if value == nil {
			return
		}
		encoded := call("encode", value)
		if encoded == nil {
			return // NaN or an infinity
		}
		again := call("decode", encoded)
		require.NotNil(t, again, "%q", encoded)
		encodedAgain := call("encode", again)
		require.NotNil(t, encodedAgain, "%q", encoded)
		require.Len(t, string(encodedAgain.(lua.LString)), len(encoded.(lua.LString)), "%q %q", encoded, encodedAgain)
	})
}

// document makes about a kilobyte of JSON.
const document = `local t = {} for i = 1, 12 do t[i] = {id = i, name = 'limiter number ' .. i, rate = i / 7, tags = {'a', 'b', 'c'}, on = true} end
	return t`

func BenchmarkEncode(b *testing.B) {
	vm := luatest.NewVM(b, "cjson", Open)
	results, _ := vm.Call(vm.Compile(b, document))
	text, _ := vm.Call(vm.Compile(b, `return cjson.encode((function() `+document+` end)())`))
	run(b, vm, "encode", results[0], len(text[0].(lua.LString)))
}

func BenchmarkDecode(b *testing.B) {
	vm := luatest.NewVM(b, "cjson", Open)
	text, _ := vm.Call(vm.Compile(b, `return cjson.encode((function() `+document+` end)())`))
	run(b, vm, "decode", text[0], len(text[0].(lua.LString)))
}

func run(b *testing.B, vm *luatest.VM, name string, arg lua.LValue, size int) {
	f := vm.L.GetGlobal("cjson").(*lua.LTable).RawGetString(name)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		vm.L.Push(f)
		vm.L.Push(arg)
		vm.L.Call(1, 1)
		vm.L.Pop(1)
	}
}

// TestInstancesAreWeighed: whatever is kept of those that new returns, and however
// long what they wrote was, the weight of it is at least what it takes.
func TestInstancesAreWeighed(t *testing.T) {
	for _, kept := range []string{"c.encode", "c.decode", "c"} {
		L := lua.NewState(lua.Options{SkipOpenLibs: true})
		L.SetGlobal("cjson", Open(L, limits.NewBudget()))
		L.SetGlobal("s", lua.LString(strings.Repeat("x", 30_000)))
		before, weight := liveBytes(), weightOf(L)
		require.NoError(t, L.DoString("t = {} for i = 1, 5000 do local c = cjson.new() c.encode(s) t[i] = "+kept+" end"))
		grown := liveBytes() - before
		weight = weightOf(L) - weight
		t.Logf("%s: %d bytes in the heap, %d weighed", kept, grown, weight)
		require.GreaterOrEqual(t, weight, grown*9/10, kept)
		require.LessOrEqual(t, weight, grown*2+1<<20, kept)
		L.Close()
	}
}

func weightOf(L *lua.LState) int {
	var s limits.Scale
	s.Weigh(L.G.Global)
	return s.Bytes
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
