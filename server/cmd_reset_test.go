package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// TestResetIsLoggedAsItsEffect: what was forgotten stays forgotten after a restart, and a refused call leaves everything.
func TestResetIsLoggedAsItsEffect(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	w.words("RL.GCRA", "g", "5", "1", "1000s")
	w.words("RL.LOG", "l", "5", "1000s", "COST", "3")
	w.words("RL.ACQUIRE", "a", "5", "1000s", "MEMBER", "id")
	w.words("SADD", "set", "1")
	require.Contains(t, w.words("RL.RESET", "a", "set"), "-WRONGTYPE ")
	require.Equal(t, ":2\r\n", w.words("RL.RESET", "g", "l"))
	state := digest(w.srv)
	w.kill()
	w, err = startAOF(disk.Clone(), config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer w.kill()
	require.Equal(t, state, digest(w.srv))
	require.Equal(t, ":0\r\n", w.words("EXISTS", "g", "l"))
	require.Equal(t, ":2\r\n", w.words("EXISTS", "a", "set"))
}

// TestResetOfAHashThatIsTooLong: no sliding window has so many fields, and no more of them are read.
func TestResetOfAHashThatIsTooLong(t *testing.T) {
	w := newClockClient(t)
	for i := range maxSlidingFields {
		w.ask("HSET", "h", strconv.Itoa(i), "1")
	}
	w.call("PEXPIRE h 60000")
	w.call("HSET h -1 1")
	require.Equal(t, errWrongType, w.call("RL.RESET h"))
	w.call("HDEL h -1")
	require.Equal(t, "1", w.call("RL.RESET h"))
}

// TestResetInTransactionsAndScripts also has it be a change that WATCH sees.
func TestResetInTransactionsAndScripts(t *testing.T) {
	w := newClockClient(t)
	w.call("RL.GCRA k 5 1 60s")
	require.Equal(t, "1", w.ask("EVAL", "return redis.call('RL.RESET', KEYS[1])", "1", "k"))
	w.call("RL.GCRA k 5 1 60s")
	w.call("MULTI")
	w.call("RL.RESET k")
	w.call("RL.GCRA k 5 1 60s")
	require.Equal(t, "[1 [0 5 4 -1 60000]]", w.call("EXEC"))
	w.call("WATCH k")
	require.Equal(t, "1", w.call("RL.RESET k"))
	w.call("MULTI")
	w.call("PING")
	require.Equal(t, "nil", w.call("EXEC"))
}

// TestResetWithoutRoom: what gives memory back is not refused for want of it.
func TestResetWithoutRoom(t *testing.T) {
	w := newClockClient(t)
	w.call("RL.GCRA k 5 1 60s")
	w.setShort(true)
	require.Equal(t, wireOOM, w.call("RL.GCRA new 5 1 60s"))
	require.Equal(t, "1", w.call("RL.RESET k"))
}

// TestResetIsNoDecision: neither the figures of decisions nor RL.TOP tell of it.
func TestResetIsNoDecision(t *testing.T) {
	w := newClockClient(t)
	w.call("RL.GCRA k 5 1 60s")
	decisions, top := w.call("INFO limiters"), w.call("RL.TOP HOT")
	require.True(t, strings.Contains(decisions, "gcra"), decisions)
	require.Equal(t, "1", w.call("RL.RESET k"))
	require.Equal(t, decisions, w.call("INFO limiters"))
	require.Equal(t, top, w.call("RL.TOP HOT"))
}

// TestResetNeedsTheRightToEachKey: @throttle is enough to call it, and every key is judged.
func TestResetNeedsTheRightToEachKey(t *testing.T) {
	admin, user := asUser(t, "~own:*", "+@throttle")
	admin.ask("RL.GCRA", "own:a", "5", "1", "60s")
	admin.ask("RL.GCRA", "other", "5", "1", "60s")
	require.Contains(t, user.ask("RL.RESET", "own:a", "other"), "-NOPERM ")
	require.Equal(t, ":2\r\n", admin.ask("EXISTS", "own:a", "other"))
	require.Equal(t, ":1\r\n", user.ask("RL.RESET", "own:a"))
}
