package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/limiter"
)

// inMemoryCases are the limiters of fullCases that ask limiter-when-unwritable: all but INCREX.
func inMemoryCases() (list []fullCase) {
	for _, tc := range limiterCases() {
		if tc.name != "RL.LOG MEMBER" { // whose second call passes
			list = append(list, tc)
		}
	}
	return list
}

// TestLimitersGoOnInMemory: with limiter-when-unwritable memory every limiter charges while the disk is full, and limits whoever has used
// up what it had; nothing else may write. Once the disk has room again the file is written anew, so that a restart forgets nothing.
func TestLimitersGoOnInMemory(t *testing.T) {
	for _, tc := range inMemoryCases() {
		t.Run(tc.name, func(t *testing.T) {
			disk, now := crashfs.New("/data"), int64(wallAtStart)
			memory := func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory }
			w, err := startAOF(disk, config.FsyncAlways, &now, memory)
			require.NoError(t, err)
			defer func() { w.kill() }()
			on := func(key string) []string { return strings.Fields(strings.ReplaceAll(tc.call, "KEY", key)) }
			w.words("RL.POLICY", "SET", "p", "GCRA", "1", "1", "1000s")
			w.fill(disk)
			require.Equal(t, refusedFull, w.words("SET", "k", "v"))
			require.Regexp(t, `^\*\d\r\n:0\r\n`, w.words(on("used")...))
			require.Contains(t, w.words(on("used")...), tc.limited)
			script := append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, on("scripted")...)
			require.Regexp(t, `^\*\d\r\n:0\r\n`, w.words(script...))
			require.Contains(t, w.words(on("scripted")...), tc.limited)
			require.Contains(t, w.words("INFO", "limiters"), "limiter_changes_in_memory:2\r\n")
			require.Equal(t, refusedFull, w.words("SET", "k", "v"))

			disk.Fault = nil
			require.False(t, w.tick())
			require.Contains(t, w.words(on("later")...), ":0\r\n")
			w.pass(time.Second)
			require.False(t, w.tick())
			w.settle(t)
			require.Equal(t, 1, w.srv.aof.rewriter.rewrites)
			state := digest(w.srv)
			w.kill()
			w, err = startAOF(disk, config.FsyncAlways, &now, memory)
			require.NoError(t, err)
			require.Equal(t, state, digest(w.srv))
			require.Contains(t, w.words(on("used")...), ":1\r\n:1\r\n:0\r\n")
		})
	}
}

// TestRestartForgetsWhatWasKeptInMemory: what limiters have kept while the disk was full is not in the log, and nothing of it is half in
// it either.
func TestRestartForgetsWhatWasKeptInMemory(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory })
	require.NoError(t, err)
	for i := range 3 {
		w.words("RL.LOG", "log", "9", "1000s", "MEMBER", fmt.Sprint("before", i))
		w.words("RL.SLIDING", "slices", "9", "1000s")
		w.words("RL.ACQUIRE", "leases", "9", "1000s", "MEMBER", fmt.Sprint("before", i))
		w.words("RL.FIXED", "count", "9", "1000s")
	}
	before := digest(w.srv)
	w.fill(disk)
	w.words("RL.LOG", "log", "9", "1000s", "MEMBER", "after")
	w.words("RL.SLIDING", "slices", "9", "1000s")
	w.words("RL.RELEASE", "leases", "before1")
	w.words("RL.RENEW", "leases", "before2", "9000s")
	w.words("RL.FIXED", "count", "9", "1000s", "COST", "-3")
	w.words("RL.GCRA", "new", "9", "1", "1s")
	require.NotEqual(t, before, digest(w.srv))
	disk.Fault = nil
	w.kill()
	w, err = startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	require.Equal(t, before, digest(w.srv))
}

// TestPoliciesSayWhatBecomesOfChanges: what a policy says wins over the configuration, and a take in which one limit cannot keep its charge
// charges none.
func TestPoliciesSayWhatBecomesOfChanges(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	w.words("RL.POLICY", "SET", "m", "GCRA", "9", "1", "1s", "when-unwritable", "memory")
	w.words("RL.POLICY", "SET", "l", "log", "9", "5", "WHEN-UNWRITABLE", "MEMORY")
	w.words("RL.POLICY", "SET", "e", "GCRA", "9", "1", "1s")
	require.Contains(t, w.words("RL.POLICY", "GET", "m"), "\r\nGCRA 9 1 1s WHEN-UNWRITABLE MEMORY\r\n")
	require.Contains(t, w.words("RL.POLICY", "SET", "x", "GCRA", "9", "1", "1s", "WHEN-UNWRITABLE", "never"), "-ERR syntax error")
	require.Contains(t, w.words("RL.POLICY", "SET", "x", "UNLIMITED", "WHEN-UNWRITABLE", "MEMORY"), "-ERR syntax error")
	require.Contains(t, w.words("RL.GCRA", "k", "9", "1", "1s", "WHEN-UNWRITABLE", "MEMORY"), "-ERR syntax error")
	w.fill(disk)
	state := digest(w.srv)
	require.Equal(t, refusedFull, w.words("RL.TAKE", "2", "m", "k1", "e", "k2"))
	require.Equal(t, refusedFull, w.words("RL.TAKE", "2", "l", "k1", "e", "k2"))
	require.Equal(t, refusedFull, w.words("RL.GCRA", "k", "9", "1", "1s"))
	require.Equal(t, state, digest(w.srv))
	require.Contains(t, w.words("RL.TAKE", "2", "m", "k1", "l", "k3"), "*3\r\n:0\r\n:-1\r\n")
	require.Contains(t, w.words("RL.TAKE", "2", "m", "k1", "l", "k3", "PEEK"), ":9\r\n:8\r\n")
	w.words("CONFIG", "SET", "limiter-when-unwritable", "memory")
	require.Contains(t, w.words("RL.TAKE", "2", "m", "k1", "e", "k2"), "*3\r\n:0\r\n:-1\r\n")
	require.Contains(t, w.words("CL.THROTTLE", "k4", "1", "1", "1"), "*5\r\n:0\r\n")
}

// TestWarningsOfChangesInMemory: the log tells of changes that are kept in memory once in a minute, and how many there were.
func TestWarningsOfChangesInMemory(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory })
	require.NoError(t, err)
	defer w.kill()
	var text bytes.Buffer
	previous := w.srv.log
	w.srv.log = slog.New(slog.NewTextHandler(&text, nil))
	defer func() { w.srv.log = previous }()
	w.fill(disk)
	for range 130 {
		w.words("RL.FIXED", "k", "1000", "1d")
		w.pass(time.Second)
	}
	require.Equal(t, 3, strings.Count(text.String(), "limiters go on in memory alone"), text.String())
	require.Contains(t, text.String(), "changes=60")
}
