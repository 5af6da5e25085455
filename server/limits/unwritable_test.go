package limits_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// inMemoryCases are the limiters of servertest.LimiterCases that ask limiter-when-unwritable: all but INCREX.
func inMemoryCases() (list []servertest.LimiterCase) {
	for _, tc := range limiterCases() {
		if tc.Name != "RL.LOG MEMBER" { // whose second call passes
			list = append(list, tc)
		}
	}
	return list
}

// TestLimitersGoOnInMemory: with limiter-when-unwritable memory every limiter charges while the disk is full, and limits whoever has used
// up what it had; nothing else may write. Once the disk has room again the file is written anew, so that a restart forgets nothing.
func TestLimitersGoOnInMemory(t *testing.T) {
	for _, tc := range inMemoryCases() {
		t.Run(tc.Name, func(t *testing.T) {
			disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
			memory := func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory }
			w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, memory)
			require.NoError(t, err)
			defer func() { w.Kill() }()
			on := func(key string) []string { return strings.Fields(strings.ReplaceAll(tc.Call, "KEY", key)) }
			w.Words("RL.POLICY", "SET", "p", "GCRA", "1", "1", "1000s")
			w.Fill(disk)
			require.Equal(t, servertest.RefusedFull, w.Words("SET", "k", "v"))
			require.Regexp(t, `^\*\d\r\n:0\r\n`, w.Words(on("used")...))
			require.Contains(t, w.Words(on("used")...), tc.Limited)
			script := append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, on("scripted")...)
			require.Regexp(t, `^\*\d\r\n:0\r\n`, w.Words(script...))
			require.Contains(t, w.Words(on("scripted")...), tc.Limited)
			require.Contains(t, w.Words("INFO", "limiters"), "limiter_changes_in_memory:2\r\n")
			require.Equal(t, servertest.RefusedFull, w.Words("SET", "k", "v"))

			disk.SetFault(nil)
			require.False(t, w.Tick())
			require.Contains(t, w.Words(on("later")...), ":0\r\n")
			w.Pass(time.Second)
			require.False(t, w.Tick())
			w.Settle(t)
			require.Equal(t, 1, w.Srv.AOF.Rewriter.Rewrites)
			state := servertest.Digest(w.Srv)
			w.Kill()
			w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, memory)
			require.NoError(t, err)
			require.Equal(t, state, servertest.Digest(w.Srv))
			require.Contains(t, w.Words(on("used")...), ":1\r\n:1\r\n:0\r\n")
		})
	}
}

// TestKeysInMemoryFillNoLog: keys that limiters keep in memory alone, while the disk is full, may expire in any number: what waits for the
// disk stays bounded.
func TestKeysInMemoryFillNoLog(t *testing.T) {
	const keys, length, most = 6_000, 8 << 10, 24 << 20 // 48 MiB of names
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory })
	require.NoError(t, err)
	defer func() { w.Kill() }()
	w.Fill(disk)
	for i := range keys {
		w.Words("RL.FIXED", fmt.Sprintf("%0*d", length, i), "5", "1ms")
		now += 2e6
		if i%50 == 49 {
			w.Words("DBSIZE")
			w.Tick()
		}
	}
	for range keys { // expiry is bounded by time, and so may take several rounds
		if w.Words("DBSIZE") == ":0\r\n" {
			break
		}
		now += 1e9
		w.Tick()
	}
	require.Equal(t, ":0\r\n", w.Words("DBSIZE"))
	require.Less(t, w.Srv.AOF.Waiting, most)
	require.Positive(t, w.Srv.AOF.Waiting)

	disk.SetFault(nil)
	w.Pass(time.Second)
	require.False(t, w.Tick())
	w.Settle(t)
	require.Zero(t, w.Srv.AOF.Waiting)
}

// TestRestartForgetsWhatWasKeptInMemory: what limiters have kept while the disk was full is not in the log, and nothing of it is half in
// it either.
func TestRestartForgetsWhatWasKeptInMemory(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory })
	require.NoError(t, err)
	for i := range 3 {
		w.Words("RL.LOG", "log", "9", "1000s", "MEMBER", fmt.Sprint("before", i))
		w.Words("RL.SLIDING", "slices", "9", "1000s")
		w.Words("RL.ACQUIRE", "leases", "9", "1000s", "MEMBER", fmt.Sprint("before", i))
		w.Words("RL.FIXED", "count", "9", "1000s")
	}
	before := servertest.Digest(w.Srv)
	w.Fill(disk)
	w.Words("RL.LOG", "log", "9", "1000s", "MEMBER", "after")
	w.Words("RL.SLIDING", "slices", "9", "1000s")
	w.Words("RL.RELEASE", "leases", "before1")
	w.Words("RL.RENEW", "leases", "before2", "9000s")
	w.Words("RL.FIXED", "count", "9", "1000s", "COST", "-3")
	w.Words("RL.GCRA", "new", "9", "1", "1s")
	require.NotEqual(t, before, servertest.Digest(w.Srv))
	disk.SetFault(nil)
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, before, servertest.Digest(w.Srv))
}

