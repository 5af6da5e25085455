package limits_test

import (
	"strconv"
	"strings"
	"testing"

	"headgate/persistence/crashfs"
	"headgate/server/command"
	"headgate/server/config"
	"headgate/server/limits"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestResetIsLoggedAsItsEffect: what was forgotten stays forgotten after a restart, and a refused call leaves everything.
func TestResetIsLoggedAsItsEffect(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.Words("RL.GCRA", "g", "5", "1", "1000s")
	w.Words("RL.LOG", "l", "5", "1000s", "COST", "3")
	w.Words("RL.ACQUIRE", "a", "5", "1000s", "MEMBER", "id")
	w.Words("SADD", "set", "1")
	require.Contains(t, w.Words("RL.RESET", "a", "set"), "-WRONGTYPE ")
	require.Equal(t, ":2\r\n", w.Words("RL.RESET", "g", "l"))
	state := servertest.Digest(w.Srv)
	w.Kill()
	w, err = servertest.StartAOF(disk.Clone(), config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.Kill()
	require.Equal(t, state, servertest.Digest(w.Srv))
	require.Equal(t, ":0\r\n", w.Words("EXISTS", "g", "l"))
	require.Equal(t, ":2\r\n", w.Words("EXISTS", "a", "set"))
}

// TestResetOfAHashThatIsTooLong: no sliding window has so many fields, and no more of them are read.
func TestResetOfAHashThatIsTooLong(t *testing.T) {
	w := servertest.NewClockClient(t)
	for i := range limits.MaxSlidingFields {
		w.Ask("HSET", "h", strconv.Itoa(i), "1")
	}
	w.Call("PEXPIRE h 60000")
	w.Call("HSET h -1 1")
	require.Equal(t, command.ErrWrongType, w.Call("RL.RESET h"))
	w.Call("HDEL h -1")
	require.Equal(t, "1", w.Call("RL.RESET h"))
}

// TestResetInTransactionsAndScripts also has it be a change that WATCH sees.
func TestResetInTransactionsAndScripts(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.GCRA k 5 1 60s")
	require.Equal(t, "1", w.Ask("EVAL", "return redis.call('RL.RESET', KEYS[1])", "1", "k"))
	w.Call("RL.GCRA k 5 1 60s")
	w.Call("MULTI")
	w.Call("RL.RESET k")
	w.Call("RL.GCRA k 5 1 60s")
	require.Equal(t, "[1 [0 5 4 -1 60000]]", w.Call("EXEC"))
	w.Call("WATCH k")
	require.Equal(t, "1", w.Call("RL.RESET k"))
	w.Call("MULTI")
	w.Call("PING")
	require.Equal(t, "nil", w.Call("EXEC"))
}

// TestResetWithoutRoom: what gives memory back is not refused for want of it.
func TestResetWithoutRoom(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.GCRA k 5 1 60s")
	w.SetShort(true)
	require.Equal(t, servertest.WireOOM, w.Call("RL.GCRA new 5 1 60s"))
	require.Equal(t, "1", w.Call("RL.RESET k"))
}

// TestResetIsNoDecision: neither the figures of decisions nor RL.TOP tell of it.
func TestResetIsNoDecision(t *testing.T) {
	w := servertest.NewClockClient(t)
	w.Call("RL.GCRA k 5 1 60s")
	decisions, top := w.Call("INFO limiters"), w.Call("RL.TOP HOT")
	require.True(t, strings.Contains(decisions, "gcra"), decisions)
	require.Equal(t, "1", w.Call("RL.RESET k"))
	require.Equal(t, decisions, w.Call("INFO limiters"))
	require.Equal(t, top, w.Call("RL.TOP HOT"))
}

// TestResetNeedsTheRightToEachKey: @throttle is enough to call it, and every key is judged.
func TestResetNeedsTheRightToEachKey(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "~own:*", "+@throttle")
	admin.Ask("RL.GCRA", "own:a", "5", "1", "60s")
	admin.Ask("RL.GCRA", "other", "5", "1", "60s")
	require.Contains(t, user.Ask("RL.RESET", "own:a", "other"), "-NOPERM ")
	require.Equal(t, ":2\r\n", admin.Ask("EXISTS", "own:a", "other"))
	require.Equal(t, ":1\r\n", user.Ask("RL.RESET", "own:a"))
}
