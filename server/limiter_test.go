package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/persistence/crashfs"
	"headgate/server/config"
)

// TestSlidingWindowForgetsItsSlices: under a steady load the hash of a sliding window has no more fields than slices that count, however
// long the load goes on, and a replay of the log comes to the same fields.
func TestSlidingWindowForgetsItsSlices(t *testing.T) {
	const slices, slice = 4, 25
	disk, now := crashfs.New("/data"), int64(wallAtStart)
	w, err := startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	load := func() {
		for range 20 * slices {
			w.pass(slice * time.Millisecond)
			require.Contains(t, w.words("RL.SLIDING", "k", "100", fmt.Sprintf("%dms", slices*slice), "SLICES", fmt.Sprint(slices)), "*5\r\n:0\r\n")
		}
		require.Equal(t, fmt.Sprintf(":%d\r\n", slices+1), w.words("HLEN", "k"))
	}
	load()
	held := digest(w.srv)
	w.kill()
	w, err = startAOF(disk, config.FsyncAlways, &now, nil)
	require.NoError(t, err)
	defer func() { w.kill() }()
	require.Equal(t, held, digest(w.srv))
	load()
}

// TestSlidingWindowForgetsAFewSlicesAtATime: when many slices have come to count no longer at once, each call takes a few of them out, and
// never one that counts.
func TestSlidingWindowForgetsAFewSlicesAtATime(t *testing.T) {
	w := newClockClient(t)
	for range 60 {
		w.now += 1e6
		w.call("RL.SLIDING k 1000 100ms SLICES 100")
	}
	require.Equal(t, "60", w.call("HLEN k"))
	w.now += 70e6 // 29 of them have begun more than 100 slices ago
	for _, want := range []string{"53", "46", "39", "32", "32", "32"} {
		w.call("RL.SLIDING k 1000 100ms SLICES 100")
		require.Equal(t, want, w.call("HLEN k"))
		w.now += 1e6
	}
}

// TestSlidingWindowOfTooManyFieldsIsRefused: a hash that no limiter has written is not read to its end for each call.
func TestSlidingWindowOfTooManyFieldsIsRefused(t *testing.T) {
	w := newClockClient(t)
	for from := 0; from < maxSlidingFields; from += 100 {
		line := "HSET k"
		for field := from; field < from+100; field++ {
			line += fmt.Sprintf(" %d 1", field) // which was long ago
		}
		w.call(line)
	}
	require.Equal(t, fmt.Sprint(maxSlidingFields), w.call("HLEN k"))
	require.Equal(t, "[0 5 5 -1 0]", w.call("RL.SLIDING k 5 1s PEEK"))
	w.call("HSET k 1000000 1")
	require.Equal(t, errNotInteger, w.call("RL.SLIDING k 5 1s PEEK"))
}
