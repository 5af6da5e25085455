package journal_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"headgate/persistence/check"
	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var (
	cutEvery = flag.Int("aof.step", 61, "a file is cut at every so many bytes")
	bitFlips = flag.Int("aof.flips", 500, "random bit flips")
)

const incrName = "/data/appendonlydir/appendonly.aof.1.incr.aof"

// writtenLog returns a file system with a log of at least size bytes, its history by the log's length after each unit, and the data in the end.
func writtenLog(t *testing.T, rnd *rand.Rand, size int) (disk *crashfs.FS, states map[int]string, now int64) {
	disk, now = crashfs.New("/data"), servertest.WallAtStart
	w, err := servertest.StartAOF(disk, config.FsyncNo, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	states = map[int]string{0: ""}
	for {
		now += 1e6
		_, ended := w.Ask(servertest.RandomUnit(rnd))
		require.False(t, ended)
		text, err := disk.ReadFile(incrName)
		require.NoError(t, err)
		states[len(text)] = servertest.Digest(w.Srv)
		if len(text) >= size {
			return disk, states, now
		}
	}
}

// loadCopy starts a server on a copy of the file system in which the log has other content.
func loadCopy(t *testing.T, disk *crashfs.FS, text []byte, now int64, change func(*config.Config)) (*servertest.AOFServer, *crashfs.FS, error) {
	t.Helper()
	changed := disk.Clone()
	require.NoError(t, changed.WriteFile(incrName, text))
	w, err := servertest.StartAOF(changed, config.FsyncNo, &now, change)
	return w, changed, err
}

func strict(cfg *config.Config) { cfg.AOFLoadTruncated = false }

// TestLogCutAnywhere: a log that ends anywhere is loaded up to its last whole unit, or refused if it has to be whole.
func TestLogCutAnywhere(t *testing.T) {
	size := 128 << 10
	if *cutEvery > 1 {
		size = 32 << 10
	}
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 2))
	disk, states, now := writtenLog(t, rnd, size)
	text, err := disk.ReadFile(incrName)
	require.NoError(t, err)
	before := "" // the data after the last batch that is whole
	for n := 0; n <= len(text); n++ {
		state, whole := states[n]
		if whole {
			before = state
		}
		if n%*cutEvery != 0 && !whole {
			continue
		}
		w, after, err := loadCopy(t, disk, text[:n], now, nil)
		require.NoError(t, err, "cut at %d", n)
		got := servertest.Digest(w.Srv)
		if got != before { // the next batch's unit may be whole but for its CRC line
			require.Contains(t, string(text[:n]), "*", "cut at %d", n)
			require.Equal(t, nextState(states, text, n), got, "cut at %d", n)
		}
		w.Ask(servertest.EncodeCommand("SET", "after", "all"))
		w.Kill()
		kept, err := after.ReadFile(incrName)
		require.NoError(t, err)
		require.Contains(t, string(kept[max(0, len(kept)-200):]), "after")
		if w, _, err = loadCopy(t, disk, text[:n], now, strict); whole {
			require.NoError(t, err, "cut at %d", n)
			w.Kill()
		} else {
			require.ErrorContains(t, err, "at offset ", "cut at %d", n)
			require.ErrorContains(t, err, "headgate check", "cut at %d", n)
		}
	}
}

// TestFixedLogStarts: wherever a log ends too early, one `headgate check --fix` makes it whole for check and for a start that cuts nothing, and
// loses no more than a start that does. An empty increment behind it, which a rewrite had begun, changes nothing.
func TestFixedLogStarts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 4))
	disk, _, now := writtenLog(t, rnd, 1<<10)
	text, err := disk.ReadFile(incrName)
	require.NoError(t, err)
	const manifest = "/data/appendonlydir/appendonly.aof.manifest"
	names, err := disk.ReadFile(manifest)
	require.NoError(t, err)
	for _, behind := range []bool{false, true} {
		if behind {
			require.NoError(t, disk.WriteFile(manifest, append(names, "file appendonly.aof.2.incr.aof seq 2 type i\n"...)))
			require.NoError(t, disk.WriteFile("/data/appendonlydir/appendonly.aof.2.incr.aof", nil))
		}
		for n := 0; n <= len(text); n += max(*cutEvery/5, 1) {
			w, started, err := loadCopy(t, disk, text[:n], now, nil)
			require.NoError(t, err, "cut at %d", n)
			state := servertest.Digest(w.Srv)
			w.Words("SET", "after", "all")
			after := servertest.Digest(w.Srv)
			w.Kill()
			w, err = servertest.StartAOF(started, config.FsyncNo, &now, strict)
			require.NoError(t, err, "cut at %d, by a start", n)
			require.Equal(t, after, servertest.Digest(w.Srv), "cut at %d", n)
			w.Kill()

			fixed := disk.Clone()
			require.NoError(t, fixed.WriteFile(incrName, text[:n]))
			for _, fix := range []bool{true, false} {
				var said strings.Builder
				c := check.Checker{FS: fixed, Fix: fix, Say: func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }}
				whole, err := c.Dir("/data/appendonlydir")
				require.NoError(t, err)
				require.True(t, whole, "cut at %d: %s", n, &said)
			}
			w, err = servertest.StartAOF(fixed, config.FsyncNo, &now, strict)
			require.NoError(t, err, "cut at %d, by --fix", n)
			require.Equal(t, state, servertest.Digest(w.Srv), "cut at %d", n)
			w.Kill()
		}
	}
}

