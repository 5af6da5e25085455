package gateway_test

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/reference"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// overRedis starts a redis-server and a gateway to it.
func overRedis(t testing.TB, edits ...func(*config.Config)) (redis *reference.Server, c *client) {
	redis = reference.Start(t)
	_, c = startGateway(t, "redis+unix://"+socketOf(redis), edits...)
	return redis, c
}

// sameAnswer compares two answers of limiters. What is left of a time may differ by what the test itself takes.
func sameAnswer(t *testing.T, want, got, call string) {
	t.Helper()
	const apart = 20_000 // ms
	ws, gs := strings.Fields(strings.Trim(want, "[]")), strings.Fields(strings.Trim(got, "[]"))
	require.Len(t, gs, len(ws), "%s: %s, %s", call, want, got)
	for i := range ws {
		w, err1 := strconv.ParseInt(strings.Trim(ws[i], "[]"), 10, 64)
		g, err2 := strconv.ParseInt(strings.Trim(gs[i], "[]"), 10, 64)
		switch {
		case err1 == nil && err2 == nil && w > 1000 && g > 1000:
			require.InDelta(t, w, g, apart, "%s: %s, %s", call, want, got)
		case len(ws[i]) == 32:
			require.Len(t, gs[i], 32, call)
		default:
			require.Equal(t, ws[i], gs[i], "%s: %s, %s", call, want, got)
		}
	}
}

// TestLimitersAnswerAsAtHome: a gateway answers what a native server does, errors included.
func TestLimitersAnswerAsAtHome(t *testing.T) {
	_, gate := overRedis(t)
	_, addr := startServer(t)
	home := dial(t, addr)
	for line := range strings.Lines(`
		CL.THROTTLE a 2 1 3600
		CL.THROTTLE a 2 1 3600
		CL.THROTTLE a 2 1 3600
		CL.THROTTLE a 2 1 3600
		CL.THROTTLE a 2 1 3600 -1
		CL.THROTTLE a 2 1 3600 0
		RL.THROTTLE a 2 1 3600
		CL.THROTTLE a 2 1
		CL.THROTTLE a 2 x 3600
		CL.THROTTLE a 2 0 3600
		CL.THROTTLE a 9223372036854775807 1 3600
		CL.THROTTLE rl:policies 2 1 3600
		GCRA b 2 1 3600
		GCRA b 2 1 3600 TOKENS 5
		GCRA b 2 1 x
		RL.GCRA c 3 1 1h
		RL.GCRA c 3 1 1h COST 3
		RL.GCRA c 3 1 1h PEEK
		RL.GCRA c -1 1 1h
		RL.GCRA c 3 1
		RL.BUCKET d 3 1 1h COST 2
		RL.QUEUE e 3 1 1h
		RL.QUEUE e 3 1 1h
		RL.QUEUE e 3 1 1h COST 7
		RL.FIXED f 2 1h
		RL.FIXED f 2 1h
		RL.FIXED f 2 1h
		RL.FIXED f 2 1h PEEK
		RL.FIXED f2 2 day TZ UTC
		RL.SLIDING g 2 1h
		RL.SLIDING g 2 1h COST 2
		RL.SLIDING g 2 1h COST -1
		RL.LOG h 2 1h
		RL.LOG h 2 1h MEMBER x
		RL.LOG h 2 1h MEMBER x
		RL.LOG h 2 1h MEMBER y
		RL.ACQUIRE i 2 1h
		RL.ACQUIRE i 2 1h MEMBER x
		RL.ACQUIRE i 2 1h MEMBER y
		RL.RENEW i x 2h
		RL.RENEW i nobody 2h
		RL.RENEW i x 2q
		RL.RELEASE i x
		RL.RELEASE i x
		INCREX n
		INCREX n BYINT 5 UBOUND 4
		INCREX n BYINT 5 UBOUND 4 SATURATE EX 3600 ENX
		INCREX n BYFLOAT 0.25
		INCREX n
		INCREX n BYINT x
		INCREX n LBOUND 2 UBOUND 1
		PTTL n
		GET n
		SET text hello
		INCREX text
		CL.THROTTLE text 2 1 3600
		RL.FIXED text 2 1h
		RL.LOG text 2 1h
		RL.RESET text
		RL.RESET a b c nosuch
		RL.POLICY SET p GCRA 3 1 1h
		RL.POLICY SET q FIXED 2 1h FAILURE OPEN
		RL.POLICY SET q NOSUCH 2
		RL.POLICY GET q
		RL.POLICY LIST
		RL.POLICY DEL nosuch
		RL.TAKE 2 p j q k
		RL.TAKE 2 p j q k COST 2
		RL.TAKE 2 p j q k COSTS 1 2
		RL.TAKE 2 p j q k PEEK
		RL.TAKE 1 nosuch j
		RL.TAKE 2 p j p j
		RL.TAKE 0 p j
		RL.POLICY DEL q
		RL.TAKE 1 q k
		INCREX x
		INCREX x BYINT 5 UBOUND 3
		INCREX x BYINT 5 UBOUND 3 SATURATE
		INCREX x BYINT 5 EX 3600
		TTL x
		INCREX x ENX EX 7200
		TTL x
		INCREX x PERSIST
		TTL x
		INCREX x BYFLOAT 1.5
		INCREX x BYINT 1
		INCREX x BYFLOAT 1 EXAT 1
		EXISTS x
		INCREX text2
		INCREX x LBOUND 5 UBOUND 1
		INCREX
		LPUSH list a
		INCREX list
		KEYS nosuch
	`) {
		if line = strings.TrimSpace(line); line != "" {
			sameAnswer(t, home.ask(line), gate.ask(line), line)
		}
	}
}

