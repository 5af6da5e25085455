package server

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// refusedFull is what writes are answered with while the disk is full.
const refusedFull = "-MISCONF Errors writing to the AOF file: No space left on device\r\n"

// noSpace fails every write, and keeps no room for any.
func noSpace(op crashfs.Op) error {
	if op.Name == "write" || op.Name == "reserve" {
		return syscall.ENOSPC
	}
	return nil
}

// fill has the disk be full, with no room that was kept before. The server knows of it.
func (w *aofServer) fill(disk *crashfs.FS) {
	disk.Fault = noSpace
	w.srv.Lock()
	w.srv.propagate(w.srv.keys.DB(0), "DEL", "none")
	w.srv.Unlock()
	w.tick() // fails to write that, and gives back what was reserved
}

// fullCase is a limiter: how it is called, what it answers when it limits, and whether a look at it is refused. KEY stands for its key.
type fullCase struct {
	name, call, limited, peek string
}

var fullCases = []fullCase{
	{"CL.THROTTLE", "CL.THROTTLE KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "CL.THROTTLE KEY 0 1 1000 0"},
	{"RL.THROTTLE", "RL.THROTTLE KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "RL.THROTTLE KEY 0 1 1000 0"},
	{"GCRA", "GCRA KEY 0 1 1000", "*5\r\n:1\r\n:1\r\n:0\r\n:1000\r\n:1000\r\n", "GCRA KEY 0 1 1000 TOKENS 0"},
	{"RL.GCRA", "RL.GCRA KEY 1 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.GCRA KEY 1 1 1000s PEEK"},
	{"RL.BUCKET", "RL.BUCKET KEY 1 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.BUCKET KEY 1 1 1000s PEEK"},
	{"RL.QUEUE", "RL.QUEUE KEY 1 1 1000s", "*6\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n:-1\r\n", "RL.QUEUE KEY 1 1 1000s PEEK"},
	{"RL.FIXED", "RL.FIXED KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.FIXED KEY 1 1000s PEEK"},
	{"RL.SLIDING", "RL.SLIDING KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n", "RL.SLIDING KEY 1 1000s PEEK"},
	{"RL.LOG", "RL.LOG KEY 1 1000s", "*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.LOG KEY 1 1000s PEEK"},
	{"RL.LOG MEMBER", "RL.LOG KEY 1 1000s MEMBER a", "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:1000000\r\n", "RL.LOG KEY 1 1000s MEMBER a PEEK"},
	{"RL.ACQUIRE", "RL.ACQUIRE KEY 1 1000s", "*6\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n$-1\r\n", "RL.ACQUIRE KEY 1 1000s PEEK"},
	{"RL.TAKE", "RL.TAKE 1 p KEY", "*3\r\n:1\r\n:0\r\n*1\r\n*5\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:1000000\r\n", "RL.TAKE 1 p KEY PEEK"},
	{"INCREX", "INCREX KEY UBOUND 1", "*2\r\n:1\r\n:0\r\n", ""},
	{"INCREX BYFLOAT", "INCREX KEY BYFLOAT 1 UBOUND 1", "*2\r\n$1\r\n1\r\n$1\r\n0\r\n", ""},
}

// TestLimitedWhileDiskIsFull: as long as nothing can be written every limiter goes on to limit, and to be looked at; only what would
// have to be written is refused, and none of it is kept. The same holds while snapshots fail, and in scripts and transactions.
func TestLimitedWhileDiskIsFull(t *testing.T) {
	for _, tc := range fullCases {
		t.Run(tc.name, func(t *testing.T) {
			disk, now := crashfs.New("/data"), int64(wallAtStart)
			w, err := startAOF(disk, config.FsyncAlways, &now, nil)
			require.NoError(t, err)
			defer w.kill()
			on := func(call, key string) []string { return strings.Fields(strings.ReplaceAll(call, "KEY", key)) }
			script := func(words []string) []string {
				return append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, words...)
			}
			w.words("RL.POLICY", "SET", "p", "GCRA", "1", "1", "1000s")
			require.NotContains(t, w.words(on(tc.call, "used")...), "-ERR")
			w.fill(disk)
			require.Equal(t, refusedFull, w.words("SET", "k", "v"))
			check := func(refused string) {
				state := digest(w.srv)
				require.Contains(t, w.words(on(tc.call, "used")...), tc.limited)
				require.Contains(t, w.words(script(on(tc.call, "used"))...), tc.limited)
				require.Equal(t, refused, w.words(on(tc.call, "free")...))
				require.Contains(t, w.words(script(on(tc.call, "free"))...), "-MISCONF")
				if tc.peek != "" {
					require.Equal(t, "*", w.words(on(tc.peek, "free")...)[:1])
				}
				w.words("MULTI")
				w.words(on(tc.call, "used")...)
				require.Contains(t, w.words("EXEC"), tc.limited)
				require.Equal(t, state, digest(w.srv))
			}
			check(refusedFull)
			disk.Fault = nil
			require.False(t, w.tick())
			require.Equal(t, "*", w.words(on(tc.call, "free")...)[:1])
			w.words("DEL", "free")
			w.srv.Lock()
			w.srv.gate.refuse(gateUnsaved, errSaveFailed)
			w.srv.Unlock()
			check("-" + errSaveFailed + "\r\n")
		})
	}
}

// TestLeasesWhileDiskIsFull: a lease that is gone already is said to be gone; one that is there can be neither given back nor renewed.
func TestLeasesWhileDiskIsFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	w.words("RL.ACQUIRE", "k", "5", "1000s", "MEMBER", "id")
	w.words("RL.LOG", "log", "5", "1000s", "MEMBER", "id")
	w.words("SET", "counter", "7")
	w.fill(disk)
	w.words("SET", "k2", "v")
	state := digest(w.srv)
	require.Equal(t, ":0\r\n", w.words("RL.RELEASE", "k", "other"))
	require.Equal(t, ":0\r\n", w.words("RL.RENEW", "k", "other", "10s"))
	require.Equal(t, refusedFull, w.words("RL.RELEASE", "k", "id"))
	require.Equal(t, refusedFull, w.words("RL.RENEW", "k", "id", "10s"))
	require.Equal(t, refusedFull, w.words("RL.LOG", "log", "5", "1000s", "MEMBER", "id", "COST", "-1"))
	require.Contains(t, w.words("RL.FIXED", "counter", "5", "1000s"), "*5\r\n:1\r\n:5\r\n", "though it lacks its expiry")
	require.Equal(t, state, digest(w.srv))
}

