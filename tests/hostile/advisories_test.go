package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// This file: what has brought down redis-server or its kin in the last two years, one test for each advisory. tests/tls has the one for
// clients over TLS.

// infoField waits until a field of INFO is as wanted.
func infoField(t *testing.T, c *harness.Client, section, line string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(c.Ask("INFO", section).Text, line+"\r\n") }, patience, time.Millisecond, line)
}

// awaitClosed waits until the server has closed so many clients for what they take up: all together, or one by a reply that is too long.
func awaitClosed(t *testing.T, c *harness.Client, want int) {
	t.Helper()
	require.Eventually(t, func() bool {
		closed := 0
		for line := range strings.Lines(c.Ask("INFO", "stats").Text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if n, err := strconv.Atoi(value); err == nil && (name == "evicted_clients" || name == "client_output_buffer_limit_disconnections") {
				closed += n
			}
		}
		return closed == want
	}, patience, time.Millisecond, "%d clients closed", want)
}

// TestCVE202623479: a client that waits for a key is evicted (maxmemory-clients) while it waits, or because of the very reply that ends
// its wait. redis-server went on with the client's freed memory.
func TestCVE202623479(t *testing.T) {
	server := harness.Start(t, "--maxmemory-clients", "1mb")
	admin, other := harness.Dial(t, server.Addr), harness.Dial(t, server.Addr)
	for _, c := range []*harness.Client{admin, other} {
		require.Equal(t, "+OK\r\n", string(c.Do("CLIENT", "NO-EVICT", "ON")))
	}
	const fill = "local big = string.rep('x', 100000) for i = 1, 200 do redis.call(unpack(%s)) end"
	long := make([]string, 0, 3002)
	long = append(long, "BLPOP")
	for i := range 3000 {
		long = append(long, fmt.Sprintf("k%d%s", i, repeat("x", kib)))
	}
	evicted := 0
	for _, tt := range []struct {
		name  string
		waits []string
		big   string // what puts one of many large elements at k
	}{
		{"list", []string{"BLMPOP", "0", "1", "k", "LEFT", "COUNT", "1000"}, "{'RPUSH', 'k', big}"},
		{"sorted set", []string{"BZMPOP", "0", "1", "k", "MIN", "COUNT", "1000"}, "{'ZADD', 'k', i, i .. big}"},
		{"stream", []string{"XREAD", "BLOCK", "0", "STREAMS", "k", "0"}, "{'XADD', 'k', '*', 'f', big}"},
		{"group", []string{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "k", ">"}, "{'XADD', 'k', '*', 'f', big}"},
		{"while it waits", append(long, "0"), "{'RPUSH', 'k' .. (i % 10) .. string.rep('x', 1024), big}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 3 {
				if tt.name == "group" {
					require.Equal(t, "+OK\r\n", string(admin.Do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")))
				}
				require.NoError(t, other.Send(harness.Command("BLPOP", "other", "0")))
				infoField(t, admin, "clients", "blocked_clients:1")
				victim := deaf(t, server.Addr)
				_, err := victim.Write([]byte(command(tt.waits...)))
				require.NoError(t, err)
				evicted++
				if tt.name == "while it waits" { // its own keys are too much
					awaitClosed(t, admin, evicted)
				} else {
					infoField(t, admin, "clients", "blocked_clients:2")
				}
				require.Equal(t, "$-1\r\n", string(admin.Do("EVAL", fmt.Sprintf(fill, tt.big), "0")))
				awaitClosed(t, admin, evicted)
				infoField(t, admin, "clients", "blocked_clients:1")
				infoField(t, admin, "clients", "connected_clients:2")
				require.NoError(t, victim.Close())
				require.Equal(t, ":1\r\n", string(admin.Do("RPUSH", "other", "v")))
				require.Equal(t, "*2\r\n$5\r\nother\r\n$1\r\nv\r\n", string(other.Reply()), "a bystander that waits")
				require.Equal(t, "+OK\r\n", string(admin.Do("FLUSHALL")))
			}
		})
	}
}