// TestRepliesPassAsTheyAre: what goes to the upstream is answered with its bytes, in the client's version of the protocol.
func TestRepliesPassAsTheyAre(t *testing.T) {
	redis := reference.Start(t, "--port", strconv.Itoa(freePort(t)))
	port := redis.Flags[len(redis.Flags)-1]
	_, gate := startGateway(t, "redis://127.0.0.1:"+port)
	calls := []string{
		"FLUSHALL", "HSET h a 1 b 2", "HGETALL h", "GET nosuch", "SET s v", "GET s", "SADD set 1", "SMEMBERS set", "ZADD z 1.5 m", "ZSCORE z m",
		"ZRANGE z 0 -1 WITHSCORES", "LPOP nosuch", "INCR s", "LPUSH s x", "MGET s nosuch h", "OBJECT ENCODING s", "XADD x 1-1 f v", "XRANGE x - +",
		"XREAD COUNT 1 STREAMS x 0", "DBSIZE", "EXISTS s h", "MSET a 1 b 2", "SORT set", "BITCOUNT s", "PFADD p a", "MEMORY USAGE s", "SCAN 0 MATCH h",
		"XINFO STREAM x", "SET long " + strings.Repeat("x", 10_000), "GET long",
	}
	for _, version := range []string{"2", "3"} {
		var replies [2][]string
		for i, c := range []*client{gate, dial(t, "127.0.0.1:"+port)} {
			c.ask("HELLO " + version)
			c.send(calls...)
			for range calls {
				replies[i] = append(replies[i], c.raw())
			}
		}
		for i, call := range calls {
			require.Equal(t, replies[1][i], replies[0][i], "%.40s in RESP%s", call, version)
		}
	}
}

// TestPipelinesKeepTheirOrder: what passes, what is limited, what is answered here and what is refused are answered in their order.
func TestPipelinesKeepTheirOrder(t *testing.T) {
	_, gate := overRedis(t)
	var lines, want []string
	add := func(line, reply string) { lines, want = append(lines, line), append(want, reply) }
	for i := range 300 {
		n := strconv.Itoa(i)
		add("SET k"+n+" "+n, "OK")
		add("GET k"+n, n)
		add("CL.THROTTLE t"+n+" 5 1 36000", "[0 6 5 -1 36000]")
		switch i % 10 {
		case 3:
			add("PING", "PONG")
		case 5:
			add("GET", "ERR wrong number of arguments for 'get' command")
			add("NOSUCH", "ERR unknown command 'NOSUCH', with args beginning with: ")
		case 7:
			add("MULTI", "OK")
			add("INCR n"+n, "QUEUED")
			add("EXEC", "[1]")
		case 9:
			add("BLPOP x 0", "ERR 'BLPOP' is not served while upstream is set")
		}
	}
	gate.send(lines...)
	for i := range lines {
		require.Equal(t, strings.TrimSpace(want[i]), gate.read(), lines[i])
	}
}

