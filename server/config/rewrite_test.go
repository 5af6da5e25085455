package config

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence"
	"headgate/persistence/crashfs"
)

// rewriter returns what has a configuration written into the files that it was loaded from, and returns the file's text.
func rewriter(t *testing.T, live *Live, files map[string]string) func() string {
	return func() string {
		t.Helper()
		require.NoError(t, live.Rewrite(func(path string, data []byte) error {
			files[path] = string(data)
			return nil
		}))
		return files["/srv/h.conf"]
	}
}

// TestRewriteKeepsWhatWaits: what a SIGHUP has found changed for the next start was written back to what it is now. Users and the primary, which change
// while the server runs, are written as they are.
func TestRewriteKeepsWhatWaits(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "databases 16\nhz 20\n"}
	live, _, err := Load([]string{"h.conf", "--tcp-backlog", "99"}, nil, memoryHost(files))
	require.NoError(t, err)
	rewrite := rewriter(t, live, files)
	files["/srv/h.conf"] = "databases 8\nhz 20\nuser a on\n"
	for range 2 {
		notices, err := live.Reload()
		require.NoError(t, err)
		require.Equal(t, Notice{"/srv/h.conf", "databases has changed; it takes effect at the next start"}, notices[0])
		require.NoError(t, live.Set([]Pair{{"timeout", "9"}}, false))
		require.Equal(t, "databases 8\nhz 20\nuser a on\n\n# Added by CONFIG REWRITE\ntcp-backlog 99\ntimeout 9\n", rewrite())
	}
	live.SetUsers([]User{{Name: "b", Rules: []string{"on"}}})
	require.Contains(t, rewrite(), "databases 8\nhz 20\nuser b on\n")
	files["/srv/h.conf"] = strings.Replace(files["/srv/h.conf"], "databases 8", "databases 16", 1)
	_, err = live.Reload()
	require.NoError(t, err)
	require.Contains(t, rewrite(), "databases 16\n")
}

// TestRewriteOfWhatCommandsTookBack: what commands had changed, what CONFIG REWRITE had written, and what a SIGHUP had read came back at the next start,
// although commands had taken it back: a user with its password, and the primary of a server that was promoted.
func TestRewriteOfWhatCommandsTookBack(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "port 7000\n"}
	live, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
	rewrite := rewriter(t, live, files)
	live.SetReplicaOf(Address{"127.0.0.1", 7001})
	live.SetUsers([]User{{Name: "a", Rules: []string{"on"}}})
	require.Equal(t, "port 7000\n\n# Added by CONFIG REWRITE\nuser a on\nreplicaof 127.0.0.1 7001\n", rewrite())
	notices, err := live.Reload()
	require.NoError(t, err)
	require.Empty(t, notices)
	live.SetReplicaOf(Address{})
	live.SetUsers(nil)
	require.Equal(t, "port 7000\n\n# Added by CONFIG REWRITE\nreplicaof no one\n", rewrite())
}

// TestRewriteLeavesTheEnvironmentOut: a password that HEADGATE_REQUIREPASS gave came to be in the file, and was that of a later start without it.
func TestRewriteLeavesTheEnvironmentOut(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "timeout 5\nhz 20\n"}
	environment := []string{"HEADGATE_REQUIREPASS=secret", "HEADGATE_TIMEOUT=7", "HEADGATE_USER=a on", "HEADGATE_SAVE=60 1"}
	live, _, err := Load([]string{"h.conf", "--maxclients", "99"}, environment, memoryHost(files))
	require.NoError(t, err)
	rewrite := rewriter(t, live, files)
	require.Equal(t, "timeout 5\nhz 20\n\n# Added by CONFIG REWRITE\nmaxclients 99\n", rewrite(), "flags are written, as redis-server writes them")
	require.NoError(t, live.Set([]Pair{{"timeout", "8"}, {"requirepass", "new"}}, false))
	require.Equal(t, "timeout 8\nhz 20\n\n# Added by CONFIG REWRITE\nmaxclients 99\nrequirepass \"new\"\n", rewrite())
	require.Equal(t, "timeout 8\nhz 20\n\n# Added by CONFIG REWRITE\nmaxclients 99\nrequirepass \"new\"\n", rewrite(), "once more")
}