// redisCRC is the table of the checksum of DUMP's payloads.
var redisCRC = crc64.MakeTable(0x95ac9329ac4bc9b5)

// sealed returns a payload of DUMP whose body has been changed with the checksum that it then must have.
func sealed(payload []byte) []byte {
	body := payload[:len(payload)-8]
	sum := ^crc64.Update(^uint64(0), redisCRC, body)
	return binary.LittleEndian.AppendUint64(bytes.Clone(body), sum)
}

// TestCVE202625243: RESTORE takes payloads whose checksum is right and whose content is not. redis-server used memory that was not the
// value's, in streams one entry was pending for two consumers, and freed with each.
func TestCVE202625243(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	server := harness.Start(t, "--enable-restore-command", "yes")
	c := harness.Dial(t, server.Addr)
	for _, line := range []string{
		"SET string value", "SETBIT bits 1000 1", "RPUSH list 1 two 3333333333 " + repeat("x ", 200), "SADD ints 1 2 70000", "SADD set a b 3",
		"ZADD zset 1 a 2.5 b 3 c", "HSET hash f v 1 2", "PFADD hll a b c", "XADD stream 1-1 f v", "XADD stream 1-2 f w g x", "XDEL stream 9-9",
		"XGROUP CREATE stream g 0", "XREADGROUP GROUP g one COUNT 1 STREAMS stream >", "XREADGROUP GROUP g two COUNT 1 STREAMS stream >",
	} {
		require.NotEqual(t, byte('-'), c.Do(strings.Fields(line)...)[0], line)
	}

	stream := []byte(c.Ask("DUMP", "stream").Text)
	id := func(seq byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, seq} }
	at := bytes.LastIndex(stream, id(2))
	require.Positive(t, at, "the second consumer's pending entry")
	copy(stream[at:], id(1))
	shared := c.Do("RESTORE", "shared", "0", string(sealed(stream)))
	require.Equal(t, "-ERR Bad data format\r\n", string(shared), "an entry that is pending for two consumers")

	use := [][]string{
		{"OBJECT", "ENCODING", "k"}, {"MEMORY", "USAGE", "k", "SAMPLES", "0"}, {"GET", "k"}, {"APPEND", "k", "x"}, {"GETBIT", "k", "999999"}, {"PFCOUNT", "k"},
		{"PFADD", "k", "q"}, {"LRANGE", "k", "0", "-1"}, {"LINSERT", "k", "BEFORE", "two", "x"}, {"LPOP", "k", "3"}, {"SMEMBERS", "k"}, {"SADD", "k", "x", "5"},
		{"SPOP", "k", "2"}, {"ZRANGE", "k", "0", "-1", "WITHSCORES"}, {"ZADD", "k", "7", "a"}, {"ZPOPMAX", "k", "2"}, {"HGETALL", "k"}, {"HSET", "k", "f", "x"},
		{"HDEL", "k", "f"}, {"XRANGE", "k", "-", "+"}, {"XINFO", "STREAM", "k", "FULL"}, {"XADD", "k", "*", "f", "v"}, {"XREADGROUP", "GROUP", "g", "one", "STREAMS", "k", "0"},
		{"XAUTOCLAIM", "k", "g", "three", "0", "0"}, {"XACK", "k", "g", "1-1", "1-2"}, {"XGROUP", "DELCONSUMER", "k", "g", "one"}, {"XTRIM", "k", "MAXLEN", "1"},
		{"DUMP", "k"}, {"COPY", "k", "k2", "REPLACE"}, {"DEL", "k"},
	}
	taken := 0
	for _, key := range []string{"string", "bits", "list", "ints", "set", "zset", "hash", "hll", "stream"} {
		payload := []byte(c.Ask("DUMP", key).Text)
		require.Equal(t, payload, sealed(payload), "the test's own checksum")
		for range 300 {
			broken := bytes.Clone(payload)
			for range 1 + dice.IntN(3) {
				broken[dice.IntN(len(broken)-10)] = byte(dice.IntN(256) >> dice.IntN(2))
			}
			if cut := 1 + dice.IntN(len(broken)-10); dice.IntN(4) == 0 {
				broken = append(broken[:cut], payload[len(payload)-10:]...)
			}
			var all []byte
			all = append(all, command("RESTORE", "k", "0", string(sealed(broken)), "REPLACE")...)
			for _, line := range use {
				all = append(all, command(line...)...)
			}
			require.NoError(t, c.Send(all))
			if string(c.Reply()) == "+OK\r\n" {
				taken++
			}
			for _, line := range use {
				_, err := c.Read(patience)
				require.NoError(t, err, "%q after a RESTORE of %q", line, broken)
			}
		}
	}
	require.NotZero(t, taken, "no broken payload was taken, so that nothing of what follows was tried")
	t.Logf("%d of %d broken payloads were taken", taken, 9*300)
	require.True(t, server.Alive())
}