// TestProtocolsKeepTheirOrder: what a client asks of limiters runs in order with its other commands, whichever protocol it speaks.
func TestProtocolsKeepTheirOrder(t *testing.T) {
	_, gate := overRedis(t)
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		gate.ask(hello)
		for range 200 {
			gate.send("RL.GCRA k 5 1 1h", "DEL k", "EXISTS k", "RL.GCRA k 5 1 1h", "DEL k")
			for _, want := range []string{"[0 5 4 -1 3600000]", "1", "0", "[0 5 4 -1 3600000]", "1"} {
				require.Equal(t, want, gate.read(), hello)
			}
		}
	}
}

// TestNothingFallsToTheKeyspaceHere: no command touches the keys of a gateway's own process.
func TestNothingFallsToTheKeyspaceHere(t *testing.T) {
	redis := reference.Start(t)
	srv, gate := startGateway(t, "redis+unix://"+socketOf(redis))
	held := func() (n int) {
		srv.Lock()
		defer srv.Unlock()
		for i := range srv.Keys.Databases() {
			n += srv.Keys.DB(i).Len()
		}
		return n
	}
	changes := func() uint64 {
		srv.Lock()
		defer srv.Unlock()
		return srv.Keys.Changes()
	}
	before := changes()
	var calls []string
	for _, cmd := range servertest.DeclaredCommands().All {
		if cmd.Handler == nil || cmd.Flags&(command.NoAuth|command.RunsInMulti) != 0 || strings.Contains(cmd.Name, "shutdown") || cmd.Name == "monitor" || cmd.Name == "kill" || cmd.Name == "reply" || cmd.Name == "pause" {
			continue
		}
		calls = append(calls, strings.Join(servertest.AnyCall(cmd), " "))
	}
	calls = append(calls, "SET a 1", "RPUSH l 1", "RL.GCRA k 5 5 1s", "RL.ACQUIRE k2 5 1s", "EVAL return(redis.call('set',KEYS[1],1)) 1 k3", "ZADD z 1 a")
	for _, call := range calls {
		gate.ask(call)
	}
	require.Zero(t, held())
	require.Equal(t, before, changes())
	require.Equal(t, "1", gate.ask("EXISTS z"))
}

// TestWhatIsNotServed is refused, and says so.
func TestWhatIsNotServed(t *testing.T) {
	_, gate := overRedis(t)
	for _, line := range []string{
		"WATCH a", "BLPOP a 0", "BLMOVE a b LEFT LEFT 0", "BZPOPMIN a 0", "SUBSCRIBE a", "PSUBSCRIBE a", "PUBLISH a b", "XREAD BLOCK 0 STREAMS a 0", "WAIT 0 0",
		"SAVE", "BGSAVE", "BGREWRITEAOF",
	} {
		require.Equal(t, "ERR '"+strings.Fields(line)[0]+"' is not served while upstream is set", gate.ask(line))
	}
	for _, line := range []string{"RL.RESERVE 1 p k TTL 1s", "RL.SETTLE a ACTUAL 1", "RL.CANCEL a", "RL.RESERVATIONS"} {
		require.Equal(t, "ERR '"+strings.Fields(line)[0]+"' is not served while the upstream is a Redis", gate.ask(line), "a headgate serves it")
	}
	require.Equal(t, "ERR 'CLIENT TRACKING' is not served while upstream is set", gate.ask("CLIENT TRACKING ON"))
	for _, waits := range []string{"RL.GCRA k 1 1 1s WAIT 1s", "RL.LOG k 1 1s MEMBER WAIT WAIT 1s", "RL.TAKE 1 WAIT WAIT WAIT 1s"} {
		require.Equal(t, "ERR 'WAIT' is not served while the upstream is a Redis", gate.ask(waits), "what shares the connection would wait, too")
	}
	require.Equal(t, "[0 1 0 -1 1000]", gate.ask("RL.LOG waitless 1 1s MEMBER WAIT"))
	require.Equal(t, "1", gate.ask("DEL waitless"))
	require.Equal(t, "ERR WAIT must not be longer than 1h", gate.ask("RL.GCRA k 1 1 1s WAIT 2h"))
	require.Equal(t, "ERR 'SCRIPT DEBUG' is not served while upstream is set", gate.ask("SCRIPT DEBUG YES"), "all clients share the connection")
	require.Equal(t, "nil", gate.ask("XREAD COUNT 1 STREAMS block 0"), "a key, and no option")
	for _, named := range []string{"STREAMS c", "g STREAMS", "streams streams"} {
		require.Equal(t, "ERR 'XREADGROUP' is not served while upstream is set", gate.ask("XREADGROUP GROUP "+named+" BLOCK 0 STREAMS s >"), "names, and no options")
	}
	require.Contains(t, gate.ask("XREADGROUP GROUP BLOCK c STREAMS s >"), "NOGROUP")
	require.Equal(t, "ERR syntax error", gate.ask("XREADGROUP GROUP g c LATER 1 STREAMS s >"), "what is not known here may hide keys")
	gate.converse(`
		SELECT 1        | OK
		SET in1 x       | OK
		SELECT 0        | OK
		GET in1         | nil
		DBSIZE          | 0
		SELECT 1        | OK
		GET in1         | x
		UNWATCH         | OK
		DISCARD         | ERR DISCARD without MULTI
		EXEC            | ERR EXEC without MULTI
	`)
}