// TestDiskFull: while the log cannot be written, writes are refused, and reads and limited decisions go on; it recovers by itself.
func TestDiskFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.words("SET", "k", "v")
	w.words("SET", "short", "v", "PX", "1000")
	w.words("CL.THROTTLE", "limited", "0", "1", "1000")
	w.fill(disk)
	for range 2 {
		require.Equal(t, refusedFull, w.words("SET", "k", "w"))
		require.Equal(t, refusedFull, w.words("CL.THROTTLE", "free", "5", "1", "60"))
		require.Contains(t, w.words("CL.THROTTLE", "limited", "0", "1", "1000"), ":1\r\n:1\r\n:0\r\n")
		require.NotContains(t, w.words("GET", "k"), "MISCONF")
		now += int64(2 * time.Second)
		require.Equal(t, "$-1\r\n", w.words("GET", "short"), "though its removal cannot be logged")
	}
	disk.Fault = nil
	require.False(t, w.tick())
	require.Equal(t, "+OK\r\n", w.words("SET", "after", "v"))
	state := digest(w.srv)
	w.kill()
	w, err = startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	require.Equal(t, state, digest(w.srv))
}

// TestNoLogEndsMISCONF: what cannot be logged is not refused when nobody wants it logged any more, and is not logged twice when somebody
// does again.
func TestNoLogEndsMISCONF(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.words("RPUSH", "list", "a")
	disk.Fault = noSpace
	require.Contains(t, w.words("RPUSH", "list", "b"), mayStand)
	require.Equal(t, refusedFull, w.words("RPUSH", "list", "c"))
	w.words("CONFIG", "SET", "appendonly", "no")
	require.Eventually(t, func() bool { return w.words("RPUSH", "list", "d") == ":3\r\n" }, waitLong, waitStep)
	disk.Fault = nil
	w.words("CONFIG", "SET", "appendonly", "yes")
	w.settle(t)
	w.kill()
	w, err = startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	require.Equal(t, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nd\r\n", w.words("LRANGE", "list", "0", "-1"))
}
