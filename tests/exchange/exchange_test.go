// Package exchange carries data between headgate and redis-server in their files: each starts on what the other has left.
package exchange

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// contents is what a server holds: every key as a text of its expiry and value, by database and name, and the libraries.
func contents(t *testing.T, s *harness.Server) map[string]string {
	t.Helper()
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	all := map[string]string{}
	for db := range 16 {
		c.Ask("SELECT", strconv.Itoa(db))
		names := c.Ask("KEYS", "*").Strings()
		var about [][]string
		for _, name := range names {
			about = append(about, []string{"TYPE", name}, []string{"PEXPIRETIME", name})
		}
		answers := c.AskAll(about...)
		for i, name := range names {
			kind, expires := answers[2*i].Text, answers[2*i+1]
			all[fmt.Sprintf("%d/%s", db, name)] = expires.Wire() + " " + kind + " " + value(t, c, name, kind)
		}
	}
	all["functions"] = c.Ask("FUNCTION", "LIST", "WITHCODE").Sorted(false).Wire()
	return all
}

// value is a key's value, in an order that does not depend on the server.
func value(t *testing.T, c *harness.Client, name, kind string) string {
	switch kind {
	case "string":
		return c.Ask("GET", name).Wire()
	case "hash":
		return c.Ask("HGETALL", name).Sorted(true).Wire()
	case "zset":
		return c.Ask("ZRANGE", name, "0", "-1", "WITHSCORES").Wire()
	case "list":
		return c.Ask("LRANGE", name, "0", "-1").Wire()
	case "set":
		return c.Ask("SMEMBERS", name).Sorted(false).Wire()
	case "stream":
		all := c.Ask("XRANGE", name, "-", "+").Wire() + c.Ask("XINFO", "STREAM", name).Wire() + c.Ask("XINFO", "GROUPS", name).Wire()
		for _, group := range []string{"all", "some"} {
			all += c.Ask("XPENDING", name, group, "-", "+", "10000").Shape().Wire() + c.Ask("XPENDING", name, group).Wire()
			for _, consumer := range c.Ask("XINFO", "CONSUMERS", name, group).Items {
				all += consumer.Items[1].Text + consumer.Items[3].Wire()
			}
		}
		return all
	}
	require.Fail(t, "a type that this test does not know", kind)
	return ""
}

// shownBefore is how much is shown of what stands before a difference.
const shownBefore = 100

func requireSame(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name, v := range want {
		require.Contains(t, got, name)
		at := 0
		for at < min(len(v), len(got[name])) && v[at] == got[name][at] {
			at++
		}
		at = max(0, at-shownBefore)
		require.True(t, v == got[name], "%s, from byte %d on\nwas %.300q\nis  %.300q", name, at, v[at:], got[name][min(at, len(got[name])):])
	}
	require.Len(t, got, len(want))
}

// far is a time in the far future, in Unix milliseconds.
const far = 4_000_000_000_000

// writer fills a server with every kind of value, small and big.
type writer struct {
	c       *harness.Client
	rnd     *rand.Rand
	n       int
	sizes   []int // of collections
	waiting [][]string
}

// do has a command run by the end of the fill, in a pipeline with others.
func (w *writer) do(args ...string) { w.waiting = append(w.waiting, args) }

// flush runs the commands that wait.
func (w *writer) flush() {
	w.c.AskAll(w.waiting...)
	w.waiting = nil
}

// name is that of the next key; now and then the writer changes the database.
func (w *writer) name(kind string) string {
	if w.rnd.IntN(10) == 0 {
		w.do("SELECT", strconv.Itoa(w.rnd.IntN(16)))
	}
	w.n++
	return fmt.Sprintf("%s:%d", kind, w.n)
}

func (w *writer) text() string {
	switch w.rnd.IntN(5) {
	case 0:
		return strconv.FormatInt(int64(w.rnd.Uint64())>>w.rnd.IntN(64), 10)
	case 1:
		return strings.Repeat("abc", w.rnd.IntN(60))
	case 2:
		b := make([]byte, w.rnd.IntN(100))
		for i := range b {
			b[i] = byte(w.rnd.Uint32())
		}
		return string(b)
	}
	return fmt.Sprintf("text %d", w.rnd.IntN(1000))
}

func (w *writer) expire(name string) {
	switch w.rnd.IntN(3) {
	case 0:
		w.do("PEXPIREAT", name, strconv.Itoa(far+w.rnd.IntN(1_000_000)))
	case 1:
		w.do("EXPIRE", name, "100000")
	}
}