// TestMemoryHereDoesNotMatter to what the upstream keeps.
func TestMemoryHereDoesNotMatter(t *testing.T) {
	_, gate := overRedis(t)
	gate.converse(`
		CONFIG SET maxmemory 1        | OK
		SET k v                       | OK
		LPUSH l a                     | 1
		CL.THROTTLE t 1 1 36000       | [0 2 1 -1 36000]
		INCREX n                      | [1 1]
		RL.POLICY SET p FIXED 1 10h   | OK
		RL.TAKE 1 p t2                | [0 -1 [[0 1 0 -1 36000000]]]
	`)
}

// TestTransactions go as one write, with limiters in them.
func TestTransactions(t *testing.T) {
	redis, gate := overRedis(t)
	gate.converse(`
		MULTI                               | OK
		SET a 1                             | QUEUED
		CL.THROTTLE t 1 1 36000             | QUEUED
		RL.FIXED f 1 10h                    | QUEUED
		RL.FIXED f -1 10h                   | QUEUED
		INCR a                              | QUEUED
		LPUSH a x                           | QUEUED
		RL.FIXED f x 10h                    | QUEUED
		CL.THROTTLE t 1 1 36000             | QUEUED
		CL.THROTTLE t 1 1 36000             | QUEUED
	`)
	got := gate.ask("EXEC")
	require.Regexp(t, `^\[OK \[0 2 1 -1 36000\] \[0 1 0 -1 36000000\] \[0 -1 -1 -1 0\] 2 WRONGTYPE .* ERR limit must be -1 or >= 0, not 'x' \[0 2 0 -1 72000\] \[1 2 0 36000 72000\]\]$`, got)
	text, err := redis.Text("GET", "a")
	require.NoError(t, err)
	require.Equal(t, "2", text)
	gate.converse(`
		MULTI     | OK
		GET       | ERR wrong number of arguments for 'get' command
		SET b 1   | QUEUED
		EXEC      | EXECABORT Transaction discarded because of previous errors.
		MULTI     | OK
		EXEC      | []
		MULTI     | OK
		SET b 1   | QUEUED
		DISCARD   | OK
		MULTI     | OK
		SET b 1   | QUEUED
		PING      | QUEUED
		EXEC      | EXECABORT Transaction discarded because of: 'ping' is not served within MULTI while upstream is set
		EXISTS b  | 0
		MULTI     | OK
		RL.FIXED f x 10h | QUEUED
		EXEC      | [ERR limit must be -1 or >= 0, not 'x']
	`)
	// A script's name that the upstream does not know yet does no harm within MULTI.
	_, err = redis.Do("SCRIPT", "FLUSH")
	require.NoError(t, err)
	gate.converse(`
		MULTI                     | OK
		CL.THROTTLE u 1 1 36000   | QUEUED
		EXEC                      | [[0 2 1 -1 36000]]
		CL.THROTTLE u 1 1 36000   | [0 2 0 -1 72000]
	`)
}

