package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// requireStartRefuses wants a start in a directory to end by itself.
func requireStartRefuses(t *testing.T, dir string, args ...string) {
	t.Helper()
	_, stderr, exit := run(t, nil, append([]string{"--port", fmt.Sprint(harness.FreePort(t)), "--dir", dir}, args...)...)
	require.Equal(t, 1, exit, stderr)
}

// requireCheckRefuses wants headgate check to say that a start refuses a directory.
func requireCheckRefuses(t *testing.T, args ...string) {
	t.Helper()
	out, stderr, exit := run(t, nil, append([]string{"check"}, args...)...)
	require.Equal(t, 1, exit, out+stderr)
	require.Regexp(t, "verdict: damaged: .*the server refuses to start with it", out)
}

// TestCheckFixCutASnapshotToNothing: a dump.rdb whose first byte was damaged was taken for an append-only file, cut to nothing by --fix, and
// called whole. What a start reads as a snapshot is judged as one, and stays as it is.
func TestCheckFixCutASnapshotToNothing(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir)
	c := dialSoon(t, s.addr)
	for i := range 100 {
		require.Equal(t, "+OK\r\n", string(c.Do("SET", fmt.Sprint("k", i), fmt.Sprint(i))))
	}
	require.Equal(t, "+OK\r\n", string(c.Do("SAVE")))
	require.NoError(t, s.Process.Kill())
	s.Wait()
	good, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	require.NoError(t, err)
	for name, content := range map[string]string{
		"nothing":                "",
		"a damaged first byte":   "X" + string(good[1:]),
		"a part of its magic":    "REDI",
		"zeros":                  strings.Repeat("\x00", 3000),
		"a command":              "*1\r\n$8\r\nFLUSHALL\r\n",
		"a damaged version":      "REDISXXXX" + string(good[9:]),
		"bytes that say nothing": strings.Repeat("\x8c\x01\xff", 700),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "dump.rdb")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			requireStartRefuses(t, dir)
			requireCheckRefuses(t, dir)
			requireCheckRefuses(t, dir, "--fix")
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, content, string(left))
		})
	}
}

// TestCheckOfWhatIsNoFile: a pipe had headgate check wait for ever, and a device was called whole. A start waited for a pipe as well.
func TestCheckOfWhatIsNoFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, file := range []string{"dump.rdb", "appendonly.aof", "appendonly.aof.manifest"} {
			t.Run(name+" as "+file, func(t *testing.T) {
				dir := t.TempDir()
				require.NoError(t, put(filepath.Join(dir, file)))
				if file == "appendonly.aof" { // a start takes over an older server's file, and this is none
					out, _, exit := run(t, nil, "check", dir, "--fix")
					require.Equal(t, 1, exit)
					require.Contains(t, out, "verdict: damaged, but no start loads what is damaged")
					dialSoon(t, startIn(t, dir, "--appendonly", "yes").addr)
					return
				}
				requireCheckRefuses(t, dir, "--fix")
				if file == "dump.rdb" {
					requireStartRefuses(t, dir)
				}
			})
		}
	}
	t.Run("a pipe beside them", func(t *testing.T) {
		dir := t.TempDir()
		fifo(t, dir, "pipe")
		_, stderr, exit := run(t, nil, "check", dir)
		require.Equal(t, 1, exit)
		require.Contains(t, stderr, "neither a snapshot nor an append-only file")
	})
}

// TestASnapshotThatIsADanglingLink: a start with one begins empty, as redis-server does, and says why, as does headgate check, which said that it is refused.
func TestASnapshotThatIsADanglingLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "dump.rdb")
	require.NoError(t, os.Symlink(filepath.Join(dir, "none"), link))
	out, _, exit := run(t, nil, "check", dir)
	require.Equal(t, 1, exit)
	require.Contains(t, out, link+" is a link to a file that is missing")
	require.Contains(t, out, "a start with appendonly no loads nothing: ")
	require.Contains(t, out, "verdict: damaged, but no start loads what is damaged")
	out, stderr, exit := run(t, nil, "--dir", dir, "--check-config")
	require.Zero(t, exit, stderr)
	require.Contains(t, out, "a start loads nothing: "+link+" is a link to a file that is missing")

	s := startIn(t, dir)
	c := dialSoon(t, s.addr)
	require.Equal(t, ":0\r\n", string(c.Do("DBSIZE")))
	require.Contains(t, s.log.String(), "the snapshot is a link to a file that is missing")
	require.Equal(t, "+OK\r\n", string(c.Do("SAVE")))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular())
}