// nextState is the data after the batch that begins before offset n and ends behind it.
func nextState(states map[int]string, text []byte, n int) string {
	for ; n <= len(text); n++ {
		if state, ok := states[n]; ok {
			return state
		}
	}
	return ""
}

// TestLogWithFlippedBits: no flipped bit is ever loaded as if it were right. The server refuses the file, or loads what stands before.
func TestLogWithFlippedBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 3))
	disk, states, now := writtenLog(t, rnd, 4<<10)
	text, err := disk.ReadFile(incrName)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, state := range states {
		known[state] = true
	}
	flip := func(bit int) {
		changed := []byte(string(text))
		changed[bit/8] ^= 1 << (bit % 8)
		w, _, err := loadCopy(t, disk, changed, now, nil)
		if err != nil {
			require.ErrorContains(t, err, "offset", "bit %d", bit)
			return
		}
		require.True(t, known[servertest.Digest(w.Srv)], "bit %d at byte %d of %q", bit%8, bit/8, around(text, bit/8))
		w.Kill()
	}
	if *bitFlips >= 8*len(text) {
		for bit := range 8 * len(text) {
			flip(bit)
		}
	}
	for range *bitFlips {
		flip(rnd.IntN(8 * len(text)))
	}
}

func around(text []byte, at int) string {
	return strings.ToValidUTF8(string(text[max(0, at-30):min(len(text), at+30)]), "?")
}

// TestLogWithZeroTail: a disk that has kept a file's length and not its content leaves zero bytes, however many.
func TestLogWithZeroTail(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 4))
	disk, states, now := writtenLog(t, rnd, 4<<10)
	text, err := disk.ReadFile(incrName)
	require.NoError(t, err)
	for _, zeros := range []int{1, 511, 512, 4096, 1 << 20, 5 << 20} {
		w, after, err := loadCopy(t, disk, append([]byte(string(text)), make([]byte, zeros)...), now, nil)
		require.NoError(t, err, "%d zeros", zeros)
		require.Equal(t, states[len(text)], servertest.Digest(w.Srv), "%d zeros", zeros)
		w.Kill()
		kept, err := after.ReadFile(incrName)
		require.NoError(t, err)
		require.Len(t, kept, len(text))
		_, _, err = loadCopy(t, disk, append([]byte(string(text)), make([]byte, zeros)...), now, strict)
		require.ErrorContains(t, err, "zero bytes at offset ")
	}
}

// TestLogDamagedFarFromItsEnd: what would give up more than 4 MiB is refused, with the place and with what to do.
func TestLogDamagedFarFromItsEnd(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 5))
	disk, _, now := writtenLog(t, rnd, 8<<10)
	text, err := disk.ReadFile(incrName)
	require.NoError(t, err)
	long := disk.Clone()
	w, err := servertest.StartAOF(long, config.FsyncNo, &now, nil)
	require.NoError(t, err)
	for range 700 {
		_, ended := w.Ask(servertest.EncodeCommand("SET", "long", strings.Repeat("x", 8000)))
		require.False(t, ended)
	}
	w.Kill()
	all, err := long.ReadFile(incrName)
	require.NoError(t, err)
	require.Greater(t, len(all), 5<<20)
	for _, change := range []struct{ what, old, new string }{
		{"a value", "\r\nINCR\r\n", "\r\nDECR\r\n"},
		{"a length", "\r\n$4\r\nINCR\r\n", "\r\n$5000000\r\nINCR\r\n"},
		{"the form", "*2\r\n$4\r\nINCR\r\n", "*2\r\n$3\r\nINCR\r\n"},
	} {
		require.Contains(t, string(text), change.old)
		_, _, err = loadCopy(t, long, []byte(strings.Replace(string(all), change.old, change.new, 1)), now, nil)
		require.ErrorContains(t, err, "offset", change.what)
		require.ErrorContains(t, err, incrName, change.what)
		require.ErrorContains(t, err, "headgate check DIR --fix", change.what)
	}
}