// TestRightsHoldBeforeTheUpstream: a gateway's user reaches upstream no more than its own rights allow.
func TestRightsHoldBeforeTheUpstream(t *testing.T) {
	redis := reference.Start(t)
	_, admin := startGateway(t, "redis+unix://"+socketOf(redis), func(cfg *config.Config) {
		cfg.UpstreamUserMap = []config.Translation{{From: "mapped", To: "there"}}
		cfg.UpstreamPassword = ""
	})
	_, err := redis.Do("ACL", "SETUSER", "there", "on", "nopass", "~m:*", "+@all")
	require.NoError(t, err)
	admin.converse(`
		ACL SETUSER u on nopass ~a:* +@all              | OK
		ACL SETUSER r on nopass ~* +@read               | OK
		ACL SETUSER all on nopass ~* +@all              | OK
		ACL SETUSER mapped on nopass ~m:* +@all         | OK
	`)
	const deniedKey = "NOPERM this user has no permissions to access one of the keys used as arguments"
	const noScripts = "NOPERM scripts through a gateway need ~* and +@all"
	u := dial(t, admin.addr)
	u.converse(`
		AUTH u x                                  | OK
		SET a:1 1                                 | OK
		SET b:1 1                                 | ` + deniedKey + `
		CL.THROTTLE b:1 1 1 1                     | ` + deniedKey + `
		MGET a:1 b:1                              | ` + deniedKey + `
		SORT a:2 BY b:*                           | ERR BY option of SORT denied due to insufficient ACL permissions.
		SORT a:2 GET b:*                          | ERR GET option of SORT denied due to insufficient ACL permissions.
		SORT a:2                                  | []
		EVAL return(redis.call('get','b:1')) 0    | ` + noScripts + `
		EVAL return(1) 1 a:1                      | ` + noScripts + `
		FCALL f 0                                 | ` + noScripts + `
		SCRIPT FLUSH                              | ` + noScripts + `
		FUNCTION FLUSH                            | ` + noScripts + `
		MULTI                                     | OK
		EVAL return(redis.call('get','b:1')) 0    | QUEUED
		GET a:1                                   | QUEUED
		EXEC                                      | [` + noScripts + ` 1]
	`)
	all := dial(t, admin.addr)
	all.converse(`
		AUTH all x                                | OK
		EVAL return(redis.call('get',KEYS[1])) 1 a:1  | 1
	`)
	r := dial(t, admin.addr)
	require.Equal(t, "OK", r.ask("AUTH r x"))
	require.Equal(t, "NOPERM this user has no permissions to run the 'cl.throttle' command", r.ask("CL.THROTTLE a 1 1 1"))
	mapped := dial(t, admin.addr)
	require.Equal(t, "OK", mapped.ask("AUTH mapped x"))
	require.Equal(t, "OK", mapped.ask("EVAL return(redis.call('set',KEYS[1],1)) 1 m:1"))
	require.Contains(t, mapped.ask("EVAL return(redis.call('get','a:1')) 0"), "can't access", "the upstream judges its own user")
}

