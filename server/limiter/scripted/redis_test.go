package scripted_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server/limiter"
	"headgate/server/limiter/scripted"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// redis is a connection to a redis-server.
type redis struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	last []byte // the reply to the last script
}

// startRedis starts a redis-server that knows the scripts.
func startRedis(t *testing.T) *redis {
	t.Helper()
	s := reference.Start(t, "--loglevel", "warning")
	var socket string
	for i, flag := range s.Flags {
		if flag == "--unixsocket" {
			socket = s.Flags[i+1]
		}
	}
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Hour)))
	r := &redis{t: t, conn: conn, in: bufio.NewReader(conn)}
	for _, script := range scripted.Scripts() {
		require.Equal(t, "$40\r\n"+script.SHA()+"\r\n", r.ask("SCRIPT", "LOAD", script.Text()), script.Name)
	}
	return r
}

// send sends a request and returns the whole reply.
func (r *redis) send(request []byte) []byte {
	_, err := r.conn.Write(request)
	require.NoError(r.t, err)
	r.last = r.reply(nil)
	return r.last
}

// reply reads one reply and appends it.
func (r *redis) reply(dst []byte) []byte {
	text, err := r.in.ReadBytes('\n')
	require.NoError(r.t, err)
	dst = append(dst, text...)
	n, _ := strconv.Atoi(string(bytes.TrimSpace(text[1:])))
	switch text[0] {
	case '$':
		if n >= 0 {
			bulk := make([]byte, n+2)
			_, err := io.ReadFull(r.in, bulk)
			require.NoError(r.t, err)
			dst = append(dst, bulk...)
		}
	case '*':
		for range n {
			dst = r.reply(dst)
		}
	}
	return dst
}

func (r *redis) ask(words ...string) string {
	_, err := r.conn.Write(servertest.EncodeCommand(words...))
	require.NoError(r.t, err)
	return string(r.reply(nil))
}

// clock is the time at the beginning of the last script's reply, in ns.
func (r *redis) clock() int64 {
	words := strings.Split(string(r.last), "\r\n")
	require.Greater(r.t, len(words), 4, "%q", r.last)
	return parse(r.t, words[2])*1e9 + parse(r.t, words[4])*1000
}

// TestOnRedis makes calls of all families on redis-server. A native server at which the same state was written makes each of them at the
// time that the script has told, and replies and what is kept are compared.
func TestOnRedis(t *testing.T) {
	w, r, there := newWorld(t), random(t), startRedis(t)
	w.send = there.send
	families := map[string]func(ms int64) []string{
		"rate":   func(int64) []string { return rateCall(r) },
		"increx": func(int64) []string { return increxCall(r) },
		"fixed": func(int64) []string {
			return append(line("RL.FIXED k 6 %s", pick(r, "10ms", "1s", "1s ALIGNED", "MINUTE", "DAY TZ Asia/Tokyo")), costOf(r, 6)...)
		},
		"sliding": func(int64) []string {
			return append(line("RL.SLIDING k 9 %s", pick(r, "20ms", "100ms SLICES 3")), costOf(r, 9)...)
		},
		"log": func(int64) []string {
			if r.IntN(3) == 0 {
				return line("RL.LOG k 9 10ms MEMBER %s COST %d", pick(r, "a", "b", "c"), pick(r, 1, 1, 0, -1))
			}
			return append(line("RL.LOG k 9 10ms"), costOf(r, 9)...)
		},
		"lease": func(int64) []string {
			return pick(r, line("RL.ACQUIRE k 3 %dms MEMBER %s", 1+r.IntN(20), pick(r, "a", "b", "c", "d")), line("RL.RENEW k %s 9ms", pick(r, "a", "b")), line("RL.RELEASE k %s", pick(r, "a", "b")), line("RL.ACQUIRE k 3 5ms"))
		},
	}
	compared := 0
	for name, call := range families {
		there.ask("DEL", "k")
		for range *calls / 4 {
			ms := time.Now().UnixMilli()
			w.q.NowMs = ms
			if name == "rate" && r.IntN(2) == 0 {
				there.ask("SET", "k", strconv.FormatInt(ms*1e6+pick(r, int64(0), 1e6, 2e6, 2e9, 1<<40, 1<<62, -1e9)+r.Int64N(3e6), 10))
			}
			kept := copyState(there)
			words := call(ms)
			got := w.Ask(words...)
			if w.trips != 1 { // the time of the decision is not in the last reply
				continue
			}
			ns := there.clock()
			if last := len(kept) - 1; last >= 0 && kept[last][0] == "PEXPIREAT" && parse(t, kept[last][2]) <= ns/1e6 {
				continue // at home the key is gone, but for a script of redis-server, whose keys do not expire while it runs, it may be there
			}
			w.homeClock.Ns = ns
			w.home.Ask("DEL", "k")
			for _, command := range kept {
				w.home.Ask(command...)
			}
			home := w.home.Ask(words...)
			require.Equal(t, drawnID.ReplaceAllString(home, "id"), drawnID.ReplaceAllString(got, "id"), "%q at %d after %q: %q", words, ns, kept, there.last)
			// Either may have expired by now, and redis-server keeps what expires up to the end of that millisecond.
			if now, still := state(w.home.Ask, "k"), state(there.ask, "k"); now != "none" && still != "none" && !strings.HasSuffix(still, ":-2\r\n") {
				require.Equal(t, now, still, "%q at %d after %q", words, ns, kept)
			}
			compared++
		}
	}
	require.Greater(t, compared, *calls/2)
	require.Contains(t, there.ask("INFO", "errorstats"), "# Errorstats\r\n\r\n", "no command of a script fails")
}