// TestReloadTakesBackWhatRewriteHadWritten: CONFIG REWRITE wrote directives, the operator deleted their lines, and SIGHUP left both in force, since the
// file had not set them when it was last read.
func TestReloadTakesBackWhatRewriteHadWritten(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "port 7000\n"}
	args, env := []string{"h.conf", "--maxclients", "99", "--dir", "data"}, []string{"HEADGATE_TIMEOUT=7"}
	live, _, err := Load(args, env, memoryHost(files))
	require.NoError(t, err)
	rewrite := rewriter(t, live, files)
	require.NoError(t, live.Set([]Pair{{"maxmemory", "200mb"}, {"policy", "api FIXED 1 1h"}, {"timeout", "9"}}, true))
	require.Equal(t, "port 7000\n\n# Added by CONFIG REWRITE\nmaxclients 99\ntimeout 9\nmaxmemory 200mb\npolicy api FIXED 1 1h\n", rewrite())
	require.NoError(t, live.Set([]Pair{{"hz", "20"}}, true))
	files["/srv/h.conf"] = "port 7000\n"
	notices, err := live.Reload()
	require.NoError(t, err)
	require.Empty(t, notices)
	for name, want := range map[string]string{
		"maxmemory": "0", "policy": "", // gone from the file
		"timeout":    "7",  // the environment has it
		"maxclients": "99", // the flag has it
		"hz":         "20", // CONFIG SET has it, and the file never had
	} {
		require.Equal(t, want, value(t, live, name), name)
	}
}

// TestReloadTakesBackWhatRewriteFound: the operator had written what CONFIG SET had done into the file, so that CONFIG REWRITE had nothing to write.
func TestReloadTakesBackWhatRewriteFound(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "port 7000\n"}
	live, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
	require.NoError(t, live.Set([]Pair{{"hz", "20"}}, true))
	files["/srv/h.conf"] = "port 7000\nhz 20\n"
	rewriter(t, live, files)()
	files["/srv/h.conf"] = "port 7000\n"
	_, err = live.Reload()
	require.NoError(t, err)
	require.Equal(t, "10", value(t, live, "hz"))
}

// TestReloadAfterARewriteThatFailed: what could not be written is not in the file, and so nothing is taken back when it is not found there.
func TestReloadAfterARewriteThatFailed(t *testing.T) {
	files := map[string]string{"/srv/h.conf": "port 7000\n"}
	live, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
	require.NoError(t, live.Set([]Pair{{"hz", "20"}}, true))
	require.Error(t, live.Rewrite(func(string, []byte) error { return errors.New("disk full") }))
	_, err = live.Reload()
	require.NoError(t, err)
	require.Equal(t, "20", value(t, live, "hz"))
}

// TestRewriteLeavesARelativeDirToItsFlag: the file got the directory itself, from which the same flag then started, and the next start failed.
func TestRewriteLeavesARelativeDirToItsFlag(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		args         []string
		set          []Pair
		after        string
	}{
		{name: "not in the file", before: "hz 20\n", args: []string{"--dir", "a"}, after: "hz 20\n"},
		{name: "the file's, from which it starts", before: "dir a\n", args: []string{"--dir", "b"}, after: "dir a\n"},
		{name: "an absolute one is written", before: "hz 20\n", args: []string{"--dir", "/a"}, after: "hz 20\n\n# Added by CONFIG REWRITE\ndir \"/a\"\n"},
		{name: "the last is absolute", before: "hz 20\n", args: []string{"--dir", "a", "--dir", "/a"}, after: "hz 20\n\n# Added by CONFIG REWRITE\ndir \"/a\"\n"},
		{name: "changed since", before: "dir a\n", args: []string{"--dir", "b"}, set: []Pair{{"dir", "/c"}}, after: "dir \"/c\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"/srv/h.conf": "enable-protected-configs yes\n" + tt.before}
			args := append([]string{"h.conf"}, tt.args...)
			live, _, err := Load(args, nil, memoryHost(files))
			require.NoError(t, err)
			require.NoError(t, live.Set(tt.set, false))
			require.Equal(t, "enable-protected-configs yes\n"+tt.after, rewriter(t, live, files)())
			if tt.set == nil {
				again, _, err := Load(args, nil, memoryHost(files))
				require.NoError(t, err)
				require.Empty(t, differing(live.Get(), again.Get()))
			}
		})
	}
}

// TestRewriteOfAGateway leaves save as it is: a gateway saves nothing, but the file may be the one of a server that does once upstream is gone.
func TestRewriteOfAGateway(t *testing.T) {
	for _, tt := range []struct {
		text, after       string
		args, environment []string
	}{
		{"save 60 1\n", "", nil, []string{"HEADGATE_UPSTREAM=redis://h"}},
		{"upstream redis://h\n", "", nil, nil},
		{"save 60 1\n", "\n# Added by CONFIG REWRITE\nupstream \"redis://h\"\n", []string{"--upstream", "redis://h"}, nil},
	} {
		files := map[string]string{"/srv/h.conf": tt.text}
		live, _, err := Load(append([]string{"h.conf"}, tt.args...), tt.environment, memoryHost(files))
		require.NoError(t, err)
		require.Equal(t, "", value(t, live, "save"))
		require.Equal(t, tt.text+tt.after, rewriter(t, live, files)())
	}
}