// TestOneSlotOfACluster: keys of several slots are refused, and so is what a cluster cannot do.
func TestOneSlotOfACluster(t *testing.T) {
	url := startCluster(t)
	_, gate := startGateway(t, url)
	gate.converse(`
		SET {a}1 x                    | OK
		MSET {a}1 1 {a}2 2            | OK
		MGET {a}1 {a}2                | [1 2]
		MSET a 1 b 2                  | CROSSSLOT Keys in request don't hash to the same slot
		RL.RESET a b                  | CROSSSLOT Keys in request don't hash to the same slot
		RL.POLICY SET p FIXED 2 1h    | OK
		RL.POLICY SET q FIXED 1 1h    | OK
		RL.TAKE 2 p {t}1 p {t}2       | [0 -1 [[0 2 1 -1 3600000] [0 2 1 -1 3600000]]]
		RL.TAKE 2 p a p b             | CROSSSLOT Keys in request don't hash to the same slot
		SELECT 1                      | ERR 'SELECT' is not served while upstream is a cluster, which has database 0 only
		SELECT 0                      | OK
		DBSIZE                        | ERR 'DBSIZE' is not served while upstream is a cluster
		EVAL return(1) 0              | ERR a script without keys is not served while upstream is a cluster
		EVAL return(1) 1x 0           | ERR value is not an integer or out of range
		EVALSHA x 1x 0                | ERR value is not an integer or out of range
		FCALL f 1x 0                  | ERR Bad number of keys provided
		EVAL return(1) 4294967297 0   | ERR Number of keys can't be greater than number of args
		EVAL return(1) -1 0           | ERR Number of keys can't be negative
		EVAL return(1) 1 a            | 1
		MULTI                         | OK
		SET {a}1 x                    | QUEUED
		RL.FIXED {a}f 5 10h           | QUEUED
		EXEC                          | [OK [0 5 4 -1 36000000]]
		MULTI                         | OK
		SET a x                       | QUEUED
		SET b x                       | QUEUED
		EXEC                          | CROSSSLOT Keys in request don't hash to the same slot
		CONFIG SET upstream-take compensate | OK
		RL.TAKE 2 p a q c PEEK        | [0 -1 [[0 2 2 -1 0] [0 1 1 -1 0]]]
	`)
	short := func(reply string) string { // without times
		fields := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(reply))
		return strings.Join([]string{fields[0], fields[1], fields[2], fields[3], fields[4], fields[7], fields[8], fields[9]}, " ")
	}
	require.Equal(t, "0 -1 0 2 1 0 1 0", short(gate.ask("RL.TAKE 2 p a q c")))
	require.Equal(t, "1 1 0 2 1 1 1 0", short(gate.ask("RL.TAKE 2 p a q c")), "and what the first was charged is given back")
	require.Eventually(t, func() bool { return strings.HasPrefix(gate.ask("RL.FIXED a 2 1h PEEK"), "[0 2 1 ") }, answerTime, 10*time.Millisecond)
}

// TestRefundsWaitForTheOthers: what an RL.TAKE of several slots gives back, by a negative cost, is given back only if all others pass, and its
// answers are those of a native server.
func TestRefundsWaitForTheOthers(t *testing.T) {
	_, addr := startServer(t)
	native := dial(t, addr)
	_, gate := startGateway(t, startCluster(t), func(cfg *config.Config) { cfg.UpstreamTake = config.TakeCompensate })
	untimed := func(reply string) string { // without retry_after and reset
		return regexp.MustCompile(`(\[\d+ \d+ \d+) -?\d+ \d+\]`).ReplaceAllString(reply, "$1]")
	}
	both := func(line string) (reply string) {
		reply = untimed(native.ask(line))
		require.Equal(t, reply, untimed(gate.ask(line)), line)
		return reply
	}
	for i, limit := range []string{"GCRA %d 1 1h", "BUCKET %d 1 1h", "QUEUE %d 1 1h", "FIXED %d 10h", "SLIDING %d 10h", "LOG %d 10h"} {
		wide, narrow := fmt.Sprintf("w%d", i), fmt.Sprintf("n%d", i)
		require.Equal(t, "OK", both("RL.POLICY SET "+wide+" "+fmt.Sprintf(limit, 100)))
		require.Equal(t, "OK", both("RL.POLICY SET "+narrow+" "+fmt.Sprintf(limit, 1)))
		require.Equal(t, "[0 -1 [[0 100 50]]]", both("RL.TAKE 1 "+wide+" a"+wide+" COST 50"))
		require.Equal(t, "[0 -1 [[0 1 0]]]", both("RL.TAKE 1 "+narrow+" b"))
		require.Equal(t, "[1 0 [[1 1 0] [0 100 50]]]", both("RL.TAKE 2 "+narrow+" b "+wide+" a"+wide+" COSTS 1 -3"))
		require.Equal(t, "[1 1 [[0 100 50] [1 1 0]]]", both("RL.TAKE 2 "+wide+" a"+wide+" "+narrow+" b COSTS -3 1"))
		require.Equal(t, "[0 -1 [[0 100 50]]]", both("RL.TAKE 1 "+wide+" a"+wide+" PEEK"), "nothing was given back")
		require.Equal(t, "[0 -1 [[0 100 53] [0 1 0]]]", both("RL.TAKE 2 "+wide+" a"+wide+" "+narrow+" c"+wide+" COSTS -3 1"))
		require.Equal(t, "[0 -1 [[0 100 53]]]", both("RL.TAKE 1 "+wide+" a"+wide+" PEEK"))
		both("DEL b")
	}
}

