package script

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/resp"
)

func TestRepliesOfCommands(t *testing.T) {
	h := newFakeHost()
	e := New(h, Options{})
	for _, c := range []struct{ name, reply, src, want string }{
		{"integer", ":-7\r\n", "return redis.call('C') - 1", ":-8\r\n"},
		{"bulk", "$3\r\na\x00b\r\n", "return #redis.call('C')", ":3\r\n"},
		{"null bulk", "$-1\r\n", "return redis.call('C') == false", ":1\r\n"},
		{"null array", "*-1\r\n", "return redis.call('C') == false", ":1\r\n"},
		{"null", "_\r\n", "return redis.call('C') == nil", ":1\r\n"},
		{"status", "+QUEUED\r\n", "return redis.call('C').ok", "$6\r\nQUEUED\r\n"},
		{"nested", "*3\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n+OK\r\n", "local r = redis.call('C') return {r[1], r[2][1], r[2][2], r[3]}",
			"*4\r\n:1\r\n$1\r\na\r\n$-1\r\n+OK\r\n"},
		{"true", "#t\r\n", "return redis.call('C') == true", ":1\r\n"},
		{"double", ",1.5\r\n", "return redis.call('C').double * 2", ":3\r\n"},
		{"infinity", ",inf\r\n", "return redis.call('C').double == math.huge", ":1\r\n"},
		{"big number", "(12345678901234567890\r\n", "return redis.call('C').big_number", "$20\r\n12345678901234567890\r\n"},
		{"verbatim", "=7\r\ntxt:a:b\r\n", "local v = redis.call('C').verbatim_string return {v.format, v.string}", "*2\r\n$3\r\ntxt\r\n$3\r\na:b\r\n"},
		{"map", "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n", "local m = redis.call('C').map return {m.a, m.b[1]}", "*2\r\n:1\r\n:2\r\n"},
		{"set", "~2\r\n$1\r\na\r\n:5\r\n", "local s = redis.call('C').set return {s.a, s[5], s.b}", "*2\r\n:1\r\n:1\r\n"},
		{"attribute", "|1\r\n$1\r\nk\r\n:1\r\n:9\r\n", "return redis.call('C')", ":9\r\n"},
		{"array with null", "*3\r\n:1\r\n_\r\n:3\r\n", "return redis.call('C')[3]", ":3\r\n"},
		{"error", "-MOVED 1 host\r\n", "return redis.pcall('C').err", "$12\r\nMOVED 1 host\r\n"},
		{"error of one word", "-LOADING\r\n", "return redis.pcall('C')", "-ERR LOADING\r\n"},
		{"error inside", "*1\r\n-A b\r\n", "return redis.call('C')", "*1\r\n-A b\r\n"},
		{"unused", "*1\r\n:1\r\n", "redis.call('C')", "$-1\r\n"},
		{"unused error", "-A b\r\n", "return pcall(function() redis.call('C') end)", "$-1\r\n"},
	} {
		h.replies = map[string]string{"C": c.reply}
		require.Equal(t, c.want, eval(e, c.src, resp.RESP2, nil, nil), c.name)
	}
}

func TestArgumentsOfCommands(t *testing.T) {
	for _, c := range []struct {
		n    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {1, "1"}, {-15, "-15"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {1e17, "100000000000000000"},
		{1700000000000000000, "1700000000000000000"}, {1e20, "100000000000000000000"}, {1e21, "1e+21"}, {1.5e300, "1.5e+300"},
		{1e-5, "0.00001"}, {1e-7, "1e-7"}, {-2.5e-10, "-2.5e-10"}, {math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"},
		{123456.789, "123456.789"}, {9007199254740993, "9007199254740992"},
	} {
		require.Equal(t, c.want, string(appendArgument(nil, c.n)))
	}
}

func TestCallsReachTheHost(t *testing.T) {
	h := newFakeHost()
	h.keepCalls = true
	e := New(h, Options{Version: "7.2.4", VersionNum: 0x70204})
	eval(e, "redis.call('SET', KEYS[1], 1.5, 'px', 10 / 4 * 2) redis.pcall('GET', KEYS[1])", resp.RESP2, []string{"key"}, nil)
	require.Equal(t, [][]string{{"SET", "key", "1.5", "px", "5"}, {"GET", "key"}}, h.calls)

	require.Equal(t, "$-1\r\n", eval(e, "redis.log(redis.LOG_WARNING, 'a', 1.5, {}, 'b')", resp.RESP2, nil, nil))
	require.Equal(t, []string{"3 a 1.5 b"}, h.lines)
	eval(e, "redis.set_repl(redis.REPL_AOF)", resp.RESP2, nil, nil)
	require.Equal(t, ReplicateAOF, h.replication)
	require.Equal(t, "*2\r\n:1\r\n$-1\r\n", eval(e, "return {redis.acl_check_cmd('GET'), redis.acl_check_cmd('FORBIDDEN')}", resp.RESP2, nil, nil))
	require.Contains(t, eval(e, "redis.acl_check_cmd('NOPE')", resp.RESP2, nil, nil), "-ERR Invalid command passed to redis.acl_check_cmd() script: ")
	require.Equal(t, "*2\r\n$5\r\n7.2.4\r\n:459268\r\n", eval(e, "return {redis.REDIS_VERSION, server.REDIS_VERSION_NUM}", resp.RESP2, nil, nil))
}

// TestErrorReply covers where headgate keeps to what libraries expect of Redis 6.
func TestErrorReply(t *testing.T) {
	e := New(newFakeHost(), Options{})
	for arg, want := range map[string]string{
		"'OVERWEIGHT'": "-OVERWEIGHT\r\n", "'-OVERWEIGHT'": "-OVERWEIGHT\r\n", "'A b'": "-A b\r\n", "''": "-ERR \r\n",
		"1": "-ERR wrong number or type of arguments\r\n",
	} {
		require.Equal(t, want, eval(e, "return redis.error_reply("+arg+")", resp.RESP2, nil, nil), arg)
	}
}