// fill writes keys of all kinds, and n of the smaller ones.
func (w *writer) fill(n int) {
	for _, v := range []string{"0", "-1", "127", "128", "-129", "32768", "2147483647", "2147483648", "-9223372036854775808", "9223372036854775807",
		"01", "+1", "", " ", "1.5", strings.Repeat("x", 44), strings.Repeat("x", 45), strings.Repeat("word ", 20_000)} {
		w.do("SET", w.name("string"), v)
	}
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(w.rnd.Uint32())
	}
	w.do("SET", w.name("noise"), string(noise))
	for range n {
		name := w.name("string")
		w.do("SET", name, w.text())
		w.expire(name)
	}
	for _, size := range w.sizes {
		w.collections(size)
	}
	for i := range 3 {
		w.do("FUNCTION", "LOAD", "REPLACE", fmt.Sprintf("#!lua name=lib%d\nredis.register_function('f%d', function() return %d end)", i, i, i))
	}
	w.flush()
}

// collections writes one of each kind with about so many elements.
func (w *writer) collections(size int) {
	hash, log, scores := w.name("hash"), w.name("log"), w.name("zset")
	list, set, ints, stream := w.name("list"), w.name("set"), w.name("ints"), w.name("stream")
	for i := range size {
		at := strconv.Itoa(1_700_000_000_000 + i*7)
		w.do("HSET", hash, w.text(), w.text())
		w.do("ZADD", log, at, at)
		score := []string{strconv.Itoa(w.rnd.IntN(100) - 50), strconv.FormatFloat(w.rnd.NormFloat64(), 'g', -1, 64), "inf", "-inf", "1e30", "0.1"}[w.rnd.IntN(6)]
		w.do("ZADD", scores, score, w.text())
		w.do("RPUSH", list, w.text())
		w.do("SADD", set, w.text())
		w.do("SADD", ints, strconv.FormatInt(int64(w.rnd.Uint64())>>(8*(size%8)), 10))
	}
	for i := range size {
		w.do("XADD", stream, fmt.Sprintf("%d-%d", 1_700_000_000_000+i/3*5, i%3+1), "field", w.text(), w.text(), "value")
		if w.rnd.IntN(10) == 0 {
			w.do("XDEL", stream, fmt.Sprintf("%d-%d", 1_700_000_000_000+w.rnd.IntN(i+1)/3*5, w.rnd.IntN(3)+1))
		}
	}
	w.do("XGROUP", "CREATE", stream, "all", "$")
	w.do("XGROUP", "CREATE", stream, "some", "0", "ENTRIESREAD", "0")
	w.do("XREADGROUP", "GROUP", "some", "alice", "COUNT", strconv.Itoa(size/2+1), "STREAMS", stream, ">")
	w.do("XREADGROUP", "GROUP", "some", "bob", "COUNT", strconv.Itoa(size/5+1), "STREAMS", stream, ">")
	w.do("XACK", stream, "some", "1700000000000-1", "1700000000000-3")
	w.do("XGROUP", "CREATECONSUMER", stream, "some", "carol")
	for _, name := range []string{hash, log, scores, list, set, ints, stream} {
		w.expire(name)
	}
}

func save(t *testing.T, s *harness.Server) {
	t.Helper()
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	require.Equal(t, "+OK\r\n", c.Ask("SAVE").Wire())
}

// newWriter prints the seed, which -exchange.seed sets.
func newWriter(t *testing.T, s *harness.Server) *writer {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-exchange.seed %d", seed)
	c := harness.Dial(t, s.Addr)
	t.Cleanup(c.Close)
	return &writer{c: c, rnd: rand.New(rand.NewPCG(seed, 1)), sizes: []int{1, 2, 12, 100, 300, 600, 3000}}
}

// TestRedisStartsOnOurSnapshot also has redis-check-rdb look at the file.
func TestRedisStartsOnOurSnapshot(t *testing.T) {
	for _, flags := range drawn(t, nil, []string{"--rdbcompression", "no"}, []string{"--rdbchecksum", "no"}) {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			ours := harness.Start(t, flags...)
			newWriter(t, ours).fill(500)
			save(t, ours)
			want := contents(t, ours)
			out, err := exec.Command("redis-check-rdb", filepath.Join(ours.Dir, "dump.rdb")).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Contains(t, string(out), "RDB looks OK")
			requireSame(t, want, contents(t, harness.StartReference(t, "--dir", ours.Dir)))
			requireSame(t, want, contents(t, harness.Start(t, "--dir", ours.Dir)))
		})
	}
}

func TestWeStartOnRedisSnapshot(t *testing.T) {
	for _, flags := range drawn(t, nil, []string{"--rdbcompression", "no"}, []string{"--list-max-listpack-size", "5", "--hash-max-listpack-entries", "0"}) {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			theirs := harness.StartReference(t, flags...)
			newWriter(t, theirs).fill(500)
			save(t, theirs)
			requireSame(t, contents(t, theirs), contents(t, harness.Start(t, "--dir", theirs.Dir)))
		})
	}
}