// TestDamagedBaseWasCutToNothing by a start and by --fix: with its first byte damaged it was taken for commands.
func TestDamagedBaseWasCutToNothing(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--appendonly", "yes", "--save", ""}
	s := startIn(t, dir, flags...)
	c := dialSoon(t, s.addr)
	for i := range 100 {
		require.Equal(t, "+OK\r\n", string(c.Do("SET", fmt.Sprint("k", i), fmt.Sprint(i))))
	}
	c.Do("BGREWRITEAOF")
	require.Eventually(t, func() bool {
		return strings.Contains(string(c.Do("INFO", "persistence")), "aof_rewrites:1")
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, s.Process.Kill())
	s.Wait()
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.base.rdb"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	base, err := os.ReadFile(files[0])
	require.NoError(t, err)
	base[0] ^= 1
	require.NoError(t, os.WriteFile(files[0], base, 0o600))
	// As Redis before version 7 names it, with the snapshot at its beginning.
	old := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(old, "appendonly.aof"), base, 0o600))

	requireCheckRefuses(t, dir, "--fix")
	requireCheckRefuses(t, old, "--fix")
	requireStartRefuses(t, dir, flags...)
	requireStartRefuses(t, old, flags...)
	require.NoError(t, os.Truncate(files[0], 0)) // as a file system leaves what was never written back
	requireCheckRefuses(t, dir, "--fix")
	requireStartRefuses(t, dir, flags...)
	require.NoError(t, os.WriteFile(files[0], base, 0o600))
	for _, path := range []string{files[0], filepath.Join(old, "appendonlydir", "appendonly.aof")} {
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, base, left, path)
	}
}

// TestVerdictIsOfWhatIsLoaded: a damaged snapshot that no start loads was called a reason not to start.
func TestVerdictIsOfWhatIsLoaded(t *testing.T) {
	const command = "*1\r\n$4\r\nPING\r\n"
	for name, c := range map[string]struct {
		files   map[string]string
		verdict string
	}{
		"a snapshot of another name": {map[string]string{"backup.rdb": "nothing"}, "verdict: damaged, but no start loads what is damaged"},
		"the snapshot":               {map[string]string{"dump.rdb": "nothing"}, "verdict: damaged: with appendonly no the server refuses to start with it\n"},
		"the log's end":              {map[string]string{"appendonly.aof": command + "*1"}, "verdict: damaged: with appendonly yes the server cuts off the damaged end and loads the rest, unless aof-load-truncated is no\n"},
		"both": {
			map[string]string{"dump.rdb": "nothing", "appendonly.aof": command + "*1"},
			"verdict: damaged: with appendonly no the server refuses to start with it; with appendonly yes the server cuts off",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
			out, stderr, exit := run(t, nil, "check", dir)
			require.Equal(t, 1, exit, out+stderr)
			require.Contains(t, out, c.verdict)
		})
	}
}

