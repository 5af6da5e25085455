package journal_test

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/journal"
	"headgate/server/netpoll"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestLimitedWhileDiskIsFull: as long as nothing can be written every limiter goes on to limit, and to be looked at; only what would
// have to be written is refused, and none of it is kept. The same holds while snapshots fail, and in scripts and transactions.
func TestLimitedWhileDiskIsFull(t *testing.T) {
	for _, tc := range servertest.LimiterCases {
		t.Run(tc.Name, func(t *testing.T) {
			disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
			w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
			require.NoError(t, err)
			defer w.Kill()
			on := func(call, key string) []string { return strings.Fields(strings.ReplaceAll(call, "KEY", key)) }
			script := func(words []string) []string {
				return append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0"}, words...)
			}
			w.Words("RL.POLICY", "SET", "p", "GCRA", "1", "1", "1000s")
			require.NotContains(t, w.Words(on(tc.Call, "used")...), "-ERR")
			w.Fill(disk)
			require.Equal(t, servertest.RefusedFull, w.Words("SET", "k", "v"))
			check := func(refused string) {
				state := servertest.Digest(w.Srv)
				require.Contains(t, w.Words(on(tc.Call, "used")...), tc.Limited)
				require.Contains(t, w.Words(script(on(tc.Call, "used"))...), tc.Limited)
				require.Equal(t, refused, w.Words(on(tc.Call, "free")...))
				require.Contains(t, w.Words(script(on(tc.Call, "free"))...), "-MISCONF")
				if tc.Peek != "" {
					require.Equal(t, "*", w.Words(on(tc.Peek, "free")...)[:1])
				}
				w.Words("MULTI")
				w.Words(on(tc.Call, "used")...)
				require.Contains(t, w.Words("EXEC"), tc.Limited)
				require.Equal(t, state, servertest.Digest(w.Srv))
			}
			check(servertest.RefusedFull)
			disk.SetFault(nil)
			require.False(t, w.Tick())
			require.Equal(t, "*", w.Words(on(tc.Call, "free")...)[:1])
			w.Words("DEL", "free")
			w.Srv.Lock()
			w.Srv.Gate.Refuse(command.GateUnsaved, journal.ErrSaveFailed)
			w.Srv.Unlock()
			check("-" + journal.ErrSaveFailed + "\r\n")
		})
	}
}

// TestLeasesWhileDiskIsFull: a lease that is gone already is said to be gone; one that is there can be neither given back nor renewed.
func TestLeasesWhileDiskIsFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	w.Words("RL.ACQUIRE", "k", "5", "1000s", "MEMBER", "id")
	w.Words("RL.LOG", "log", "5", "1000s", "MEMBER", "id")
	w.Words("SET", "counter", "7")
	w.Fill(disk)
	w.Words("SET", "k2", "v")
	state := servertest.Digest(w.Srv)
	require.Equal(t, ":0\r\n", w.Words("RL.RELEASE", "k", "other"))
	require.Equal(t, ":0\r\n", w.Words("RL.RENEW", "k", "other", "10s"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RELEASE", "k", "id"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.RENEW", "k", "id", "10s"))
	require.Equal(t, servertest.RefusedFull, w.Words("RL.LOG", "log", "5", "1000s", "MEMBER", "id", "COST", "-1"))
	require.Contains(t, w.Words("RL.FIXED", "counter", "5", "1000s"), "*5\r\n:1\r\n:5\r\n", "though it lacks its expiry")
	require.Equal(t, state, servertest.Digest(w.Srv))
}

// TestDiskFull: while the log cannot be written, writes are refused, and reads and limited decisions go on; it recovers by itself.
func TestDiskFull(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Words("SET", "k", "v")
	w.Words("SET", "short", "v", "PX", "1000")
	w.Words("CL.THROTTLE", "limited", "0", "1", "1000")
	w.Fill(disk)
	for range 2 {
		require.Equal(t, servertest.RefusedFull, w.Words("SET", "k", "w"))
		require.Equal(t, servertest.RefusedFull, w.Words("CL.THROTTLE", "free", "5", "1", "60"))
		require.Contains(t, w.Words("CL.THROTTLE", "limited", "0", "1", "1000"), ":1\r\n:1\r\n:0\r\n")
		require.NotContains(t, w.Words("GET", "k"), "MISCONF")
		now += int64(2 * time.Second)
		require.Equal(t, "$-1\r\n", w.Words("GET", "short"), "though its removal cannot be logged")
	}
	disk.SetFault(nil)
	require.False(t, w.Tick())
	require.Equal(t, "+OK\r\n", w.Words("SET", "after", "v"))
	state := servertest.Digest(w.Srv)
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
}