// TestCVE202627623: an empty request, and behind it a line and an array that comes in two parts, cut anywhere. The state that the empty one
// left behind had Valkey abort.
func TestCVE202627623(t *testing.T) {
	for _, flags := range [][]string{nil, {"--requirepass", "secret"}} {
		server := harness.Start(t, flags...)
		const input = "*0\r\nPING\r\n*0\r\n*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n*-1\r\n\r\nPING\r\n*0\r\n*1\r\n$4\r\nPING\r\n"
		want := "+PONG\r\n$5\r\nhello\r\n+PONG\r\n+PONG\r\n"
		if flags != nil {
			want = repeat("-NOAUTH Authentication required.\r\n", 4)
		}
		for cut := range len(input) {
			conn, err := net.Dial("tcp", server.Addr)
			require.NoError(t, err)
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, err = conn.Write([]byte(input[:cut]))
			require.NoError(t, err)
			time.Sleep(time.Millisecond) // so that the parts are read apart
			_, err = conn.Write([]byte(input[cut:]))
			require.NoError(t, err)
			got, closed := readSome(conn, len(want))
			require.Equal(t, want, got, "cut at %d", cut)
			require.False(t, closed)
			require.NoError(t, conn.Close())
		}
		require.True(t, server.Alive())
	}
}

// TestCVE202532023: a sparse HyperLogLog whose runs of zeros add up to more registers than fit into 31 bits. redis-server wrote far
// before its registers.
func TestCVE202532023(t *testing.T) {
	server := harness.Start(t)
	c := harness.Dial(t, server.Addr)
	const runs = 132_072 // of 16,384 zeros each, the longest
	value := "HYLL\x01\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x80" + repeat("\x7f\xff", runs) + repeat("\xff", 64)
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "bad", value)))
	require.Equal(t, ":1\r\n", string(c.Do("PFADD", "good", "a", "b")))
	for _, line := range [][]string{
		{"PFCOUNT", "bad"}, {"PFCOUNT", "good", "bad"}, {"PFADD", "bad", "a"}, {"PFMERGE", "to", "good", "bad"}, {"PFMERGE", "bad", "good"},
	} {
		require.Equal(t, "-INVALIDOBJ Corrupted HLL object detected\r\n", string(c.Do(line...)), line)
	}
	require.Equal(t, value, c.Ask("GET", "bad").Text, "it was changed")
	require.Equal(t, ":2\r\n", string(c.Do("PFCOUNT", "good")))
	require.Equal(t, ":0\r\n", string(c.Do("EXISTS", "to")))
}