// TestResetWhileDiskIsFull: of keys that hold nothing there is nothing to forget, which is no change; of others it is refused, or happens in
// memory and is counted, and is in the file as soon as that is written anew.
func TestResetWhileDiskIsFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Words("RL.LOG", "a", "1", "1000s")
	w.Words("RL.GCRA", "b", "1", "1", "1000s")
	w.Words("SADD", "set", "1")
	w.Fill(disk)
	state := servertest.Digest(w.Srv)
	require.Equal(t, ":0\r\n", w.Words("RL.RESET", "none"))
	require.Equal(t, ":0\r\n", w.Words("EVAL", "return redis.call('RL.RESET', 'none')", "0"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RESET", "none", "a"))
	require.Contains(t, w.Words("EVAL", "return redis.call('RL.RESET', 'a')", "0"), "-MISCONF")
	w.Words("MULTI")
	require.Equal(t, "+QUEUED\r\n", w.Words("RL.RESET", "a"))
	require.Equal(t, "*1\r\n"+servertest.RefusedFull, w.Words("EXEC"))
	require.Equal(t, state, servertest.Digest(w.Srv))
	w.Words("CONFIG", "SET", "limiter-when-unwritable", "memory")
	require.Contains(t, w.Words("RL.RESET", "a", "set"), "-WRONGTYPE")
	require.Equal(t, ":2\r\n", w.Words("RL.RESET", "a", "b", "a", "none"))
	require.Contains(t, w.Words("INFO", "limiters"), "limiter_changes_in_memory:2\r\n")
	require.Contains(t, w.Words("RL.LOG", "a", "1", "1000s", "PEEK"), ":0\r\n")
	disk.SetFault(nil)
	require.False(t, w.Tick())
	w.Pass(time.Second)
	require.False(t, w.Tick())
	w.Settle(t)
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, ":0\r\n", w.Words("EXISTS", "a", "b"))
}

// TestPoliciesSayWhatBecomesOfChanges: what a policy says wins over the configuration, and a take in which one limit cannot keep its charge
// charges none.
func TestPoliciesSayWhatBecomesOfChanges(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	w.Words("RL.POLICY", "SET", "m", "GCRA", "9", "1", "1s", "when-unwritable", "memory")
	w.Words("RL.POLICY", "SET", "l", "log", "9", "5", "WHEN-UNWRITABLE", "MEMORY")
	w.Words("RL.POLICY", "SET", "e", "GCRA", "9", "1", "1s")
	require.Contains(t, w.Words("RL.POLICY", "GET", "m"), "\r\nGCRA 9 1 1s WHEN-UNWRITABLE MEMORY\r\n")
	require.Contains(t, w.Words("RL.POLICY", "SET", "x", "GCRA", "9", "1", "1s", "WHEN-UNWRITABLE", "never"), "-ERR syntax error")
	require.Contains(t, w.Words("RL.POLICY", "SET", "x", "UNLIMITED", "WHEN-UNWRITABLE", "MEMORY"), "-ERR syntax error")
	require.Contains(t, w.Words("RL.GCRA", "k", "9", "1", "1s", "WHEN-UNWRITABLE", "MEMORY"), "-ERR syntax error")
	w.Fill(disk)
	state := servertest.Digest(w.Srv)
	require.Equal(t, servertest.RefusedFull, w.Words("RL.TAKE", "2", "m", "k1", "e", "k2"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.TAKE", "2", "l", "k1", "e", "k2"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.GCRA", "k", "9", "1", "1s"))
	require.Equal(t, state, servertest.Digest(w.Srv))
	require.Contains(t, w.Words("RL.TAKE", "2", "m", "k1", "l", "k3"), "*3\r\n:0\r\n:-1\r\n")
	require.Contains(t, w.Words("RL.TAKE", "2", "m", "k1", "l", "k3", "PEEK"), ":9\r\n:8\r\n")
	w.Words("CONFIG", "SET", "limiter-when-unwritable", "memory")
	require.Contains(t, w.Words("RL.TAKE", "2", "m", "k1", "e", "k2"), "*3\r\n:0\r\n:-1\r\n")
	require.Contains(t, w.Words("CL.THROTTLE", "k4", "1", "1", "1"), "*5\r\n:0\r\n")
}