// TestNoLogEndsMISCONF: what cannot be logged is not refused when nobody wants it logged any more, and is not logged twice when somebody
// does again.
func TestNoLogEndsMISCONF(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Words("RPUSH", "list", "a")
	disk.SetFault(servertest.NoSpace)
	require.Contains(t, w.Words("RPUSH", "list", "b"), journal.MayStand)
	require.Equal(t, servertest.RefusedFull, w.Words("RPUSH", "list", "c"))
	w.Words("CONFIG", "SET", "appendonly", "no")
	require.Eventually(t, func() bool { return w.Words("RPUSH", "list", "d") == ":3\r\n" }, servertest.WaitLong, servertest.WaitStep)
	disk.SetFault(nil)
	w.Words("CONFIG", "SET", "appendonly", "yes")
	w.Settle(t)
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nd\r\n", w.Words("LRANGE", "list", "0", "-1"))
}

// TestAppendOnlyOnAFullDisk: where there is no room for an append-only file, CONFIG SET appendonly yes is refused with the cause.
func TestAppendOnlyOnAFullDisk(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
		require.NoError(t, err)
		w.Words("CONFIG", "SET", "appendonly", "no")
		require.Eventually(t, func() bool { return !w.Logging() }, servertest.WaitLong, servertest.WaitStep)
		names, err := disk.List("/data")
		require.NoError(t, err)
		disk.Limit(disk.Used()+1<<20, full)
		reply := w.Words("CONFIG", "SET", "appendonly", "yes")
		require.Contains(t, reply, "-ERR CONFIG SET failed")
		require.Contains(t, reply, "the append-only file cannot be begun, which takes 4 MiB and what the data take: ")
		require.Contains(t, reply, full.Error())
		require.Contains(t, w.Words("CONFIG", "GET", "appendonly"), "\r\nno\r\n")
		require.Contains(t, w.Words("INFO", "persistence"), "aof_enabled:0\r\n")
		require.Equal(t, "+OK\r\n", w.Words("SET", "k", "v"))
		after, err := disk.List("/data")
		require.NoError(t, err)
		require.Equal(t, names, after)
		disk.Limit(0, nil)
		require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", "yes"))
		w.Settle(t)
		w.Kill()
	}
}

// TestAppendOnlyNotBegun: if it turns out after CONFIG SET appendonly yes that the file cannot be begun, writes are refused until it has been,
// or until it is not wanted any more. Limiters may go on in memory.
func TestAppendOnlyNotBegun(t *testing.T) {
	servertest.InBubble(t, func(t *testing.T) {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
		require.NoError(t, err)
		turn := func(value string) {
			require.Equal(t, "+OK\r\n", w.Words("CONFIG", "SET", "appendonly", value))
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				w.Pass(100 * time.Millisecond)
				require.False(t, w.Tick())
			}
		}
		for _, end := range []string{"no", "room"} {
			turn("no")
			w.Words("SET", "k", end)
			disk.SetFault(func(op crashfs.Op) error {
				if op.Name == "write" {
					return syscall.ENOSPC
				}
				return nil
			})
			turn("yes")
			require.Equal(t, servertest.RefusedFull, w.Words("SET", "k", "lost"))
			require.NotEmpty(t, w.Srv.Unready())
			info := w.Words("INFO", "persistence")
			require.Contains(t, info, "aof_enabled:1\r\n")
			require.Contains(t, info, "aof_last_write_status:err\r\n")
			require.Equal(t, servertest.RefusedFull, w.Words("RL.FIXED", "limit", "9", "1000s"))
			w.Words("CONFIG", "SET", "limiter-when-unwritable", "memory")
			require.Contains(t, w.Words("RL.FIXED", "limit", "9", "1000s"), "*5\r\n:0\r\n")
			require.NotContains(t, w.Words("INFO", "limiters"), "limiter_changes_in_memory:0\r\n")
			w.Words("CONFIG", "SET", "limiter-when-unwritable", "error")
			if end == "room" {
				disk.SetFault(nil)
			}
			turn(map[string]string{"no": "no", "room": "yes"}[end])
			require.Equal(t, "+OK\r\n", w.Words("SET", "k", "after"))
			require.Empty(t, w.Srv.Unready())
			disk.SetFault(nil)
		}
		state := servertest.Digest(w.Srv)
		w.Kill()
		w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
		require.NoError(t, err)
		require.Equal(t, state, servertest.Digest(w.Srv))
		w.Kill()
	})
}