// TestDumpsAreExchanged restores each server's payloads in the other.
func TestDumpsAreExchanged(t *testing.T) {
	ours, theirs := harness.Start(t, "--enable-restore-command", "local"), harness.StartReference(t)
	for _, way := range [][2]*harness.Server{{ours, theirs}, {theirs, ours}} {
		from, to := way[0], way[1]
		w := newWriter(t, from)
		w.fill(300)
		target := harness.Dial(t, to.Addr)
		for db := range 16 {
			w.c.Ask("SELECT", strconv.Itoa(db))
			target.Ask("SELECT", strconv.Itoa(db))
			for _, name := range w.c.Ask("KEYS", "*").Strings() {
				payload := w.c.Ask("DUMP", name).Text
				at := max(0, number(t, w.c.Ask("PEXPIRETIME", name)))
				require.Equal(t, "+OK\r\n", target.Ask("RESTORE", name, strconv.Itoa(at), payload, "ABSTTL", "REPLACE").Wire(), "%s: %q", name, payload)
			}
		}
		libraries := w.c.Ask("FUNCTION", "DUMP").Text
		require.Equal(t, "+OK\r\n", target.Ask("FUNCTION", "RESTORE", libraries, "FLUSH").Wire())
		requireSame(t, contents(t, from), contents(t, to))
		w.c.Ask("FLUSHALL")
		target.Ask("FLUSHALL")
		target.Close()
	}
}

// TestKeysOfRedisCell: a limiter's key as redis-cell leaves it, the time in nanoseconds as decimal text with a TTL, goes on where
// it was.
func TestKeysOfRedisCell(t *testing.T) {
	theirs := harness.StartReference(t)
	c := harness.Dial(t, theirs.Addr)
	defer c.Close()
	now := number(t, harness.Value{Text: c.Ask("TIME").Items[0].Text, Kind: ':'})
	const period = 3600
	tat := (now + 5*period) * 1_000_000_000 // five of six calls at once have been used up
	c.Ask("SET", "user", strconv.Itoa(tat), "EX", strconv.Itoa(5*period))
	save(t, theirs)
	ours := harness.Dial(t, harness.Start(t, "--dir", theirs.Dir).Addr)
	defer ours.Close()
	require.Equal(t, strconv.Itoa(tat), ours.Ask("GET", "user").Text)
	first := ours.Ask("CL.THROTTLE", "user", "5", "1", strconv.Itoa(period))
	require.Equal(t, []string{"0", "6", "0"}, first.Strings()[:3])
	require.Equal(t, "1", ours.Ask("CL.THROTTLE", "user", "5", "1", strconv.Itoa(period)).Items[0].Text)
}

// TestDamagedSnapshot: the server refuses to start, and says which file, where, and what to do.
func TestDamagedSnapshot(t *testing.T) {
	theirs := harness.StartReference(t)
	newWriter(t, theirs).fill(50)
	save(t, theirs)
	name := filepath.Join(theirs.Dir, "dump.rdb")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	for what, damaged := range map[string][]byte{
		"the input ends in the middle":    whole[:len(whole)/2],
		"the checksum does not match":     append(slices.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1),
		"this is no snapshot of Redis":    []byte("something else\n"),
		"the snapshot's version is 99":    append([]byte("REDIS0099"), whole[9:]...),
		"hash with fields that expire":    []byte("REDIS0012\x18\x01k"),
		"a value of the module ReJSON-RL": []byte("REDIS0010\x07\x01k\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03"),
	} {
		require.NoError(t, os.WriteFile(name, damaged, 0o600))
		cmd := exec.Command(harness.Binary(t), "--port", strconv.Itoa(harness.FreePort(t)), "--dir", theirs.Dir, "--save", "")
		cmd.Env = harness.Environment()
		out, err := cmd.CombinedOutput()
		require.Error(t, err, what)
		require.Contains(t, string(out), what)
		require.Contains(t, string(out), name)
		require.Contains(t, string(out), "offset")
	}
}

func number(t *testing.T, v harness.Value) int {
	n, err := strconv.Atoi(strings.Trim(v.Wire(), ":\r\n"))
	require.NoError(t, err)
	return n
}

// TestSnapshotWhileWriting takes snapshots of one point in time: of counters that are only ever raised together, in one transaction,
// every snapshot has the same value.
func TestSnapshotWhileWriting(t *testing.T) {
	const counters = 3000
	ours := harness.Start(t)
	c := harness.Dial(t, ours.Addr)
	defer c.Close()
	script := "for i = 1, " + strconv.Itoa(counters) + " do redis.call('INCR', 'counter:' .. i) end"
	started := 0
	for range 20 {
		c.Ask("EVAL", script, "0")
		if strings.HasPrefix(c.Ask("BGSAVE").Wire(), "+") {
			started++
		}
		c.Ask("EVAL", script, "0")
	}
	require.Positive(t, started)
	for !strings.Contains(c.Ask("INFO", "persistence").Wire(), "rdb_bgsave_in_progress:0") {
		c.Ask("INCR", "another")
	}
	theirs := harness.Dial(t, harness.StartReference(t, "--dir", ours.Dir).Addr)
	defer theirs.Close()
	var names []string
	for i := range counters {
		names = append(names, fmt.Sprintf("counter:%d", i+1))
	}
	values := theirs.Ask(append([]string{"MGET"}, names...)...).Strings()
	slices.Sort(values)
	require.Len(t, slices.Compact(values), 1)
}