// TestWhatIsCutOffIsKept: batches behind damage in the middle of a small log, which were acknowledged, were dropped and gone. A start and `headgate check
// --fix` keep them in a file beside it, each time in another, and what a write has merely left unfinished in none.
func TestWhatIsCutOffIsKept(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 7))
	disk, states, now := writtenLog(t, rnd, 4<<10)
	text, err := disk.ReadFile(incrName)
	require.NoError(t, err)
	ends := slices.Sorted(maps.Keys(states))
	begin, end := ends[len(ends)/2], ends[len(ends)/2+1] // a batch in the middle
	batch := string(text[begin:end])
	for what, changed := range map[string]string{
		"a word":   strings.Replace(batch, "\r\n$", "\r\n!", 1),
		"a length": regexp.MustCompile(`\r\n\$\d+`).ReplaceAllString(batch, "\r\n$$900000"), // all that follows seems to be one command that is cut
	} {
		require.NotEqual(t, batch, changed, what)
		damaged := string(text[:begin]) + changed + string(text[end:])
		requireKept := func(fsys *crashfs.FS, name string) {
			left, err := fsys.ReadFile(incrName)
			require.NoError(t, err, what)
			kept, err := fsys.ReadFile(name)
			require.NoError(t, err, what)
			require.Equal(t, damaged[begin:], string(kept), what)
			require.Equal(t, string(text[:begin]), string(left[:begin]), what)
		}
		name := fmt.Sprintf("%s.cut-at-%d", incrName, begin)
		w, started, err := loadCopy(t, disk, []byte(damaged), now, nil)
		require.NoError(t, err, what)
		require.Equal(t, states[begin], servertest.Digest(w.Srv), what)
		w.Kill()
		requireKept(started, name)
		require.NoError(t, started.WriteFile(incrName, []byte(damaged)))
		w, err = servertest.StartAOF(started, config.FsyncNo, &now, nil)
		require.NoError(t, err, what)
		w.Kill()
		requireKept(started, name+"-2")

		fixed := disk.Clone()
		require.NoError(t, fixed.WriteFile(incrName, []byte(damaged)))
		require.Contains(t, examine(t, fixed, false), "and keeps them in a file named "+path.Base(name), what)
		require.Contains(t, examine(t, fixed, true), "are kept in "+name, what)
		requireKept(fixed, name)

		full := disk.Clone()
		require.NoError(t, full.WriteFile(incrName, []byte(damaged)))
		full.Limit(full.Used(), syscall.ENOSPC)
		_, err = servertest.StartAOF(full, config.FsyncNo, &now, nil)
		require.ErrorIs(t, err, syscall.ENOSPC, "%s: nothing is cut off that cannot be kept", what)
		left, err := full.ReadFile(incrName)
		require.NoError(t, err)
		require.Equal(t, damaged, string(left), what)
	}
	unfinished := text[:len(text)-3]
	w, started, err := loadCopy(t, disk, unfinished, now, nil)
	require.NoError(t, err)
	w.Kill()
	names, err := started.List(path.Dir(incrName))
	require.NoError(t, err)
	require.NotContains(t, strings.Join(names, " "), ".cut-at-")
}

// examine is what `headgate check` says of a disk, which it mends or not.
func examine(t *testing.T, disk *crashfs.FS, mend bool) string {
	t.Helper()
	var said strings.Builder
	c := check.Checker{FS: disk, Fix: mend, Say: func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }}
	whole, err := c.Dir("/data/appendonlydir")
	require.NoError(t, err)
	require.Equal(t, mend, whole, &said)
	return said.String()
}

// TestCommandsThatCannotBeReplayed: a command that fails when it is replayed is passed over behind a #GAP line, which says that something is
// missing; anywhere else the file is refused. What no server has logged is refused in any case.
func TestCommandsThatCannotBeReplayed(t *testing.T) {
	const gap, before, fails, after = "#GAP\r\n", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n", "*3\r\n$6\r\nRENAME\r\n$4\r\nnone\r\n$1\r\nb\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\n1\r\n"
	disk, _, now := writtenLog(t, rand.New(rand.NewPCG(servertest.SeedOf(t), 6)), 1)
	for _, tc := range []struct{ text, err string }{
		{before + gap + fails + after, ""},
		{gap + "*1\r\n$5\r\nMULTI\r\n" + before + fails + after + "*1\r\n$4\r\nEXEC\r\n", ""},
		{before + fails + after, `the command "RENAME" at offset 27 cannot be replayed: ERR no such key`},
		{before + fails + gap + after, `the command "RENAME" at offset 27 cannot be replayed: ERR no such key`},
		{gap + before + "*1\r\n$4\r\nNONE\r\n" + after, `the command "NONE" at offset 33 cannot be replayed: it is unknown`},
		{gap + before + "*2\r\n$3\r\nSET\r\n$1\r\na\r\n" + after, `the command "SET" at offset 33 cannot be replayed: it has a wrong number of arguments`},
	} {
		w, _, err := loadCopy(t, disk, []byte(tc.text), now, nil)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, "%q", tc.text)
			continue
		}
		require.NoError(t, err, "%q", tc.text)
		require.Equal(t, ":2\r\n", w.Words("EXISTS", "a", "b", "c"))
		w.Kill()
	}
}