// copyState returns the commands that make the key k what it is.
func copyState(r *redis) (list [][]string) {
	at := strings.Trim(r.ask("PEXPIRETIME", "k"), ":\r\n")
	kind := strings.Trim(r.ask("TYPE", "k"), "+\r\n")
	read := map[string][]string{"string": {"GET", "k"}, "hash": {"HGETALL", "k"}, "zset": {"ZRANGE", "k", "0", "-1", "WITHSCORES"}}[kind]
	if read == nil {
		return nil
	}
	var values []string
	for i, word := range strings.Split(r.ask(read...), "\r\n") {
		if kind == "string" && i == 1 || kind != "string" && i > 0 && i%2 == 0 {
			values = append(values, word)
		}
	}
	if at != strings.Trim(r.ask("PEXPIRETIME", "k"), ":\r\n") { // it has expired meanwhile
		return nil
	}
	switch {
	case kind == "string":
		list = append(list, []string{"SET", "k", values[0]})
	case kind == "hash":
		list = append(list, append([]string{"HSET", "k"}, values...))
	default:
		for i := 0; i < len(values); i += 2 {
			list = append(list, []string{"ZADD", "k", values[i+1], values[i]})
		}
	}
	if at != "-1" {
		list = append(list, []string{"PEXPIREAT", "k", at})
	}
	return list
}

// TestTakeOnRedis: pairs of all algorithms on redis-server agree with the decision here, which Ask checks; so does what is left to it.
func TestTakeOnRedis(t *testing.T) {
	w, r, there := newTakeWorld(t), random(t), startRedis(t)
	w.send = there.send
	for range *calls / 4 {
		w.take.NowMs = time.Now().UnixMilli()
		words, keys := takeCall(r)
		if r.IntN(10) == 0 {
			there.ask("SET", keys[0], "1000000000000000000")
		}
		reply := w.Ask(words...)
		require.True(t, reply[0] == '*' || strings.HasPrefix(reply, "-WRONGTYPE") || strings.HasPrefix(reply, "-"+string(limiter.ErrForeign)), "%q: %q", words, reply)
		if reply[0] == '-' {
			there.ask("DEL", keys[0])
		}
		if request := w.take.AskGiveBack(nil); len(request) > 0 && r.IntN(3) == 0 {
			require.NoError(t, w.take.AnswerGiveBack(there.send(request)), "%q", request)
		}
	}
}

