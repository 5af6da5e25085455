package limits_test

import (
	"fmt"
	"testing"
	"time"

	"headgate/persistence/crashfs"
	"headgate/server/config"
	"headgate/server/limiter"
	"headgate/server/limits"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestSlidingWindowForgetsItsSlices: under a steady load the hash of a sliding window has no more fields than slices that count, however
// long the load goes on, and a replay of the log comes to the same fields.
func TestSlidingWindowForgetsItsSlices(t *testing.T) {
	const slices, slice = 4, 25
	disk, now := crashfs.New("/data"), int64(servertest.WallAtStart)
	w, err := servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	load := func() {
		for range 20 * slices {
			w.Pass(slice * time.Millisecond)
			require.Contains(t, w.Words("RL.SLIDING", "k", "100", fmt.Sprintf("%dms", slices*slice), "SLICES", fmt.Sprint(slices)), "*5\r\n:0\r\n")
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", slices+1), w.Words("HLEN", "k"))
	}
	load()
	held := servertest.Digest(w.Srv)
	w.Kill()
	w, err = servertest.StartAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer func() { w.Kill() }()
	require.Equal(t, held, servertest.Digest(w.Srv))
	load()
}

// TestSlidingWindowForgetsAFewSlicesAtATime: when many slices have come to count no longer at once, each call takes a few of them out, and
// never one that counts.
func TestSlidingWindowForgetsAFewSlicesAtATime(t *testing.T) {
	w := servertest.NewClockClient(t)
	for range 60 {
		w.Now += 1e6
		w.Call("RL.SLIDING k 1000 100ms SLICES 100")
	}
	require.Equal(t, "60", w.Call("HLEN k"))
	w.Now += 70e6 // 29 of them have begun more than 100 slices ago
	for _, want := range []string{"53", "46", "39", "32", "32", "32"} {
		w.Call("RL.SLIDING k 1000 100ms SLICES 100")
		require.Equal(t, want, w.Call("HLEN k"))
		w.Now += 1e6
	}
}

// TestSlidingWindowOfTooManyFieldsIsRefused: a hash that no limiter has written is not read to its end for each call.
func TestSlidingWindowOfTooManyFieldsIsRefused(t *testing.T) {
	w := servertest.NewClockClient(t)
	for from := 0; from < limits.MaxSlidingFields; from += 100 {
		line := "HSET k"
		for field := from; field < from+100; field++ {
			line += fmt.Sprintf(" %d 1", field) // which was long ago
		}
		w.Call(line)
	}
	require.Equal(t, fmt.Sprint(limits.MaxSlidingFields), w.Call("HLEN k"))
	require.Equal(t, "[0 5 5 -1 0]", w.Call("RL.SLIDING k 5 1s PEEK"))
	w.Call("HSET k 1000000 1")
	require.Equal(t, string(limiter.ErrForeign), w.Call("RL.SLIDING k 5 1s PEEK"))
}
