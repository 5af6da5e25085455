package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// lockNote is where a server that has a directory says who it is.
const lockNote = "headgate.lock"

// requireRefused wants a server in a directory to end by itself and name the one that has it.
func requireRefused(t *testing.T, dir string, holder *started, args ...string) {
	t.Helper()
	_, stderr, exit := run(t, nil, append([]string{"--port", strconv.Itoa(harness.FreePort(t)), "--dir", dir}, args...)...)
	require.Equal(t, 1, exit, stderr)
	require.Equal(t, 1, strings.Count(strings.TrimSpace(stderr), "\n")+1, "one line, not:\n%s", stderr)
	for _, part := range []string{dir, fmt.Sprintf("process %d ", holder.Process.Pid), holder.addr, "--dir"} {
		require.Contains(t, stderr, part)
	}
}

// TestTwoServersInOneDirectory: 800 writes were acknowledged by two servers with one append-only file, and a start found 202 of them. The
// second one ends and says who has the directory, also if that is known under another name; what is left of a server that was killed is in
// nobody's way.
func TestTwoServersInOneDirectory(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second []string
	}{
		{"two append-only files", []string{"--appendonly", "yes", "--save", ""}, []string{"--appendonly", "yes", "--save", ""}},
		{"two snapshots", nil, nil},
		{"a snapshot and a log", nil, []string{"--appendonly", "yes", "--save", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			first := startIn(t, dir, tt.first...)
			c := dialSoon(t, first.addr)
			require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
			requireRefused(t, dir, first, tt.second...)
			other := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.Symlink(dir, other))
			requireRefused(t, other, first, tt.second...)
			require.Equal(t, "$1\r\nv\r\n", string(c.Do("GET", "k")))

			require.NoError(t, first.Process.Kill())
			first.Wait()
			second := startIn(t, dir, tt.second...)
			require.Equal(t, "+PONG\r\n", string(dialSoon(t, second.addr).Do("PING")))
			requireRefused(t, dir, second, tt.first...)
			require.NoError(t, second.Process.Signal(syscall.SIGTERM))
			second.ends(0)
			require.NoFileExists(t, filepath.Join(dir, lockNote))
		})
	}
}

// TestHolderTellsItsNewPort: who has a directory is said as it is now, and not as it was at the start.
func TestHolderTellsItsNewPort(t *testing.T) {
	dir := t.TempDir()
	first := startIn(t, dir)
	c := dialSoon(t, first.addr)
	port := strconv.Itoa(harness.FreePort(t))
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "port", port)))
	first.addr = "127.0.0.1:" + port
	requireRefused(t, dir, first)
}

// TestConfigSetDirMovesTheLock from one directory to the other, unless somebody has that; the append-only file stays in the old one, which is
// therefore kept as well until it is turned off.
func TestConfigSetDirMovesTheLock(t *testing.T) {
	const protected = "yes"
	old, next, taken := t.TempDir(), t.TempDir(), t.TempDir()
	first := startIn(t, old, "--enable-protected-configs", protected)
	c := dialSoon(t, first.addr)
	other := startIn(t, taken)
	dialSoon(t, other.addr)
	refusal := string(c.Do("CONFIG", "SET", "dir", taken))
	require.Contains(t, refusal, "-ERR CONFIG SET failed (possibly related to argument 'dir') - ")
	require.Contains(t, refusal, fmt.Sprintf("process %d ", other.Process.Pid))
	requireRefused(t, old, first)
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "dir", next)))
	requireRefused(t, next, first)
	second := startIn(t, old, "--enable-protected-configs", protected)
	dialSoon(t, second.addr)

	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "appendonly", "yes")))
	require.Eventually(t, func() bool {
		return strings.Contains(string(c.Do("INFO", "persistence")), "aof_rewrites:1")
	}, 10*time.Second, 5*time.Millisecond)
	third := t.TempDir()
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "dir", third)))
	requireRefused(t, next, first)
	requireRefused(t, third, first)
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "appendonly", "no")))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(next, lockNote))
		return os.IsNotExist(err)
	}, 10*time.Second, 5*time.Millisecond)
	fourth := startIn(t, next)
	dialSoon(t, fourth.addr)
}