// startCluster runs a cluster of one node, and returns its URL.
func startCluster(t testing.TB) string {
	t.Helper()
	port := freePort(t)
	for port > 55_000 { // the bus has the port 10,000 above
		port = freePort(t)
	}
	redis := reference.Start(t, "--port", strconv.Itoa(port), "--cluster-enabled", "yes", "--bind", "127.0.0.1")
	_, err := redis.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := redis.Text("CLUSTER", "INFO")
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, answerTime, 20*time.Millisecond)
	return fmt.Sprintf("redis://127.0.0.1:%d", port)
}

// TestPoliciesOfTheUpstream are followed, whoever changes them.
func TestPoliciesOfTheUpstream(t *testing.T) {
	redis, gate := overRedis(t, func(cfg *config.Config) {
		require.NoError(t, addPolicy(cfg, "fixed", "FIXED 1 1h"))
	})
	gate.converse(`
		RL.POLICY SET fixed FIXED 9 1h | ERR policy 'fixed' is fixed by the configuration file
		RL.POLICY DEL fixed            | ERR policy 'fixed' is fixed by the configuration file
		RL.POLICY LIST                 | [fixed FIXED 1 1h]
	`)
	_, err := redis.Do("HSET", "rl:policies", "p", "FIXED 7 1h", "broken", "NOSUCH")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gate.ask("RL.POLICY GET p") == "FIXED 7 1h" }, answerTime, 10*time.Millisecond)
	require.Equal(t, "[0 -1 [[0 7 6 -1 3600000]]]", gate.ask("RL.TAKE 1 p k"))
	_, err = redis.Do("DEL", "rl:policies")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gate.ask("RL.POLICY GET p") == "nil" }, answerTime, 10*time.Millisecond)
	require.Equal(t, "OK", gate.ask("RL.POLICY SET q FIXED 3 1h"))
	text, err := redis.Text("HGET", "rl:policies", "q")
	require.NoError(t, err)
	require.Equal(t, "FIXED 3 1h", text)
	require.Equal(t, "FIXED 3 1h", gate.ask("RL.POLICY GET q"), "a change that is made here holds at once")
	require.Equal(t, "1", gate.ask("RL.POLICY DEL q"))
	require.Equal(t, "nil", gate.ask("RL.POLICY GET q"))
	require.Equal(t, "0", gate.ask("EXISTS rl:policies"))
}

// TestPoliciesThatCannotBeRead: what lies in their place is no policies, those that were there before are no more, and it is told.
func TestPoliciesThatCannotBeRead(t *testing.T) {
	redis := reference.Start(t)
	srv, gate := startGateway(t, "redis+unix://"+socketOf(redis))
	require.Equal(t, "OK", gate.ask("RL.POLICY SET p FIXED 7 1h"))
	require.Equal(t, "up", stateOf(srv))
	_, err := redis.Do("SET", "rl:policies", "text")
	require.NoError(t, err)
	const problem = "the policies cannot be read: rl:policies: WRONGTYPE Operation against a key holding the wrong kind of value"
	require.Eventually(t, func() bool { return gate.ask("RL.TAKE 1 p k") == "UPSTREAM "+problem }, answerTime, 10*time.Millisecond)
	require.Contains(t, gate.ask("INFO upstream"), "\r\nupstream_state:degraded\r\n")
	require.Contains(t, gate.ask("INFO upstream"), "\r\nupstream_problem:"+problem+"\r\n")
	_, err = redis.Do("DEL", "rl:policies")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gate.ask("RL.POLICY GET p") == "nil" }, answerTime, 10*time.Millisecond)
	require.Equal(t, "up", stateOf(srv))
}

// TestLongReplies beyond client-output-buffer-limit are refused before they take up memory, and the client goes on.
func TestLongReplies(t *testing.T) {
	redis, gate := overRedis(t, func(cfg *config.Config) { cfg.OutputLimits.Normal = config.OutputLimit{Hard: 1 << 20} })
	_, err := redis.Do("SETRANGE", "long", strconv.Itoa(3<<20), "x")
	require.NoError(t, err)
	_, err = redis.Do("SETRANGE", "fits", strconv.Itoa(800<<10), "x")
	require.NoError(t, err)
	for range 3 {
		require.Equal(t, "UPSTREAM the reply of "+socketOf(redis)+" is too large; the command has been executed", gate.ask("GET long"))
		require.Len(t, gate.ask("GET fits"), 800<<10+1)
	}
	gate.converse(`
		MULTI       | OK
		STRLEN fits | QUEUED
		GETRANGE fits 0 500000 | QUEUED
		DEL fits    | QUEUED
	`)
	require.Equal(t, "[819201 "+strings.Repeat("\x00", 500_001)+" 1]", gate.ask("EXEC"))
}

