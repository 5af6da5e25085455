package exec_test

import (
	"runtime"
	rtdebug "runtime/debug"
	"testing"
	"time"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var garbageSink []byte

// TestGarbageIsGivenBack: what a load has left in the heap goes back once no collection has run for a while, a second time for what was let
// go of meanwhile, and then not again until there is more of it.
func TestGarbageIsGivenBack(t *testing.T) {
	freed := make(chan struct{}, 10)
	srv := server.New(config.NewLive(servertest.Unsaved()), server.Options{FreeMemory: func() {
		rtdebug.FreeOSMemory()
		freed <- struct{}{}
	}})
	defer srv.Keys.Close()
	defer rtdebug.SetGCPercent(rtdebug.SetGCPercent(-1)) // no collection but those that are asked for
	look := func(at time.Duration) int {
		srv.Lock()
		srv.GiveBack(int64(at))
		busy := srv.Garbage.Busy
		srv.Unlock()
		if busy {
			require.Eventually(t, func() bool {
				srv.Lock()
				defer srv.Unlock()
				return !srv.Garbage.Busy
			}, 10*time.Second, time.Millisecond)
		}
		n := len(freed)
		for range n {
			<-freed
		}
		return n
	}
	litter := func() {
		for range 64 {
			garbageSink = make([]byte, 4<<20)
		}
		garbageSink = nil
	}
	runtime.GC()
	litter()
	require.Zero(t, look(1*time.Second))
	require.Zero(t, look(exec.GiveBackPause/2), "a collection may come by itself")
	require.Equal(t, 1, look(exec.GiveBackPause+2*time.Second))
	require.Zero(t, look(exec.GiveBackPause+3*time.Second), "one has just run")
	require.Equal(t, 1, look(3*exec.GiveBackPause), "once more, however little there is")
	require.Zero(t, look(3*exec.GiveBackPause+time.Second), "one has just run")
	require.Zero(t, look(5*exec.GiveBackPause), "nothing is left to give back")
	litter()
	require.Equal(t, 1, look(7*exec.GiveBackPause))
	garbageSink = make([]byte, 32<<20)
	require.Zero(t, look(7*exec.GiveBackPause+time.Second), "one has just run")
	require.Equal(t, 1, look(9*exec.GiveBackPause), "once more")
	require.Zero(t, look(9*exec.GiveBackPause+time.Second), "one has just run")
	garbageSink = nil
	runtime.GC()
	require.Zero(t, look(9*exec.GiveBackPause+2*time.Second), "one has just run")
	require.Equal(t, 1, look(15*exec.GiveBackPause), "what that has made free stayed, since the heap was no larger than before")
}

// TestLittleGarbageIsGivenBackSeldom: a few MiB of garbage go back as well, where that has not taken long or is long ago.
func TestLittleGarbageIsGivenBackSeldom(t *testing.T) {
	const mib, took = 1 << 20, int64(time.Second)
	var g exec.Garbage
	require.EqualValues(t, 4*mib, g.Worth(10*mib, 1), "it has never been done")
	g.SetGiven(100*took, took)
	require.EqualValues(t, 16*mib, g.Worth(10*mib, 110*took))
	require.EqualValues(t, 100*mib, g.Worth(800*mib, 149*took))
	require.EqualValues(t, 25*mib, g.Worth(800*mib, 150*took))
	require.EqualValues(t, 7*mib, g.WorthFree(7*mib, 149*took), "free pages are as garbage,")
	require.EqualValues(t, mib, g.WorthFree(7*mib, 150*took), "or less of them is enough")
}

// TestDeletedDataIsGivenBack: a value that was there when the last collection ran is garbage once it is deleted, although nobody has looked.
func TestDeletedDataIsGivenBack(t *testing.T) {
	defer rtdebug.SetGCPercent(rtdebug.SetGCPercent(-1))
	freed := 0
	w := servertest.NewClockClient(t)
	w.Srv.Garbage.Free = func() { rtdebug.FreeOSMemory(); freed++ }
	look := func(at time.Duration) {
		w.Srv.Lock()
		w.Srv.GiveBack(int64(at))
		w.Srv.Unlock()
		require.Eventually(t, func() bool {
			w.Srv.Lock()
			defer w.Srv.Unlock()
			return !w.Srv.Garbage.Busy
		}, 10*time.Second, time.Millisecond)
	}
	w.Call("SETRANGE value 100000000 x")
	runtime.GC()
	look(time.Second)
	for at := 2 * time.Second; at < 4*exec.GiveBackPause; at += exec.GiveBackPause { // until there is nothing more but the value
		look(at)
	}
	freed = 0
	look(5 * exec.GiveBackPause)
	require.Zero(t, freed, "nothing is garbage")
	w.Call("DEL value")
	look(6 * exec.GiveBackPause)
	require.Equal(t, 1, freed)
	look(8 * exec.GiveBackPause) // once more for what was let go of since
	look(8*exec.GiveBackPause + time.Second)
	look(10 * exec.GiveBackPause)
	require.Equal(t, 2, freed, "nothing more is")
}

// TestGarbageIsBounded: gc-percent is kept where little is in use, and gives way where it would be gigabytes of garbage, sooner if what is in
// use are long values.
func TestGarbageIsBounded(t *testing.T) {
	var set []int
	g := exec.Garbage{SetPace: func(percent int) { set = append(set, percent) }}
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	for _, step := range []struct {
		percent       int
		live, scanned uint64
	}{
		{400, 0, 0}, {400, 10 * mib, mib}, {400, 64 * mib, mib}, {400, 128 * mib, 128 * mib}, {400, 129 * mib, 128 * mib}, {400, 4 * gib, 2 * gib},
		{50, 4 * gib, 2 * gib}, {400, mib, kib}, {390, mib, kib}, {1000, mib, kib}, {400, gib, mib}, {400, gib, 256 * mib}, {400, 40 * gib, mib},
	} {
		g.KeepPace(step.percent, step.live, step.scanned, step.live+4*gib)
	}
	require.Equal(t, []int{400, 200, 100, 50, 400, 390, 1000, 25, 50, exec.LeastPace}, set)
}

// TestGarbageGrowsByDegrees: a heap uses what the process has of memory already, and outgrows it a step at a time.
func TestGarbageGrowsByDegrees(t *testing.T) {
	const mib = 1 << 20
	pace := 0
	g := exec.Garbage{SetPace: func(percent int) { pace = percent }}
	for i, step := range []struct {
		live, scanned, held uint64
		percent             int
	}{
		{100 * mib, 50 * mib, 100 * mib, 16},   // there is no room: one step
		{100 * mib, 50 * mib, 116 * mib, 32},   // one more
		{100 * mib, 50 * mib, 260 * mib, 180},  // a part of much room
		{200 * mib, 50 * mib, 260 * mib, 38},   // at once: what is in use has doubled
		{200 * mib, 50 * mib, 3000 * mib, 128}, // the most
		{800 * mib, 800 * mib, 800 * mib, 12},  // a part of what a collection reads
		{mib, mib, 2 * mib, 400},               // gc-percent
	} {
		g.KeepPace(400, step.live, step.scanned, step.held)
		require.Equal(t, step.percent, pace, "step %d", i)
	}
}

// TestGarbageOfScriptsIsBoundedSooner: gc-percent gives way where a script makes much of it, but a collection that has much to read is to be
// worth it.
func TestGarbageOfScriptsIsBoundedSooner(t *testing.T) {
	const mib = 1 << 20
	pace := 0
	g := exec.Garbage{SetPace: func(percent int) { pace = percent }}
	for i, step := range []struct {
		live, scanned, held uint64
		percent             int
	}{
		{4 * mib, mib, 20 * mib, 400},         // gc-percent
		{64 * mib, mib, 320 * mib, 100},       // there is room for more, which it is not to take
		{128 * mib, mib, 320 * mib, 50},       // what was made during a collection counts as live
		{128 * mib, mib, 128 * mib, 12},       // there is no room: one step
		{400 * mib, 200 * mib, 900 * mib, 50}, // a collection has much to read
	} {
		g.KeepScriptPace(400, step.live, step.scanned, step.held)
		require.Equal(t, step.percent, pace, "step %d", i)
	}
}

// TestAScriptsGarbageIsBoundedWhileItRuns: nobody else looks after it meanwhile, and nobody waits for a collection.
func TestAScriptsGarbageIsBoundedWhileItRuns(t *testing.T) {
	defer rtdebug.SetGCPercent(rtdebug.SetGCPercent(-1))
	w := servertest.NewClockClient(t)
	var set []int
	w.Srv.Garbage.SetPace = func(percent int) { set = append(set, percent) }
	w.Call("SETRANGE value 100000000 x") // in use beside what the script makes
	runtime.GC()
	require.Equal(t, "1", w.Ask("EVAL", "local t = {} for i = 1, 1000 do t[i % 10] = {i} end return 1", "0"))
	require.Empty(t, set, "it has made little")
	require.Equal(t, "1", w.Ask("EVAL", "local a = string.rep('x', 1e7) for i = 1, 10 do local b = table.concat({a, i}) end return 1", "0"))
	require.NotEmpty(t, set)
	require.Less(t, set[len(set)-1], 100)
}
