package journal_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// randomDecision is a limiter's command over a few keys, among them some whose period is longer than an hour.
func randomDecision(rnd *rand.Rand) []byte {
	period := []string{"1", "60", "7200", "86400"}[rnd.IntN(4)]
	return servertest.EncodeCommand("CL.THROTTLE", "t"+period+strconv.Itoa(rnd.IntN(3)), "20", "10", period, strconv.Itoa(rnd.IntN(4)))
}

// TestRestartAnHourLater: a server that was killed and started an hour later decides as one that never stopped.
func TestRestartAnHourLater(t *testing.T) {
	rnd := rand.New(rand.NewPCG(servertest.SeedOf(t), 10))
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	always, err := servertest.StartAOF(crashfs.New("/data"), config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	defer always.Kill()
	for range 5 {
		for range 300 {
			now += rnd.Int64N(int64(200 * time.Millisecond))
			command := randomDecision(rnd)
			got, _ := w.Ask(command)
			want, _ := always.Ask(command)
			require.Equal(t, string(want), string(got))
		}
		w.Kill()
		now += int64(time.Hour)
		w, err = servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
	}
	w.Kill()
}

// TestClockSetBackWhileStopped: time goes on from the last one logged, so nobody waits for the clock to catch up.
func TestClockSetBackWhileStopped(t *testing.T) {
	for _, step := range []time.Duration{time.Second, time.Hour, 24 * time.Hour} {
		disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
		w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		require.Contains(t, w.Words("CL.THROTTLE", "k", "0", "1", "10"), ":0\r\n:1\r\n:0\r\n:-1\r\n")
		w.Kill()
		now -= int64(step)
		w, err = servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
		require.NoError(t, err)
		require.Contains(t, w.Words("CL.THROTTLE", "k", "0", "1", "10"), ":1\r\n:1\r\n:0\r\n:10\r\n", "it waits for its own period, not for %v", step)
		now += 20 * int64(time.Second)
		require.Contains(t, w.Words("CL.THROTTLE", "k", "0", "1", "10"), ":0\r\n:1\r\n:0\r\n:-1\r\n", "within twice its period")
		w.Kill()
	}
}

// TestDeliveryTimesAreKept: what a group has handed out is as old after a restart as it was before.
func TestDeliveryTimesAreKept(t *testing.T) {
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	w.Words("XADD", "s", "5-1", "f", "v")
	w.Words("XGROUP", "CREATE", "s", "g", "0")
	w.Words("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
	now += 7 * int64(time.Second)
	pending := w.Words("XPENDING", "s", "g", "-", "+", "10")
	require.Contains(t, pending, ":7000\r\n:1\r\n")
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncEverysec, &now, nil)
	require.NoError(t, err)
	require.Equal(t, pending, w.Words("XPENDING", "s", "g", "-", "+", "10"))
	require.NotContains(t, w.Words("XAUTOCLAIM", "s", "g", "d", "60000", "0"), "5-1")
	w.Kill()
}