// TestWordsThatOnlyAHeadgateServes are refused before a Redis, wherever they come from.
func TestWordsThatOnlyAHeadgateServes(t *testing.T) {
	redis, gate := overRedis(t)
	gate.converse(`
		RL.POLICY SET p FIXED 1 1h SHADOW       | ERR 'SHADOW' is not served while the upstream is a Redis
		RL.POLICY SET p FIXED 1 1h BLOCK 10m    | ERR 'BLOCK' is not served while the upstream is a Redis
		RL.POLICY SET p FIXED 1 1h LEASE        | OK
		RL.POLICY OVERRIDE SET p k 9 1h         | ERR 'RL.POLICY OVERRIDE' is not served while the upstream is a Redis
		RL.BLOCK p k 1m                         | ERR 'RL.BLOCK' is not served while the upstream is a Redis
		RL.UNBLOCK p k                          | ERR 'RL.UNBLOCK' is not served while the upstream is a Redis
		RL.TAKE 1 p k                           | [0 -1 [[0 1 0 -1 3600000]]]
	`)
	_, err := redis.Do("HSET", "rl:policies", "p", "FIXED 1 1h SHADOW")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return gate.ask("RL.TAKE 1 p k") == "ERR 'SHADOW' is not served while the upstream is a Redis"
	}, answerTime, 10*time.Millisecond)
	require.ErrorContains(t, listenError(t, func(cfg *config.Config) {
		cfg.Upstream = "redis+unix://" + socketOf(redis)
		require.NoError(t, addPolicy(cfg, "p", "FIXED 1 1h BLOCK 10m"))
	}), "policy p: 'BLOCK' is not served while the upstream is a Redis")
}

// addPolicy adds a policy to a configuration.
func addPolicy(cfg *config.Config, name, text string) error {
	live := config.NewLive(cfg)
	if err := live.Set([]config.Pair{{Name: "policy", Value: name + " " + text}}, true); err != nil {
		return err
	}
	cfg.Policies = append(cfg.Policies, live.Get().Policies...)
	return nil
}

// TestClientsThatSendNothingMore get their replies all the same, as nc's users do.
func TestClientsThatSendNothingMore(t *testing.T) {
	_, gate := overRedis(t)
	for range 20 {
		c := dial(t, gate.addr)
		c.send("SET k v", "CL.THROTTLE t 5 1 36000 0", "PING", "GET k")
		require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
		for _, want := range []string{"OK", "[0 6 6 -1 0]", "PONG", "v"} {
			require.Equal(t, want, c.read())
		}
		_, err := c.r.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	}
}

// TestLongKeysAreNotKept by the calls that are used again.
func TestLongKeysAreNotKept(t *testing.T) {
	_, gate := overRedis(t)
	const clients, long = 12, 1 << 20
	key := strings.Repeat("k", long)
	for _, line := range []string{"CL.THROTTLE " + key + " 10 1 60", "RL.FIXED " + key + " 10 1h", "RL.RELEASE " + key + " x", "RL.RESET " + key} {
		before := heapInUse()
		var others [clients]*client
		for i := range others {
			others[i] = dial(t, gate.addr)
			others[i].send(line)
		}
		for _, other := range others {
			other.raw()
			other.Close()
		}
		require.Less(t, heapInUse()-before, 8*long, "%.20s", line)
	}
}

// TestSentinelsThatDoNotAnswer are named, since no node is known.
func TestSentinelsThatDoNotAnswer(t *testing.T) {
	sentinel := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	srv, _ := startGateway(t, "redis-sentinel://"+sentinel+"/mymaster")
	require.Equal(t, "a Redis watched by Sentinel: sentinels "+sentinel+", primary mymaster", srv.Gateway.Describe())
}