func TestRewrite(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before string
		args   []string
		set    []Pair
		after  string
	}{
		{name: "nothing to do", before: "# c\n\n  HZ   20\nsave ''\n", after: "# c\n\n  HZ   20\nsave ''\n"},
		{
			name:   "changed in place, the rest as it was",
			before: "# top\nport 7000\n\n   # indented\nTIMEOUT  5\nhz 20\n# end",
			set:    []Pair{{"timeout", "6"}},
			after:  "# top\nport 7000\n\n   # indented\ntimeout 6\nhz 20\n# end\n",
		},
		{
			name: "new ones under the mark", before: "port 7000\n", args: []string{"--maxclients", "50"},
			set:   []Pair{{"requirepass", "a \"b\"\n"}, {"proto-max-bulk-len", "2097152"}},
			after: "port 7000\n\n# Added by CONFIG REWRITE\nmaxclients 50\nproto-max-bulk-len 2mb\nrequirepass \"a \\\"b\\\"\\n\"\n",
		},
		{
			name: "the mark only once", before: "hz 20\n\n# Added by CONFIG REWRITE\nmaxclients 50\n", set: []Pair{{"timeout", "1"}},
			after: "hz 20\n\n# Added by CONFIG REWRITE\nmaxclients 50\ntimeout 1\n",
		},
		{
			name: "an alias gets the present name", before: "hash-max-ziplist-value 10\n", set: []Pair{{"hash-max-listpack-value", "1kb"}},
			after: "hash-max-listpack-value 1kb\n",
		},
		{
			name: "the last of several wins", before: "timeout 1\nhz 20\ntimeout 2\n# x\n", set: []Pair{{"timeout", "3"}},
			after: "hz 20\ntimeout 3\n# x\n",
		},
		{
			name: "back to the default", before: "timeout 1\n", set: []Pair{{"timeout", "0"}}, after: "timeout 0\n",
		},
		{
			name: "a directive of several lines", before: "client-output-buffer-limit normal 1mb 2mb 3\nhz 20\n",
			set:   []Pair{{"client-output-buffer-limit", "pubsub 0 0 0"}},
			after: "client-output-buffer-limit normal 1mb 2mb 3\nclient-output-buffer-limit replica 256mb 64mb 60\nclient-output-buffer-limit pubsub 0 0 0\nhz 20\n",
		},
		{
			name: "an include is not touched", before: "include inc.conf\nhz 20\n", set: []Pair{{"tcp-keepalive", "9"}},
			after: "include inc.conf\nhz 20\n\n# Added by CONFIG REWRITE\ntcp-keepalive 9\n",
		},
		{
			name: "an include further down wins over a line", before: "tcp-keepalive 1\ninclude inc.conf\n", set: []Pair{{"tcp-keepalive", "9"}},
			after: "tcp-keepalive 9\ninclude inc.conf\n\n# Added by CONFIG REWRITE\ntcp-keepalive 9\n",
		},
		{
			name: "directories", before: "dir a\ndir b\n", set: []Pair{{"dir", "c"}}, args: []string{"--enable-protected-configs", "yes"},
			after: "dir \"/srv/a/b/c\"\n\n# Added by CONFIG REWRITE\nenable-protected-configs yes\n",
		},
		{name: "addresses", before: "bind 127.0.0.1\n", args: []string{"--bind", "", "--unixsocket", "s"}, after: "bind \"\"\n\n# Added by CONFIG REWRITE\nunixsocket \"s\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"/srv/h.conf": tt.before, "/srv/inc.conf": "tcp-keepalive 100\n"}
			live, _, err := Load(append([]string{"h.conf"}, tt.args...), nil, memoryHost(files))
			require.NoError(t, err)
			require.NoError(t, live.Set(tt.set, false))
			require.NoError(t, live.Rewrite(func(path string, data []byte) error {
				require.NotEqual(t, tt.before, string(data), "called for nothing")
				files[path] = string(data)
				return nil
			}))
			require.Equal(t, tt.after, files["/srv/h.conf"])
			again, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
			require.NoError(t, err)
			require.Empty(t, differing(live.Get(), again.Get()))
		})
	}
}