// TestCachesShareADirectory: servers that keep nothing on disk may stand in one directory, even in that of one that does, until one of them
// is told to save a snapshot all the same: whoever does that first has the directory.
func TestCachesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	cache := []string{"--save", "", "--appendonly", "no"}
	first := startIn(t, dir, cache...)
	a := dialSoon(t, first.addr) // before the next port is chosen
	second := startIn(t, dir, cache...)
	b := dialSoon(t, second.addr)
	require.NoFileExists(t, filepath.Join(dir, lockNote))
	require.Equal(t, "+OK\r\n", string(a.Do("SET", "of", "first")))
	require.Equal(t, "+OK\r\n", string(b.Do("SET", "of", "second")))
	require.Equal(t, "+OK\r\n", string(a.Do("SAVE")))
	require.Equal(t, "-ERR\r\n", string(b.Do("SAVE")))
	second.logs(fmt.Sprintf("process %d ", first.Process.Pid))
	require.Contains(t, string(b.Do("CONFIG", "SET", "save", "60 1")), fmt.Sprintf("process %d ", first.Process.Pid))
	require.Contains(t, string(b.Do("CONFIG", "SET", "appendonly", "yes")), fmt.Sprintf("process %d ", first.Process.Pid))
	require.Equal(t, "+OK\r\n", string(b.Do("SET", "of", "second again")), "nothing is refused for a snapshot that somebody asked for")
	requireRefused(t, dir, first)
	require.NoError(t, first.Process.Kill())
	first.Wait()
	require.Equal(t, "+OK\r\n", string(b.Do("SAVE")))
	requireRefused(t, dir, second)
}

// TestFixBesideAServer: headgate check --fix cut the file that a server was writing.
func TestFixBesideAServer(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir, "--appendonly", "yes", "--save", "")
	require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SET", "k", "v")))
	holder := fmt.Sprintf("process %d ", s.Process.Pid)
	for _, looked := range []string{dir, filepath.Join(dir, "appendonlydir")} {
		_, stderr, exit := run(t, nil, "check", looked, "--fix")
		require.Equal(t, 1, exit)
		require.Contains(t, stderr, holder)
		out, _, exit := run(t, nil, "check", looked)
		require.Zero(t, exit)
		require.Contains(t, out, holder)
	}
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(0)
	out, _, exit := run(t, nil, "check", dir, "--fix")
	require.Zero(t, exit)
	require.NotContains(t, out, "in use")
}

// TestVanishedDirectoryCameBackWithoutItsLock: a rewrite, or CONFIG SET appendonly yes, made a data directory again that had been moved away or
// deleted, a second server started there beside the first, and acknowledged writes were lost.
func TestVanishedDirectoryCameBackWithoutItsLock(t *testing.T) {
	for name, vanish := range map[string]func(dir string) error{
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"deleted": os.RemoveAll,
	} {
		t.Run(name+" under a log", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.Mkdir(dir, 0o700))
			s := startIn(t, dir, "--appendonly", "yes", "--save", "")
			c := dialSoon(t, s.addr)
			require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
			require.NoError(t, vanish(dir))
			c.Do("BGREWRITEAOF")
			s.logs("could not be rewritten")
			require.NoDirExists(t, dir)
			require.Contains(t, s.log.String(), "no longer the one that this server has locked")

			require.NoError(t, os.Mkdir(dir, 0o700))
			second := startIn(t, dir, "--appendonly", "yes", "--save", "")
			d := dialSoon(t, second.addr)
			require.Equal(t, "+OK\r\n", string(d.Do("SET", "k", "of the second")))
			c.Do("BGREWRITEAOF")
			require.Eventually(t, func() bool { return strings.Count(s.log.String(), "could not be rewritten") > 1 }, 10*time.Second, time.Millisecond)
			require.NoError(t, s.Process.Kill())
			s.Wait()
			require.NoError(t, second.Process.Kill())
			second.Wait()
			third := startIn(t, dir, "--appendonly", "yes", "--save", "")
			require.Equal(t, "$13\r\nof the second\r\n", string(dialSoon(t, third.addr).Do("GET", "k")))
		})
		t.Run(name+" before a log", func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.Mkdir(dir, 0o700))
			s := startIn(t, dir)
			c := dialSoon(t, s.addr)
			require.NoError(t, vanish(dir))
			require.Contains(t, string(c.Do("CONFIG", "SET", "appendonly", "yes")), "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - ")
			require.NoDirExists(t, dir)
			require.Equal(t, "-ERR\r\n", string(c.Do("SAVE")))

			require.NoError(t, os.Mkdir(dir, 0o700))
			require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "appendonly", "yes")))
			requireRefused(t, dir, s)
		})
	}
}