// TestStartWithoutRoom: a start that has nothing to load, and no room for the append-only file, says so, and not that data cannot be loaded.
func TestStartWithoutRoom(t *testing.T) {
	disk := crashfs.New("/data")
	disk.SetFault(servertest.NoSpace)
	cfg := servertest.Unsaved()
	cfg.Dir, cfg.AppendOnly = "/data", true
	var text bytes.Buffer
	ended := make(chan int, 1)
	s := server.New(config.NewLive(cfg), server.Options{FS: disk, Log: slog.New(slog.NewTextHandler(&text, nil)), Exit: func(code int) {
		ended <- code
		runtime.Goexit()
	}})
	s.Load()
	require.Equal(t, 1, <-ended)
	require.Contains(t, text.String(), "the append-only file cannot be created, and there are no data yet: make room")
	require.Contains(t, text.String(), "no space left on device")
	require.NotContains(t, text.String(), "cannot be loaded")
	require.NotContains(t, text.String(), "is ready")
}

// TestCauseOfAnotherKind: an error that is none of the system's is told as it is, in one line.
func TestCauseOfAnotherKind(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	disk.SetFault(func(op crashfs.Op) error {
		if op.Name == "write" {
			return errors.New("the array is\noffline")
		}
		return nil
	})
	refused := "-" + journal.ErrDiskWrite + "write " + w.Srv.AOF.Log.Name() + ": the array is offline"
	require.Equal(t, refused+journal.MayStand+"\r\n", w.Words("SET", "k", "v"))
	require.Equal(t, refused+"\r\n", w.Words("SET", "k", "v"))
}

// startYielding is StartAOF with a client whose scripts yield soon: nobody else is served meanwhile, but what there is is committed.
func startYielding(t *testing.T, disk *crashfs.FS) *servertest.AOFServer {
	now := int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, func(cfg *config.Config) { cfg.BusyReplyThreshold = 1 })
	require.NoError(t, err)
	w.Conn = netpoll.Detached("127.0.0.1:1", "127.0.0.1:2", false)
	w.Ready = []*netpoll.Conn{w.Conn}
	w.Worker.Opened(w.Conn)
	return w
}

// aWhile is Lua that takes long enough to yield.
const aWhile = " for i = 1, 1e7 do end "

// TestScriptYieldsWhileDiskIsFull: a script that yielded is not answered as if it had changed nothing, though it was known when it went on that
// the disk is full.
func TestScriptYieldsWhileDiskIsFull(t *testing.T) {
	var replies string
	for try := 0; try < 10 && strings.Count(replies, journal.MayStand) != 2; try++ { // a busy machine may have them run in two batches
		disk := crashfs.New("/data")
		w := startYielding(t, disk)
		disk.SetFault(servertest.NoSpace)
		answers, _ := w.Ask(slices.Concat(servertest.EncodeCommand("SET", "before", "1"),
			servertest.EncodeCommand("EVAL", "redis.call('SET', KEYS[1], 1)"+aWhile+"return 'done'", "1", "k")))
		replies = string(answers)
		w.Kill()
	}
	require.Equal(t, 2, strings.Count(replies, journal.MayStand), replies)
}