// TestWarningsOfChangesInMemory: the log tells of changes that are kept in memory once in a minute, and how many there were.
func TestWarningsOfChangesInMemory(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory })
	require.NoError(t, err)
	defer w.Kill()
	var text bytes.Buffer
	previous := w.Srv.Logger
	w.Srv.Logger = slog.New(slog.NewTextHandler(&text, nil))
	defer func() { w.Srv.Logger = previous }()
	w.Fill(disk)
	for range 130 {
		w.Words("RL.FIXED", "k", "1000", "1d")
		w.Pass(time.Second)
	}
	require.Equal(t, 3, strings.Count(text.String(), "limiters continue in memory only"), text.String())
	require.Contains(t, text.String(), "changes=60")
}

// TestFileLacksChangesUntilItIsWrittenAnew: a rewrite that fails leaves the file without what was kept in memory, so that there is another.
func TestFileLacksChangesUntilItIsWrittenAnew(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		memory := func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory }
		w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, memory)
		require.NoError(t, err)
		w.Fill(disk)
		w.Words("RL.FIXED", "old", "9", "1000s")
		disk.SetFault(func(op crashfs.Op) error {
			if op.Name == "write" && strings.HasSuffix(op.Path, ".base.rdb") {
				return syscall.ENOSPC
			}
			return nil
		})
		require.False(t, w.Tick())
		w.Pass(time.Second)
		require.False(t, w.Tick())
		w.Settle(t)
		require.Zero(t, w.Srv.AOF.Rewriter.Rewrites)
		require.Equal(t, "+OK\r\n", w.Words("RENAME", "old", "new"))
		disk.SetFault(nil)
		time.Sleep(time.Minute)
		w.Pass(time.Minute)
		require.False(t, w.Tick())
		w.Settle(t)
		state := servertest.Digest(w.Srv)
		w.Kill()
		w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, memory)
		require.NoError(t, err)
		require.Equal(t, state, servertest.Digest(w.Srv))
		w.Kill()
	})
}

// TestKilledBeforeTheFileIsWrittenAnew: once the disk has room again, commands may build on what was kept in memory alone. A server that is
// killed before the file is written anew starts with what the file has.
func TestKilledBeforeTheFileIsWrittenAnew(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	memory := func(cfg *config.Config) { cfg.Unwritable = limiter.KeepInMemory }
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, memory)
	require.NoError(t, err)
	w.Words("SET", "before", "v")
	w.Fill(disk)
	w.Words("RL.FIXED", "old", "9", "1000s")
	disk.SetFault(func(op crashfs.Op) error {
		if op.Name == "create" && strings.HasSuffix(op.Path, ".base.rdb") {
			return syscall.ENOSPC
		}
		return nil
	})
	require.False(t, w.Tick())
	require.Equal(t, "+OK\r\n", w.Words("RENAME", "old", "new"))
	require.Equal(t, ":1\r\n", w.Words("EXISTS", "new"))
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "v"))
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, memory)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, ":2\r\n", w.Words("EXISTS", "before", "after", "old", "new"))
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "v"))
}

// TestLeasesOfPoliciesInMemory: a lease that was taken in memory alone, since its policy says so, can be renewed and given back, though the
// directive is error. What the log has of other keys stays as it is.
func TestLeasesOfPoliciesInMemory(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	w.Words("RL.POLICY", "SET", "p", "ACQUIRE", "1", "1000s", "WHEN-UNWRITABLE", "MEMORY")
	w.Words("RL.ACQUIRE", "logged", "1", "1000s", "MEMBER", "id")
	w.Words("SELECT", "1")
	w.Words("RL.ACQUIRE", "k", "1", "1000s", "MEMBER", "id")
	w.Words("SELECT", "0")
	w.Fill(disk)
	take := func() (id string) {
		lines := strings.Split(w.Words("RL.TAKE", "1", "p", "k"), "\r\n")
		require.Equal(t, ":0", lines[1])
		return lines[len(lines)-2]
	}
	id := take()
	require.Contains(t, w.Words("RL.TAKE", "1", "p", "k"), "*4\r\n:1\r\n")
	require.Equal(t, ":1\r\n", w.Words("RL.RENEW", "k", id, "9s"))
	require.Equal(t, ":1\r\n", w.Words("RL.RELEASE", "k", id))
	require.Equal(t, ":0\r\n", w.Words("RL.RELEASE", "k", id))
	take()
	require.Equal(t, ":1\r\n", w.Words("RL.RESET", "k"))
	id = take()
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RELEASE", "logged", "id"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RESET", "k", "logged"))
	w.Words("SELECT", "1")
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RELEASE", "k", "id"), "the key of another database")
	w.Words("SELECT", "0")

	disk.SetFault(nil)
	w.Pass(time.Second)
	require.False(t, w.Tick())
	w.Settle(t)
	w.Fill(disk)
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RELEASE", "k", id), "the file has it by now")
}
