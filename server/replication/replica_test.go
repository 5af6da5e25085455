package replication_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/persistence/rdb"
	"headgate/server"
	"headgate/server/config"
	"headgate/server/replication"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// newReplica returns a server with one key of its own, which stays until a primary's data have come whole.
func newReplica(t *testing.T, change func(*config.Config)) *servertest.WorkerClient {
	cfg := servertest.Unsaved()
	if change != nil {
		change(cfg)
	}
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{}))
	require.Equal(t, "+OK\r\n", w.Ask("SET", "old", "1"))
	return w
}

// old is what such a server holds before.
var old = map[string]string{"0/old": "1"}

// unit is a part of a stream that is run whole or not at all, and what has become of the data behind it.
type unit struct {
	end  int
	keys map[string]string
}

// stream returns what a primary sends behind its snapshot, and its units.
func stream() (text string, units []unit) {
	state := map[string]string{"0/a": "value of a", "0/b": "value of b", "0/c": "value of c"}
	units = []unit{{0, maps.Clone(state)}}
	add := func(part string, change func()) {
		text += part
		change()
		units = append(units, unit{len(text), maps.Clone(state)})
	}
	add(command("INCR", "expired"), func() {}) // of database 2, as the snapshot says; still past its time
	add(command("SET", "x", "1"), func() { state["2/x"] = "1" })
	add(command("PING"), func() {})
	add(command("MULTI")+command("INCR", "x")+command("SELECT", "0")+command("INCR", "n")+command("EXEC"), func() { state["2/x"], state["0/n"] = "2", "1" })
	add(command("INCR", "n"), func() { state["0/n"] = "2" })
	add(command("REPLCONF", "GETACK", "*"), func() {})
	add(command("DEL", "a", "b"), func() { delete(state, "0/a"); delete(state, "0/b") })
	return text, units
}

var step = flag.Int("replication.step", 13, "bytes between two places at which links are cut; 1 is everywhere")

// TestCutAtAnyByte cuts a primary's answers, its snapshot and its stream at every byte: the data are the old ones until the snapshot has come
// whole, and then those behind the last whole unit of the stream; the next link goes on from there.
func TestCutAtAnyByte(t *testing.T) {
	const begins = 1000
	body := snapshot(t)
	text, units := stream()
	mark := strings.Repeat("m", 40)
	for form, announced := range map[string]string{
		"of a length": fmt.Sprintf("$%d\r\n%s", len(body), body),
		"with a mark": "$EOF:" + mark + "\r\n" + string(body) + mark,
	} {
		t.Run(form, func(t *testing.T) {
			primary := newFakePrimary(t)
			head := handshake + "+FULLRESYNC " + id + " " + strconv.Itoa(begins) + "\r\n\n\n" + announced
			whole := head + text
			for cut := rand.IntN(*step); cut < len(whole); cut += *step {
				w := newReplica(t, nil)
				_, err := primary.attempt(w, whole[:cut])
				require.Error(t, err)
				if cut < len(head) {
					require.Equal(t, old, keys(w), "cut at %d", cut)
					require.Contains(t, w.Ask("SET", "k", "v"), "READONLY")
					continue
				}
				at := units[0]
				for _, u := range units {
					if u.end <= cut-len(head) {
						at = u
					}
				}
				require.Equal(t, at.keys, keys(w), "cut at %d", cut)

				heard, err := primary.attempt(w, handshake+"+CONTINUE\r\n"+text[at.end:])
				require.Error(t, err)
				words := asked.FindStringSubmatch(heard)
				require.NotNil(t, words, heard)
				require.Equal(t, []string{id, strconv.Itoa(begins + at.end + 1)}, words[1:], "cut at %d", cut)
				require.Equal(t, units[len(units)-1].keys, keys(w), "cut at %d", cut)
				require.Contains(t, w.Ask("INFO", "replication"), "\r\nmaster_repl_offset:"+strconv.Itoa(begins+len(text))+"\r\n")
			}
		})
	}
}