func TestRewriteErrors(t *testing.T) {
	require.Equal(t, ErrNoFile, load(t, "").Rewrite(nil))

	files := map[string]string{"/srv/h.conf": "hz 20\n"}
	live, _, err := Load([]string{"h.conf"}, nil, memoryHost(files))
	require.NoError(t, err)
	cause := errors.New("disk full")
	fail := func(string, []byte) error { return cause }
	require.NoError(t, live.Rewrite(fail), "not called for nothing")
	require.NoError(t, live.Set([]Pair{{"hz", "30"}}, false))
	err = live.Rewrite(fail)
	require.EqualError(t, err, "Rewriting config file: disk full")
	require.ErrorIs(t, err, cause)

	files["/srv/h.conf"] = "hz 20\nnope 1\n"
	require.ErrorContains(t, live.Rewrite(fail), `Rewriting config file: /srv/h.conf:2: unknown directive "nope"`)

	delete(files, "/srv/h.conf")
	var written string
	require.NoError(t, live.Rewrite(func(_ string, data []byte) error { written = string(data); return nil }))
	require.Equal(t, "# Added by CONFIG REWRITE\nhz 30\n", written)
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "h.conf"), filepath.Join(dir, "link.conf")
	require.NoError(t, WriteFile(persistence.OS{}, path, []byte("one")))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, os.Symlink(path, link))
	require.NoError(t, WriteFile(persistence.OS{}, link, []byte("two")))

	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)

	require.Error(t, WriteFile(persistence.OS{}, filepath.Join(dir, "gone", "h.conf"), nil))
	require.Error(t, WriteFile(persistence.OS{}, dir, nil), "a directory cannot be replaced")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "no temporary file is left")
	entries, err = os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// TestWriteFileLeavesWhatIsNoFile: a pipe, a device or a directory is not replaced by a file, not even where a link leads to it.
func TestWriteFileLeavesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, folder := filepath.Join(dir, "pipe"), filepath.Join(dir, "folder")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, target := range []string{pipe, folder} {
		link := target + ".link"
		require.NoError(t, os.Symlink(target, link))
		before, err := os.Lstat(target)
		require.NoError(t, err)
		for _, path := range []string{target, link} {
			err := WriteFile(persistence.OS{}, path, []byte("x"))
			require.ErrorIs(t, err, persistence.ErrNotRegular, path)
			require.EqualError(t, err, "write "+target+": it is not a regular file")
			after, err := os.Stat(path)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after), path)
			require.Equal(t, before.Mode(), after.Mode(), path)
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, "no temporary file is left")
}

// TestPipesAreReadOnce: a configuration may come through a pipe, at the start; whoever opens that again waits for ever, or finds nothing in it
// and takes all that it said for taken back.
func TestPipesAreReadOnce(t *testing.T) {
	for name, lines := range map[string]string{"it": "hz 20\n", "what it includes": "include %s\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, pipe := filepath.Join(dir, "h.conf"), filepath.Join(dir, "pipe.conf")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			if strings.Contains(lines, "%s") {
				require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, lines, pipe), 0o600))
			} else {
				path = pipe
			}
			feed(t, pipe, "hz 20\n")
			live, _, err := Load([]string{path}, nil, OSHost())
			require.NoError(t, err)
			require.Equal(t, "20", value(t, live, "hz"))
			require.NoError(t, live.Set([]Pair{{"timeout", "5"}}, false))

			done := make(chan [2]error, 1)
			go func() {
				rewrite := live.Rewrite(func(string, []byte) error { return errors.New("written") })
				_, reload := live.Reload()
				done <- [2]error{rewrite, reload}
			}()
			select {
			case errs := <-done:
				require.ErrorContains(t, errs[0], "Rewriting config file: ")
				for _, err := range errs {
					require.ErrorIs(t, err, persistence.ErrNotRegular)
					require.ErrorContains(t, err, pipe+": it is not a regular file")
				}
			case <-time.After(10 * time.Second):
				feed(t, pipe, "")
				t.Fatal("it waits for the pipe")
			}
			require.Equal(t, []string{"20", "5"}, []string{value(t, live, "hz"), value(t, live, "timeout")})
		})
	}
}

// feed writes into a pipe once somebody reads from it.
func feed(t *testing.T, pipe, text string) {
	t.Helper()
	go func() {
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString(text)
			f.Close()
		}
	}()
}

// TestWriteFileSurvivesPowerCuts: wherever the machine loses its power, or the disk refuses an operation, the file is the old one or the
// new one, and the new one for good once that was said.
func TestWriteFileSurvivesPowerCuts(t *testing.T) {
	const path = "/etc/h.conf"
	before, after := bytes.Repeat([]byte("hz 20\n"), 500), bytes.Repeat([]byte("timeout 30\n"), 700)
	rnd := rand.New(rand.NewPCG(1, 2))
	for refused, done := 1, false; !done; refused++ {
		disk := crashfs.New("/etc")
		require.NoError(t, disk.WriteFile(path, before))
		disk.SetFault(func(op crashfs.Op) error {
			if op.Number == refused {
				return syscall.EIO
			}
			return nil
		})
		err := WriteFile(disk, path, after)
		done = disk.Ops() < refused
		require.Equal(t, done, err == nil)
		for range 50 {
			left, readErr := disk.Crash(rnd).ReadFile(path)
			require.NoError(t, readErr)
			if err != nil && bytes.Equal(left, before) {
				continue
			}
			require.Equal(t, string(after), string(left), "operation %d was refused", refused)
		}
	}
}