// TestErrorsOfRedis: errors of the commands that scripts call reach the client as if it had called them.
func TestErrorsOfRedis(t *testing.T) {
	w, there := newWorld(t), startRedis(t)
	w.send = there.send
	there.ask("LPUSH", "list", "x")
	for _, call := range everyCall {
		require.Equal(t, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", w.Ask(line(call, "list")...), call)
	}
	there.ask("CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", w.Ask("CL.THROTTLE", "k", "15", "30", "60"))
	require.Equal(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", w.Ask("RL.SLIDING", "k", "15", "30s"))
	require.Equal(t, "*5\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:0\r\n", w.Ask("CL.THROTTLE", "k", "-1", "30", "60"), "who is limited is told so")
	there.ask("CONFIG", "SET", "maxmemory", "0")
	there.ask("SCRIPT", "FLUSH")
	require.Equal(t, "-NOSCRIPT No matching script. Please use EVAL.\r\n", w.Ask("CL.THROTTLE", "k", "15", "30", "60"))
	w.q.Inline = true
	require.Equal(t, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", w.Ask("CL.THROTTLE", "k", "15", "30", "60"))
	require.Equal(t, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:30000\r\n", w.Ask("RL.FIXED", "f", "16", "30s"))
}

// called finds the commands that a script calls, at once or by a plan.
var called = regexp.MustCompile(`(?:call\(|\{)'([A-Z]+)', ?key|call\('(TIME)'\)`)

// neededCommands returns the commands that a user of the server needs to be allowed, in the order of their names: those that call and load scripts,
// and those that scripts call. Whatever a key is named, a script may be called for it.
func neededCommands() []string {
	list := []string{"EVAL", "EVALSHA", "SCRIPT|LOAD", "GET", "DEL"}
	for _, s := range scripted.Scripts() {
		for _, match := range called.FindAllStringSubmatch(s.Text(), -1) {
			list = append(list, match[1]+match[2])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestCommands: a user who may do no more than neededCommands says can have every limiter asked, and is refused what is not among them.
func TestCommands(t *testing.T) {
	w, r, there := newTakeWorld(t), random(t), startRedis(t)
	w.send = there.send
	rules := line("ACL SETUSER gateway on nopass ~* -@all")
	for _, name := range neededCommands() {
		rules = append(rules, "+"+strings.ToLower(name))
	}
	require.Equal(t, "+OK\r\n", there.ask(rules...))
	require.Equal(t, "+OK\r\n", there.ask("AUTH", "gateway", "x"))
	foreign := [][]string{line("SET k 1000000000000000000"), line("SET k x"), line("DEL k"), line("HSET k 1 2"), line("HSET k 1 x"), line("ZADD k 1.5 x")}
	for range *calls / 6 {
		w.q.NowMs = time.Now().UnixMilli()
		w.take.NowMs = w.q.NowMs
		there.ask(foreign[r.IntN(len(foreign))]...)
		calls := [][]string{rateCall(r), increxCall(r), append(line("RL.FIXED k 6 %s", pick(r, "10ms", "HOUR")), costOf(r, 6)...), append(line("RL.SLIDING k 9 20ms"), costOf(r, 9)...), append(line("RL.LOG k 9 10ms"), costOf(r, 9)...)}
		for _, call := range append(everyCall, "RL.LOG %s 9 10ms MEMBER b COST -1") {
			calls = append(calls, line(call, "k"))
		}
		words, _ := takeCall(r)
		for _, call := range append(calls, words) {
			if reply := w.Ask(call...); reply[0] == '-' { // it speaks of the state or of the numbers, and of no rights
				require.Regexp(t, "^-(WRONGTYPE Operation|ERR the key holds|ERR value is not|ERR LBOUND)", reply, "%q", call)
			}
		}
		if request := w.take.AskGiveBack(nil); len(request) > 0 {
			require.NoError(t, w.take.AnswerGiveBack(there.send(request)))
		}
	}
	require.Contains(t, there.ask("KEYS", "*"), "-NOPERM")
}