// TestCVE202546819: scripts that end in the middle of what the lexer reads: long brackets of any level, comments, escapes. redis-server
// read behind the script's end.
func TestCVE202546819(t *testing.T) {
	server := harness.Start(t)
	c := harness.Dial(t, server.Addr)
	for _, level := range []int{0, 1, 255, 256, 65_535, 65_536, 1<<19 - 100} {
		signs := repeat("=", level)
		for _, script := range []string{
			"return [" + signs, "return [" + signs + "[", "return [" + signs + "[text]" + signs, "--[" + signs, "--[" + signs + "[", "return [" + signs + "[]" + signs + "=]",
			"return [" + signs + "x", "return [" + signs + "[\x00]" + signs + "\x00",
		} {
			reply := c.Do("EVAL", script, "0")
			if script == "--["+signs { // a comment of one line, which may end anywhere
				require.Equal(t, "$-1\r\n", string(reply), "%.40q of level %d", script, level)
				continue
			}
			require.Equal(t, byte('-'), reply[0], "%.40q of level %d answers %.80q", script, level, reply)
		}
		require.Equal(t, "inside", c.Ask("EVAL", "return ["+signs+"[inside]"+signs+"]", "0").Text, "level %d", level)
	}
	for _, script := range []string{
		"return '", "return \"\\", "return '\\", "return '\\1", "return '\\12", "return '\\999'", "return '\\x", "return '\\\r", "return 0x", "return 1e", "return 1e+", "return ..",
		"return ~", "return '\x00", "\x00", "return \xff", "#", "#!", "#!lua", "\x1bLua", "return 1" + repeat("0", 100_000) + "e", "return [", "-", "--", "--[", "return [[\\", "return a.",
	} {
		reply := c.Do("EVAL", script, "0")
		require.Contains(t, []byte("-$"), reply[0], "%.40q answers %.80q", script, reply)
		require.NotContains(t, string(reply[1:]), "\n-", "%.40q", script)
	}
	require.Equal(t, ":1\r\n", string(c.Do("EVAL", "return 1", "0")))
}

// TestCVE202567733: line ends and NULs in the errors and states of a script, with which one reply of Valkey became several, of which the next
// command's client got the rest.
func TestCVE202567733(t *testing.T) {
	server := harness.Start(t)
	const load = "#!lua name=l\nredis.register_function('f', function(keys, args) %s end)"
	for _, protocol := range []string{"2", "3"} {
		c := harness.Dial(t, server.Addr)
		c.Do("HELLO", protocol)
		for _, inject := range []string{"a\r\n+OK\r\n$5\r\nwrong", "a\x00b\r\n:7", "\r\n", "\x00\r\n+X", "a\n+X", "a\r+X", "\x00", "-ERR a\r\n-b"} {
			text := "'"
			for _, b := range []byte(inject) {
				text += fmt.Sprintf("\\%03d", b)
			}
			text += "'"
			for _, form := range []string{
				"return redis.error_reply(%s)", "return {err = %s}", "error(%s)", "error({err = %s})", "return redis.status_reply(%s)", "return {ok = %s}",
				"return {{err = %s}, {ok = %s}, 1}", "return redis.call(%s)", "return redis.pcall(%s)", "return redis.call('SET', %s)", "return redis.pcall('CONFIG', %s)",
				"local e = {err = %s}; setmetatable(e, {}); return e", "redis.setresp(3); return {big_number = %s}", "redis.setresp(3); return {verbatim_string = {format = %s, string = %s}}",
				"redis.setresp(3); return {map = {[%s] = %s}}", "local ok, e = pcall(error, %s); return {err = tostring(e)}", "redis.log(redis.LOG_WARNING, %s); return redis.error_reply(%s)",
				"return _G[%s]", "return loadstring(%s)()",
			} {
				script := strings.ReplaceAll(form, "%s", text)
				require.Equal(t, "+OK\r\n", string(c.Do("MULTI")))
				require.Equal(t, "+QUEUED\r\n", string(c.Do("EVAL", script, "0")))
				for _, line := range [][]string{
					{"EXEC"}, {"FUNCTION", "LOAD", "REPLACE", fmt.Sprintf(load, script)}, {"FCALL", "f", "0"}, {"EVAL", script, "0"},
				} {
					_ = c.Do(line...) // one reply, or else its rest would be taken for the next one
					require.Equal(t, "+PONG\r\n", string(c.Do("PING")), "%q, %q in RESP%s", line[0], script, protocol)
				}
			}
		}
	}
}