// TestCheckAgreesWithAStart: `headgate check` said that a start loads a snapshot that is damaged, and advised that start, before a verdict that it is refused.
func TestCheckAgreesWithAStart(t *testing.T) {
	const command = "*1\r\n$4\r\nPING\r\n"
	for name, c := range map[string]struct {
		files   map[string]string
		yes, no string // what is said of a start with appendonly yes and with no, with $ for the directory
		refuses string // which of them is refused
	}{
		"the snapshot": {
			map[string]string{"dump.rdb": "nothing"},
			"loads nothing; it begins empty, since there is no $/appendonlydir/appendonly.aof.manifest, and its next snapshot overwrites $/dump.rdb, which is damaged: to keep what is in it",
			"is refused: it would load $/dump.rdb\n", "no",
		},
		"the log": {
			map[string]string{"appendonly.aof": "nothing"},
			"is refused: it would load $/appendonly.aof\n", "loads nothing: there is no $/dump.rdb; it does not load the append-only file in $, which is damaged\n", "yes",
		},
		"the log's end": {
			map[string]string{"appendonly.aof": command + "*1"},
			"loads $/appendonly.aof up to where it is damaged\n", "loads nothing: there is no $/dump.rdb; it does not load the append-only file in $: to use", "",
		},
		"the manifest": {
			map[string]string{"appendonlydir/appendonly.aof.manifest": "nothing\n"},
			"is refused\n", "loads nothing: there is no $/dump.rdb; it does not load the append-only file in $/appendonlydir, which is damaged\n", "yes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "appendonlydir"), 0o755))
			for file, content := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
			out, stderr, exit := run(t, nil, "check", dir)
			require.Equal(t, 1, exit, out+stderr)
			require.Contains(t, out, "a start with appendonly yes "+strings.ReplaceAll(c.yes, "$", dir))
			require.Contains(t, out, "a start with appendonly no "+strings.ReplaceAll(c.no, "$", dir))
			if c.refuses != "" {
				require.Contains(t, out, "with appendonly "+c.refuses+" the server refuses to start with it")
				requireStartRefuses(t, dir, "--appendonly", c.refuses)
			}
		})
	}
}

// TestLostManifest: a copy of a data directory without its manifest was called intact, and the start overwrote its files.
func TestLostManifest(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--appendonly", "yes", "--save", ""}
	s := startIn(t, dir, flags...)
	c := dialSoon(t, s.addr)
	require.Equal(t, "+OK\r\n", string(c.Do("SET", "k", "v")))
	require.NoError(t, s.Process.Kill())
	s.Wait()
	manifest := filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")
	saved, err := os.ReadFile(manifest)
	require.NoError(t, err)
	for _, name := range []string{"nothing", "a dangling link"} {
		require.NoError(t, os.RemoveAll(manifest))
		if name != "nothing" {
			require.NoError(t, os.Symlink(filepath.Join(dir, "none"), manifest))
		}
		requireStartRefuses(t, dir, flags...)
		out, _, exit := run(t, nil, "check", dir)
		require.Equal(t, 1, exit)
		require.Contains(t, out, "there is no manifest "+manifest, name)
		require.Contains(t, out, "the server refuses to start with it", name)
	}
	require.NoError(t, os.Remove(manifest))
	require.NoError(t, os.WriteFile(manifest, saved, 0o600))
	require.Equal(t, "$1\r\nv\r\n", string(dialSoon(t, startIn(t, dir, flags...).addr).Do("GET", "k")))
}

// TestCheckOfAFileThatWasNeverBegun: what a server that was killed had left of its first append-only file was told of as another one that had lost its
// manifest.
func TestCheckOfAFileThatWasNeverBegun(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "appendonlydir")
	require.NoError(t, os.Mkdir(inner, 0o755))
	left := filepath.Join(inner, "temp-appendonly.aof.1.incr.aof")
	require.NoError(t, os.WriteFile(left, []byte("*1\r\n$4\r\nPING\r\n"), 0o600))
	s := startIn(t, dir, "--save", "")
	require.Equal(t, "+OK\r\n", string(dialSoon(t, s.addr).Do("SAVE")))
	require.NoError(t, s.Process.Kill())
	s.Wait()
	out, _, exit := run(t, nil, "check", dir)
	require.Zero(t, exit, "%s", out)
	require.Contains(t, out, left+": left by an append-only file that the server ended before it was begun; a start deletes it")
}

// TestUsersInWhatIsNoFile: a pipe in the ACL file's place had a start wait for ever, and a device filled memory.
func TestUsersInWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "users.acl")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, "/dev/zero"} {
		requireStartRefuses(t, dir, "--aclfile", path)
		_, stderr, exit := run(t, nil, "--aclfile", path, "--check-config")
		require.Equal(t, 1, exit)
		require.Contains(t, stderr, "t is not a regular file") // Redis capitalizes what the system says
	}
}