// TestBadPrimaries: whatever is wrong with a primary is said in words that help, and the data stay.
func TestBadPrimaries(t *testing.T) {
	body := snapshot(t)
	full := handshake + "+FULLRESYNC " + id + " 5\r\n"
	sized := func(body []byte) string { return fmt.Sprintf("%s$%d\r\n%s", full, len(body), body) }
	changed := func(at int, b byte) []byte {
		c := bytes.Clone(body)
		c[at] = b
		return c
	}
	foreign := rdb.NewEncoder(false)
	foreign.Begin()
	foreign.Function([]byte("#!lua name=x\nnonsense("))
	foreign.EndFile()
	for _, tt := range []struct{ name, script, want string }{
		{"nothing", "", "the primary has closed the connection: its port may be one for TLS, see tls-replication"},
		{"an alert of TLS", "\x15\x03\x01\x00\x02\x02\x46", "the primary has closed the connection: its port may be one for TLS, see tls-replication"},
		{"a web server", "HTTP/1.1 400 Bad Request\r\n", `it answers "HTTP/1.1 400 Bad Request" to PING, as no Redis does`},
		{"too long a line", strings.Repeat("x", 5000), "a line that is too long"},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n", `answers "LOADING Redis is loading`},
		{"a password", "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n", "set masterauth"},
		{"no rights", "+PONG\r\n-NOPERM this user has no permissions\r\n", "set masterauth, and masteruser to a user who may run PSYNC"},
		{"no PSYNC", handshake + "-ERR unknown command 'PSYNC'\r\n", `answers "ERR unknown command 'PSYNC'" to PSYNC`},
		{"a replica without its primary", handshake + "-NOMASTERLINK Can't SYNC while not connected with my master\r\n", "cannot be followed now"},
		{"a history without a name", handshake + "+FULLRESYNC x 5\r\n", `"+FULLRESYNC x 5" to PSYNC`},
		{"a history without an offset", handshake + "+FULLRESYNC " + id + " x\r\n", "as no Redis does"},
		{"an offset without room behind it", handshake + "+FULLRESYNC " + id + " 9223372036854775807\r\n", "as no Redis does"},
		{"the server itself", "+PONG\r\n+OK\r\n-ERR the server that asks is this one: a server cannot follow itself\r\n", "this is the server itself"},
		{"a rest that was not asked for", handshake + "+CONTINUE\r\n", "as no Redis does"},
		{"no snapshot", full + "-ERR no memory\r\n", `the primary could make no snapshot: "ERR no memory"`},
		{"a snapshot of no length", full + "$x\r\n", `announces a snapshot by "$x"`},
		{"an empty snapshot", full + "$0\r\n", `announces a snapshot by "$0"`},
		{"a snapshot of another kind", sized([]byte("SIDER0011 and so on")), "this is no snapshot of Redis"},
		{"a snapshot that is too new", sized(changed(8, '9')), "the snapshot's version is 19, at byte 0; versions"},
		{"a damaged snapshot", sized(changed(bytes.Index(body, []byte("value of a")), 'x')), "the checksum does not match"},
		{"a type of the future", sized(changed(bytes.Index(body, []byte("\x00\x01a")), 200)), "its snapshot cannot be used"},
		{"a snapshot cut short", sized(body[:len(body)-9]), "its snapshot cannot be used: the input ends in the middle"},
		{"a snapshot that is longer", sized(append(bytes.Clone(body), "more"...)), "does not end as the primary announced"},
		{"another mark", full + "$EOF:" + strings.Repeat("m", 40) + "\r\n" + string(body) + strings.Repeat("n", 40), "does not end as the primary announced"},
		{"functions that do not load", sized(rdb.AppendTrailer(foreign.Take(nil), 0)), "the functions stay as they were"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newReplica(t, nil)
			require.Contains(t, w.Ask("FUNCTION", "LOAD", "#!lua name=mine\nredis.register_function('mine', function() return 1 end)"), "mine")
			_, err := newFakePrimary(t).attempt(w, tt.script)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "restore a copy", "that is advice about files")
			require.Equal(t, old, keys(w))
			require.Contains(t, w.Ask("FUNCTION", "LIST"), "mine")
			require.Contains(t, w.Ask("INFO", "replication"), "master_link_status:down")
			require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "NO", "ONE"))
			require.Equal(t, "+OK\r\n", w.Ask("SET", "old", "2"))
		})
	}
}

func TestPassword(t *testing.T) {
	w := newReplica(t, func(cfg *config.Config) { cfg.MasterUser, cfg.MasterAuth = "alice", "open sesame" })
	primary := newFakePrimary(t)
	heard, err := primary.attempt(w, "-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair or user is disabled.\r\n")
	require.ErrorContains(t, err, `answers "WRONGPASS invalid username-password pair or user is disabled." to AUTH: correct masterauth and masteruser`)
	require.Contains(t, heard, command("AUTH", "alice", "open sesame"))
	require.NotContains(t, err.Error(), "sesame")
}

// TestItself: a server that is told to follow itself says so, rather than wait for data that nobody has.
func TestItself(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	w := newReplica(t, func(cfg *config.Config) { cfg.Port = port })
	require.ErrorContains(t, w.Srv.Replica.Attempt(replication.Address{Host: "127.0.0.1", Port: port}), "this is the server itself")
	require.Equal(t, old, keys(w))
	require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "NO", "ONE"))
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST", "::1"} {
		require.Contains(t, w.Ask("REPLICAOF", host, strconv.Itoa(port)), "-ERR this is the server's own address", host)
	}
	require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "127.0.0.9", strconv.Itoa(port)), "where it does not listen")
	require.Contains(t, w.Ask("REPLCONF", "capa", "eof", "capa", "run-id:"+w.Srv.RunID), "-ERR the server that asks is this one")
	require.Equal(t, "+OK run-id:"+w.Srv.RunID+"\r\n", w.Ask("REPLCONF", "capa", "eof", "capa", "run-id:"+id))
	require.Equal(t, "+OK\r\n", w.Ask("REPLCONF", "capa", "run-id:"+strings.Repeat("x", 1000)), "no run ID, and not kept")
}

// TestHostsThatAreNone: what is no host is refused, and never stands in INFO.
func TestHostsThatAreNone(t *testing.T) {
	w := newReplica(t, nil)
	for _, host := range []string{"", "a b", "h\r\nrole:master", "h\x00", "höst", "a/b", strings.Repeat("x", 256)} {
		require.Equal(t, "-ERR Invalid master host\r\n", w.Ask("REPLICAOF", host, "6379"), "%q", host)
		require.Equal(t, "-ERR Invalid master host\r\n", w.Ask("SLAVEOF", host, "6379"), "%q", host)
		require.False(t, config.IsHost(host))
	}
	require.Contains(t, w.Ask("INFO", "replication"), "role:master\r\n")
	for _, host := range []string{"redis_1", "redis-0.redis.default.svc.cluster.local", "fe80::1%eth0", "10.0.0.1", strings.Repeat("x", 255)} {
		require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", host, "6379"), host)
		require.Contains(t, w.Ask("INFO", "replication"), "\r\nmaster_host:"+host+"\r\n")
	}
}

// TestErrorsAreToldOnce: the log has one line for each kind of error, whatever its numbers, and another one when it has gone on for a while.
func TestErrorsAreToldOnce(t *testing.T) {
	again, now := replication.Told(), time.Now()
	reset := func(port int) error {
		return fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.1:6379: connection reset by peer", port)
	}
	refused := errors.New("connection refused")
	require.True(t, again(reset(40001), now))
	require.False(t, again(reset(40002), now))
	require.True(t, again(refused, now.Add(time.Second)))
	require.False(t, again(reset(40003), now.Add(2*time.Second)), "it has been told before the other")
	require.False(t, again(refused, now.Add(59*time.Second)))
	require.True(t, again(reset(40004), now.Add(time.Minute)))
	require.False(t, again(reset(40005), now.Add(time.Minute)))
	for i := range 1000 { // of any number of kinds as many are remembered as there may be
		require.True(t, again(errors.New(strings.Repeat("x", i)), now.Add(time.Hour)))
	}
}

// TestNewReplicaOfTellsAgain: what was told of one primary is told of the next, too; INFO has the last of it.
func TestNewReplicaOfTellsAgain(t *testing.T) {
	var log bytes.Buffer
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(servertest.Unsaved()), server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
	const line, field = "replication from the primary failed", "\r\nmaster_link_last_error:"
	first, second := newFakePrimary(t), newFakePrimary(t)
	for range 3 {
		_, err := first.attempt(w, "-LOADING 7 seconds\r\n")
		require.Error(t, err)
	}
	require.Equal(t, 1, strings.Count(log.String(), line))
	require.Contains(t, w.Ask("INFO", "replication"), field+`the primary answers "LOADING 7 seconds" to PING`+"\r\n")
	_, err := first.attempt(w, "")
	require.Error(t, err)
	_, err = first.attempt(w, "-LOADING 8 seconds\r\n")
	require.Error(t, err)
	require.Equal(t, 2, strings.Count(log.String(), line))
	_, err = second.attempt(w, "-LOADING 9 seconds\r\n")
	require.Error(t, err)
	require.Equal(t, 3, strings.Count(log.String(), line))
	w.Ask("REPLICAOF", "127.0.0.1", "1")
	require.Contains(t, w.Ask("INFO", "replication"), field+"\r\n")
	w.Ask("REPLICAOF", "NO", "ONE")
	require.NotContains(t, w.Ask("INFO", "replication"), field)
}

// TestErrorIsGoneWithTheLink: INFO went on to tell of an error of the link when there was one again.
func TestErrorIsGoneWithTheLink(t *testing.T) {
	w, primary, body := newReplica(t, nil), newFakePrimary(t), snapshot(t)
	const field = "\r\nmaster_link_last_error:"
	_, err := primary.attempt(w, "-LOADING 7 seconds\r\n")
	require.Error(t, err)
	require.NotContains(t, w.Ask("INFO", "replication"), field+"\r\n")
	seen, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		if conn, err := primary.ln.Accept(); err == nil {
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "%s+FULLRESYNC %s 5\r\n$%d\r\n%s", handshake, id, len(body), body)
			<-seen
		}
	}()
	go func() { ended <- w.Srv.Replica.Attempt(primary.address) }()
	require.Eventually(t, func() bool { return strings.Contains(w.Ask("INFO", "replication"), "master_link_status:up") }, 10*time.Second, time.Millisecond)
	require.Contains(t, w.Ask("INFO", "replication"), field+"\r\n")
	close(seen)
	require.Error(t, <-ended)
	require.NotContains(t, w.Ask("INFO", "replication"), field+"\r\n")
}

// TestReadiness: a replica is ready when the primary's data have come, and stays so while the link is cut, unless it is to serve no old data.
func TestReadiness(t *testing.T) {
	w, primary, body := newReplica(t, nil), newFakePrimary(t), snapshot(t)
	require.Empty(t, w.Srv.Unready())
	_, err := primary.attempt(w, handshake)
	require.Error(t, err)
	require.EqualValues(t, "replica: the primary's data have not come yet", w.Srv.Unready())
	_, err = primary.attempt(w, fmt.Sprintf("%s+FULLRESYNC %s 5\r\n$%d\r\n%s", handshake, id, len(body), body))
	require.Error(t, err)
	require.Empty(t, w.Srv.Unready())
	w.Ask("CONFIG", "SET", "replica-serve-stale-data", "no")
	require.Contains(t, w.Srv.Unready(), "MASTERDOWN")
	w.Ask("CONFIG", "SET", "replica-serve-stale-data", "yes")
	require.Empty(t, w.Srv.Unready())
	w.Ask("REPLICAOF", "NO", "ONE")
	require.Empty(t, w.Srv.Unready())
	w.Ask("REPLICAOF", "127.0.0.1", "1")
	require.Contains(t, w.Srv.Unready(), "have not come")
}

// TestWritableReplicaKeepsWhatHasExpired: reads leave a key that is past its time to the primary, which may still change it; a write takes its place.
func TestWritableReplicaKeepsWhatHasExpired(t *testing.T) {
	w := newReplica(t, func(cfg *config.Config) { cfg.ReplicaReadOnly = false })
	primary, body := newFakePrimary(t), snapshot(t)
	_, err := primary.attempt(w, fmt.Sprintf("%s+FULLRESYNC %s 5\r\n$%d\r\n%s", handshake, id, len(body), body))
	require.Error(t, err)
	w.Ask("SELECT", "2")
	read := func() {
		require.Equal(t, "$-1\r\n", w.Ask("GET", "expired"))
		require.Equal(t, ":0\r\n", w.Ask("EXISTS", "expired"))
		require.Equal(t, "$-1\r\n", w.Ask("EVAL", "return redis.call('GET', 'expired')", "0"))
		w.Ask("MULTI")
		w.Ask("GET", "expired")
		require.Equal(t, "*1\r\n$-1\r\n", w.Ask("EXEC"))
		require.Equal(t, ":1\r\n", w.Ask("DBSIZE"))
	}
	read()
	_, err = primary.attempt(w, handshake+"+CONTINUE\r\n"+command("INCR", "expired"))
	require.Error(t, err)
	read() // for the primary it is 8, and as past its time as before
	require.Equal(t, ":1\r\n", w.Ask("INCR", "expired"))
	require.Equal(t, ":-1\r\n", w.Ask("TTL", "expired"))
}

// TestWritableReplicaRemovesItsOwn: keys to which clients of a writable replica have given a time go when it has come, since the primary knows nothing of
// them; those of the primary stay until it says so, also when a client has changed them.
func TestWritableReplicaRemovesItsOwn(t *testing.T) {
	w := newReplica(t, func(cfg *config.Config) { cfg.ReplicaReadOnly = false })
	primary, body := newFakePrimary(t), snapshot(t)
	all := fmt.Sprintf("%s+FULLRESYNC %s 5\r\n$%d\r\n%s", handshake, id, len(body), body)
	_, err := primary.attempt(w, all+command("SET", "theirs", "1", "PX", "1")+command("SET", "later", "1", "PX", "1000000"))
	require.Error(t, err)
	tracked := func() string {
		return regexp.MustCompile(`slave_expires_tracked_keys:(\d+)`).FindStringSubmatch(w.Ask("INFO", "stats"))[1]
	}
	require.Equal(t, "0", tracked())
	w.Ask("SELECT", "2")
	w.Ask("INCR", "later")
	w.Ask("SET", "own", "1", "PX", "1")
	w.Ask("SET", "alive", "1", "PX", "1000000")
	w.Ask("HSET", "hash", "f", "v")
	w.Ask("MULTI")
	w.Ask("PEXPIRE", "hash", "1")
	w.Ask("EXEC")
	w.Ask("EVAL", "redis.call('SET', KEYS[1], 'v', 'PX', 1)", "1", "scripted")
	w.Ask("SET", "gone", "1", "PX", "1")
	w.Ask("DEL", "gone")
	require.Equal(t, "5", tracked())
	require.Eventually(t, func() bool {
		w.Srv.Cron()
		return w.Ask("DBSIZE") == ":4\r\n" // expired, theirs, later, alive
	}, time.Minute, time.Millisecond)
	require.Equal(t, "1", tracked())
	_, err = primary.attempt(w, all)
	require.Error(t, err)
	require.Equal(t, "0", tracked(), "the names may be the primary's now")
}

// TestLimitersOnAReplica: whoever only asks is answered, and whoever is limited is told so; what would be charged is READONLY.
func TestLimitersOnAReplica(t *testing.T) {
	w := newReplica(t, nil)
	w.Ask("RL.POLICY", "SET", "once", "FIXED", "1", "1000s")
	for _, words := range [][]string{{"RL.FIXED", "full", "1", "1000s"}, {"RL.LOG", "log", "1", "1000s"}, {"RL.ACQUIRE", "slots", "1", "1000s", "MEMBER", "id"}, {"CL.THROTTLE", "cell", "0", "1", "1000"}} {
		require.Contains(t, w.Ask(words...), ":0\r\n:1\r\n", words)
	}
	require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "127.0.0.1", "1"))
	size := w.Ask("DBSIZE")
	const limited, free, refused = "*5\r\n:1\r\n:1\r\n", "*5\r\n:0\r\n:1\r\n:1\r\n", "-READONLY You can't write against a read only replica.\r\n"
	for _, tt := range []struct {
		line, want string
	}{
		{"RL.FIXED full 1 1000s", limited}, {"RL.FIXED full 1 1000s COST 1 PEEK", limited}, {"RL.FIXED new 1 1000s PEEK", free}, {"RL.FIXED new 1 1000s", refused},
		{"RL.FIXED full 1 1000s COST -1", refused}, {"RL.LOG log 1 1000s", limited}, {"RL.LOG new 1 1000s", refused}, {"RL.LOG new 1 1000s PEEK", free},
		{"RL.SLIDING new 1 1000s", refused}, {"RL.SLIDING new 1 1000s PEEK", free}, {"RL.GCRA new 1 1 1s", refused}, {"RL.GCRA new 1 1 1s PEEK", free},
		{"RL.ACQUIRE slots 1 1000s", "*6\r\n:1\r\n"}, {"RL.ACQUIRE new 1 1000s", refused}, {"RL.RELEASE slots id", refused}, {"RL.RELEASE slots other", ":0\r\n"},
		{"RL.RENEW slots id 9s", refused}, {"RL.RESET full", refused}, {"RL.RESET none", ":0\r\n"}, {"CL.THROTTLE cell 0 1 1000", limited},
		{"CL.THROTTLE new 0 1 1000", refused}, {"CL.THROTTLE new 0 1 1000 0", free}, {"INCREX new", refused},
		{"RL.TAKE 2 once full once new", "*3\r\n:1\r\n:0\r\n"}, {"RL.TAKE 1 once new", refused}, {"RL.TAKE 1 once new PEEK", "*3\r\n:0\r\n:-1\r\n"},
		{"SET new 1", refused},
	} {
		require.Truef(t, strings.HasPrefix(w.Ask(strings.Fields(tt.line)...), tt.want), "%s: %q", tt.line, w.Ask(strings.Fields(tt.line)...))
	}
	require.Contains(t, w.Ask("EVAL", "return redis.call('RL.FIXED', 'new', '1', '1000s', 'PEEK')", "0"), free)
	require.Contains(t, w.Ask("EVAL", "return redis.call('RL.FIXED', 'new', '1', '1000s')", "0"), "READONLY")
	w.Ask("MULTI")
	w.Ask("RL.FIXED", "new", "1", "1000s", "PEEK")
	w.Ask("RL.FIXED", "new", "1", "1000s")
	require.Contains(t, w.Ask("EXEC"), "*2\r\n"+free)
	require.Equal(t, size, w.Ask("DBSIZE"))
	require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "NO", "ONE"))
	require.Contains(t, w.Ask("RL.FIXED", "new", "1", "1000s"), "*5\r\n:0\r\n:1\r\n:0\r\n")
}

// TestStreamThatIsNoCommand: what comes behind it cannot be understood, so all data are asked for anew.
func TestStreamThatIsNoCommand(t *testing.T) {
	w, primary, body := newReplica(t, nil), newFakePrimary(t), snapshot(t)
	script := fmt.Sprintf("%s+FULLRESYNC %s 5\r\n$%d\r\n%s%s*1\r\n+what\r\n", handshake, id, len(body), body, command("SET", "x", "1"))
	_, err := primary.attempt(w, script)
	require.ErrorContains(t, err, "not a command")
	require.Equal(t, "1", keys(w)["2/x"])
	heard, _ := primary.attempt(w, "")
	require.NotContains(t, heard, "PSYNC")
	heard, _ = primary.attempt(w, handshake)
	require.Equal(t, []string{"?", "-1"}, asked.FindStringSubmatch(heard)[1:])
}

// TestCommandThatFails is counted and told: the data differ from then on.
func TestCommandThatFails(t *testing.T) {
	var log bytes.Buffer
	cfg := servertest.Unsaved()
	w := servertest.NewWorkerClientOf(t, server.New(config.NewLive(cfg), server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
	primary, body := newFakePrimary(t), snapshot(t)
	script := fmt.Sprintf("%s+FULLRESYNC %s 5\r\n$%d\r\n%s", handshake, id, len(body), body)
	script += command("NOSUCH", "secret") + command("MULTI") + command("LPUSH", "s", "1") + command("GET", "s") + command("EXEC") + command("SET", "x", "1")
	_, err := primary.attempt(w, script)
	require.Error(t, err)
	require.Equal(t, "1", keys(w)["2/x"], "what follows is run all the same")
	require.Contains(t, w.Ask("INFO", "replication"), "replica_failed_commands:2\r\n")
	require.Equal(t, 1, strings.Count(log.String(), "a command from the primary failed here"))
	require.NotContains(t, log.String(), "secret")
}

// TestHistories: a server that has followed one primary asks another for the rest of the same history, and so it does after it has gone on by itself.
func TestHistories(t *testing.T) {
	w, first, body := newReplica(t, nil), newFakePrimary(t), snapshot(t)
	script := fmt.Sprintf("%s+FULLRESYNC %s 5\r\n$%d\r\n%s", handshake, id, len(body), body)
	heard, err := first.attempt(w, script+command("SET", "x", "1"))
	require.Error(t, err)
	require.Equal(t, []string{"?", "-1"}, asked.FindStringSubmatch(heard)[1:], "what it had by itself is in no history")
	end := 5 + len(command("SET", "x", "1"))

	second, other := newFakePrimary(t), strings.Repeat("f", 40)
	heard, _ = second.attempt(w, handshake+"+CONTINUE "+other+"\r\n"+command("SET", "y", "2"))
	require.Equal(t, []string{id, strconv.Itoa(end + 1)}, asked.FindStringSubmatch(heard)[1:])
	require.Equal(t, "2", keys(w)["2/y"], "the database is still the same")
	info := w.Ask("INFO", "replication")
	require.Contains(t, info, "master_replid:"+other+"\r\nmaster_replid2:"+id+"\r\n")
	require.Contains(t, info, "second_repl_offset:"+strconv.Itoa(end+1)+"\r\n")

	require.Equal(t, "+OK\r\n", w.Ask("REPLICAOF", "NO", "ONE"))
	info = w.Ask("INFO", "replication")
	require.Contains(t, info, "role:master")
	require.Contains(t, info, "master_replid2:"+other+"\r\n")
	own := regexp.MustCompile(`master_replid:(\w+)\r\n[^#]*master_repl_offset:(\d+)`)
	before := own.FindStringSubmatch(info)
	require.Equal(t, "+OK\r\n", w.Ask("SET", "own", "1"))
	after := own.FindStringSubmatch(w.Ask("INFO", "replication"))
	require.Equal(t, before[1], after[1])
	require.NotEqual(t, before[2], after[2], "what it changes by itself is counted")
	heard, _ = second.attempt(w, handshake)
	offset, err := strconv.Atoi(after[2])
	require.NoError(t, err)
	require.Equal(t, []string{after[1], strconv.Itoa(offset + 1)}, asked.FindStringSubmatch(heard)[1:], "a server that has all of that may go on from there")
}

// TestSnapshotGivenUp: the end of a snapshot for replicas needs no lock, since those who give it up, as a full sync from a primary does, hold it while they wait.
func TestSnapshotGivenUp(t *testing.T) {
	w := newReplica(t, nil)
	require.EqualError(t, w.Srv.Replica.Primary.FinishUnderLock(), "it is given up")
	require.Equal(t, "$1\r\n1\r\n", w.Ask("GET", "old"))
}