// TestFullDiskIsRemembered: when a script yields it may turn out that the disk is full. That is known from then on, though the commands of the
// same batch were too long for the log in any case.
func TestFullDiskIsRemembered(t *testing.T) {
	disk := crashfs.New("/data")
	w := startYielding(t, disk)
	defer w.Kill()
	disk.Limit(disk.Used(), syscall.ENOSPC)
	disk.SetFault(servertest.NoSpace)
	w.Srv.Lock()
	w.Srv.Propagate(w.Srv.Keys.DB(0), "DEL", "none") // there is something to commit
	w.Srv.Unlock()
	replies := string(w.Feed(slices.Concat(servertest.EncodeCommand("SET", "large", strings.Repeat("x", 32<<20)), servertest.EncodeCommand("EVAL", aWhile+"return 'done'", "0"))))
	require.Contains(t, replies, "-"+journal.ErrDiskWrite)
	require.Contains(t, replies, "$4\r\ndone\r\n")
	require.NotEmpty(t, w.Srv.Unready())
	disk.SetFault(nil)
	disk.Limit(0, nil)
	require.False(t, w.Tick())
	require.Empty(t, w.Srv.Unready())
	require.Equal(t, "+OK\r\n", w.Words("SET", "k", "v"))
}

// TestLongCommandsLeaveOthersAlone: what is too long for the room that the log has is refused, and not what others write in the same batch.
func TestLongCommandsLeaveOthersAlone(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	disk.Limit(disk.Used(), syscall.ENOSPC)
	long := strings.Repeat("x", 32<<20)
	replies := w.Feed(slices.Concat(
		servertest.EncodeCommand("SET", "before", "v"),
		servertest.EncodeCommand("SET", "long", long),
		servertest.EncodeCommand("RL.FIXED", "limit", "9", "1000s"),
		servertest.EncodeCommand("MULTI"),
		servertest.EncodeCommand("SET", "queued", "v"),
		servertest.EncodeCommand("SET", "long", long),
		servertest.EncodeCommand("EXEC"),
		servertest.EncodeCommand("SET", "after", "v"),
	))
	require.Equal(t, "+OK\r\n"+servertest.RefusedFull+"*5\r\n:0\r\n:9\r\n:8\r\n:-1\r\n:1000000\r\n"+
		"+OK\r\n+QUEUED\r\n"+servertest.RefusedFull+"-EXECABORT Transaction discarded because of previous errors.\r\n+OK\r\n", string(replies))
	require.Empty(t, w.Srv.Unready())
	state := servertest.Digest(w.Srv)
	w.Kill()
	disk.Limit(0, nil)
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
}

// TestEffectsAfterAYield: what was written before a script is committed when it yields, and its own effects go on.
func TestEffectsAfterAYield(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w := startYielding(t, disk)
	replies, _ := w.Ask(slices.Concat(servertest.EncodeCommand("SET", "before", strings.Repeat("x", 1000)),
		servertest.EncodeCommand("EVAL", "redis.call('SET', KEYS[1], 1)"+aWhile+"return redis.call('CL.THROTTLE', KEYS[2], 1, 1, 30)[1]", "2", "k", "limiter")))
	require.Equal(t, "+OK\r\n:0\r\n", string(replies))
	state := servertest.Digest(w.Srv)
	w.Kill()
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
}

// TestCommitOfWhatOnlyReplicasGet: after a commit of nothing but what is for replicas, what is being written and what comes next do not share memory.
func TestCommitOfWhatOnlyReplicasGet(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w := startYielding(t, disk)
	w.Srv.Lock()
	w.Srv.Effects.Stream(func([]byte) {})
	w.Srv.Unlock()
	w.Words("SET", "first", strings.Repeat("x", 4000)) // whose memory what follows has, too
	w.Words("PUBLISH", "channel", "message")
	replies, _ := w.Ask(slices.Concat(servertest.EncodeCommand("SET", "before", strings.Repeat("x", 1000)),
		servertest.EncodeCommand("EVAL", "redis.call('SET', KEYS[1], 1)"+aWhile+"return 'done'", "1", "k")))
	require.Equal(t, "+OK\r\n$4\r\ndone\r\n", string(replies))
	state := servertest.Digest(w.Srv)
	w.Kill()
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
}

// TestCalledCommandPanics: a bug in a command that a script calls is an error to the script, and the log goes on.
func TestCalledCommandPanics(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	echo := w.Srv.Commands.Lookup([]byte("echo"))
	handler := echo.Handler
	echo.Handler = func(*command.Ctx) { panic("a bug") }
	require.Contains(t, w.Words("EVAL", "redis.call('SET', KEYS[1], 1) redis.call('ECHO', 'x')", "1", "k"), "-ERR a bug")
	echo.Handler = handler
	w.Words("SET", "after", "1")
	state := servertest.Digest(w.Srv)
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
}