// TestAppendOnlyWhereNothingCanBeWritten: CONFIG SET answered OK, nothing was logged, and the log said that the file goes on as it was.
func TestAppendOnlyWhereNothingCanBeWritten(t *testing.T) {
	s := startIn(t, unwritable(), "--save", "")
	c := dialSoon(t, s.addr)
	refusal := string(c.Do("CONFIG", "SET", "appendonly", "yes"))
	require.Contains(t, refusal, "-ERR CONFIG SET failed (possibly related to argument 'appendonly') - the data directory cannot be written: ")
	require.Contains(t, string(c.Do("CONFIG", "GET", "appendonly")), "$2\r\nno\r\n")
	require.NotContains(t, s.log.String(), "goes on as it was")
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
}

// TestDirByAnotherName: CONFIG SET dir to a link to its own directory said that this was in use by this very server.
func TestDirByAnotherName(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	s := startIn(t, dir, "--enable-protected-configs", "yes")
	c := dialSoon(t, s.addr)
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "dir", link)))
	require.Equal(t, "+OK\r\n", string(c.Do("SAVE")))
	requireRefused(t, link, s)
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "dir", t.TempDir())))
	dialSoon(t, startIn(t, dir).addr)
}

// TestRewriteDoesNotLoseTheLog: CONFIG REWRITE saved a dir in which the append-only file was not, and the next start began without data.
func TestRewriteDoesNotLoseTheLog(t *testing.T) {
	first, second, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "headgate.conf")
	require.NoError(t, os.WriteFile(file, []byte("appendonly yes\nsave \"\"\nenable-protected-configs yes\ndir "+first+"\n"), 0o600))
	s := startConfigured(t, file)
	c := dialSoon(t, s.addr)
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "dir", second)))
	require.Equal(t, "-ERR dir is "+second+", and the append-only file is still in "+first+", where the next start would not find it: "+
		"send CONFIG SET appendonly no, and then CONFIG SET appendonly yes, which begins it in dir, and then CONFIG REWRITE again\r\n", string(c.Do("CONFIG", "REWRITE")))
	restart := func() {
		require.NoError(t, s.Process.Kill())
		s.Wait()
		s = startConfigured(t, file)
		c = dialSoon(t, s.addr)
		require.Eventually(t, func() bool { return string(c.Do("GET", "k")) == "$1\r\nv\r\n" }, 10*time.Second, 10*time.Millisecond)
	}
	restart()
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "dir", second)))
	for _, value := range []string{"no", "yes"} {
		require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "SET", "appendonly", value)))
	}
	require.Eventually(t, func() bool {
		info := string(c.Do("INFO", "persistence"))
		return strings.Contains(info, "aof_rewrite_scheduled:0") && strings.Contains(info, "aof_rewrite_in_progress:0")
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, "+OK\r\n", string(c.Do("CONFIG", "REWRITE")))
	restart()
	require.Equal(t, "$"+fmt.Sprint(len(second))+"\r\n"+second+"\r\n", string(c.Do("CONFIG", "GET", "dir"))[len("*2\r\n$3\r\ndir\r\n"):])
}
