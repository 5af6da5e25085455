package exchange

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// logFlags have a server log what changes, and nothing rewritten but when it is told to.
var logFlags = []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"}

// logSizes are how many elements collections get here: enough for each form that they are kept in.
var logSizes = []int{1, 12, 150, 600}

// manifest is where a server's append-only file is listed.
func manifest(dir string) string {
	return filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")
}

// rewriteLog has a server write its log anew, and returns when that is done.
func rewriteLog(t *testing.T, s *harness.Server) {
	t.Helper()
	c := harness.Dial(t, s.Addr)
	defer c.Close()
	require.Contains(t, c.Ask("BGREWRITEAOF").Wire(), "+Background append only file rewriting")
	require.Eventually(t, func() bool {
		info := c.Ask("INFO", "persistence").Text
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0")
	}, time.Minute, 10*time.Millisecond)
	base, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.base.*"))
	require.NoError(t, err)
	require.Len(t, base, 1)
}

// fillLog writes all kinds of values, with a rewrite before, between or after them, as the way says.
func fillLog(t *testing.T, s *harness.Server, way string) {
	t.Helper()
	w := newWriter(t, s)
	w.sizes = logSizes
	w.fill(200)
	switch way {
	case "increments":
		w.fill(200)
	case "base and increments":
		rewriteLog(t, s)
		w.fill(200)
	case "base":
		w.fill(200)
		rewriteLog(t, s)
	}
	w.n = 0 // overwrite and delete some of what is there
	for range 100 {
		w.do("DEL", w.name("string"))
	}
	w.do("MULTI")
	w.do("SET", "in a transaction", w.text())
	w.do("INCR", "counter")
	w.do("EXEC")
	w.do("EVAL", "redis.call('SET', KEYS[1], ARGV[1]) redis.call('PEXPIRE', KEYS[1], 100000000) return redis.call('RPUSH', KEYS[2], 1, 2, 3)",
		"2", "by a script", "list by a script", w.text())
	w.do("COPY", "by a script", "copied", "DB", "3")
	w.flush()
}

var logWays = []string{"increments", "base and increments", "base"}

// requireReadable starts both servers on copies of what one has left, and has redis-check-aof look at it.
func requireReadable(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	out, err := exec.Command("redis-check-aof", manifest(dir)).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "All AOF files and manifest are valid")
	out, err = exec.Command(harness.Binary(t), "check", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	requireSame(t, want, contentsOfLog(t, dir, harness.StartIn))
	requireSame(t, want, contentsOfLog(t, dir, harness.StartReferenceIn))
}

// contentsOfLog is what a server makes of a copy of a directory.
func contentsOfLog(t *testing.T, dir string, start func(testing.TB, string, ...string) *harness.Server) map[string]string {
	t.Helper()
	there := t.TempDir()
	require.NoError(t, os.CopyFS(there, os.DirFS(dir)))
	s := start(t, there, logFlags...)
	all := contents(t, s)
	require.NoError(t, s.Terminate())
	return all
}

// judgedByItself is what redis-server makes of its own log: all that it held, but for how far a group has read a stream and how its
// entries are packed, which its log does not tell.
func judgedByItself(t *testing.T, dir string, held map[string]string) map[string]string {
	t.Helper()
	all := contentsOfLog(t, dir, harness.StartReferenceIn)
	for name := range held {
		if strings.Contains(name, "/stream:") {
			held[name] = all[name]
		}
	}
	requireSame(t, held, all)
	return all
}

// TestLogsAreExchanged: what one server has logged, both load: values, expiry times to the millisecond, functions and all databases,
// whether it was ended in good order or killed.
func TestLogsAreExchanged(t *testing.T) {
	for _, way := range drawn(t, logWays...) {
		t.Run(way, func(t *testing.T) {
			ours := harness.Start(t, logFlags...)
			fillLog(t, ours, way)
			want := contents(t, ours)
			ours.Kill()
			requireReadable(t, ours.Dir, want)
		})
	}
	for _, flags := range drawn(t, nil, []string{"--aof-use-rdb-preamble", "no"}, []string{"--aof-timestamp-enabled", "yes"}) {
		t.Run("redis-server "+strings.Join(flags, " "), func(t *testing.T) {
			for _, way := range drawn(t, logWays[len(flags)/2:]...) {
				theirs := harness.StartReference(t, append(logFlags, flags...)...)
				fillLog(t, theirs, way)
				want := contents(t, theirs)
				require.NoError(t, theirs.Terminate())
				requireReadable(t, theirs.Dir, judgedByItself(t, theirs.Dir, want))
			}
		})
	}
}

// TestLogGoesBackAndForth: each server appends to what the other has left, and rewrites it.
func TestLogGoesBackAndForth(t *testing.T) {
	dir := t.TempDir()
	starts := []func(testing.TB, string, ...string) *harness.Server{harness.StartIn, harness.StartReferenceIn}
	var want map[string]string
	for i := range 5 {
		s := starts[i%2](t, dir, logFlags...)
		if i > 0 {
			requireSame(t, want, contents(t, s))
		}
		w := newWriter(t, s)
		w.n, w.sizes = 1000*i, logSizes
		w.fill(50)
		if i > 2 {
			rewriteLog(t, s)
		}
		w.fill(50)
		want = contents(t, s)
		if i%3 == 0 {
			s.Kill()
		} else {
			require.NoError(t, s.Terminate())
		}
		if s.Name == "redis-server" {
			want = judgedByItself(t, dir, want)
		}
	}
	requireReadable(t, dir, want)
}

// TestLogOfOneFile: a file as servers before Redis 7 leave it is taken over.
func TestLogOfOneFile(t *testing.T) {
	theirs := harness.StartReference(t, append(logFlags, "--aof-use-rdb-preamble", "no")...)
	fillLog(t, theirs, "increments")
	held := contents(t, theirs)
	require.NoError(t, theirs.Terminate())
	want := judgedByItself(t, theirs.Dir, held)
	increments, err := filepath.Glob(filepath.Join(theirs.Dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, increments, 1)
	dir := t.TempDir()
	text, err := os.ReadFile(increments[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "appendonly.aof"), text, 0o644))
	ours := harness.StartIn(t, dir, logFlags...)
	requireSame(t, want, contents(t, ours))
	require.NoError(t, ours.Terminate())
	requireReadable(t, dir, want)
}

// TestLogOfALimitedTrim: Redis logs an approximate trim as an exact one to where it came, with the LIMIT that only an approximate one
// may have.
func TestLogOfALimitedTrim(t *testing.T) {
	flags := append([]string{"--stream-node-max-entries", "3"}, logFlags...)
	theirs := harness.StartReference(t, flags...)
	c := harness.Dial(t, theirs.Addr)
	for range 40 {
		c.Ask("XADD", "stream", "*", "field", "value")
	}
	c.Ask("XADD", "stream", "MAXLEN", "~", "10", "LIMIT", "7", "*", "field", "value")
	c.Ask("XTRIM", "stream", "MAXLEN", "~", "10", "LIMIT", "9")
	c.Ask("XTRIM", "stream", "MINID", "~", "9999999999999-0", "LIMIT", "4")
	held := contents(t, theirs)
	c.Close()
	require.NoError(t, theirs.Terminate())
	increments, err := filepath.Glob(filepath.Join(theirs.Dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, increments, 1)
	text, err := os.ReadFile(increments[0])
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), "LIMIT"))
	ours := harness.StartIn(t, theirs.Dir, flags...)
	requireSame(t, held, contents(t, ours))
	require.NoError(t, ours.Terminate())
}
