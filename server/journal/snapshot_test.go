package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSnapshotPace asks at made-up times whether a slice may begin.
func TestSnapshotPace(t *testing.T) {
	var p snapshotPace
	at, served := time.Unix(1000, 0), uint64(1)
	expect := func(what string, after time.Duration, commands uint64, ok bool, again time.Duration) {
		t.Helper()
		at, served = at.Add(after), served+commands
		gotOK, gotAgain := p.Ask(served, at)
		require.Equal(t, ok, gotOK, what)
		require.Equal(t, again, gotAgain, what)
	}
	expect("the first slice does not wait", 0, 1, true, snapshotPause)
	expect("in the pause, even with nobody there", snapshotPause/4, 0, false, snapshotPause*3/4)
	expect("after it clients come first", snapshotPause*3/4, 5, false, 0)
	expect("until a moment without any", time.Microsecond, 0, true, snapshotPause)
	expect("clients come first", snapshotPause+snapshotPatience/2, 5, false, 0)
	expect("for so long", snapshotPatience/2, 5, true, snapshotPause)
	expect("a pause", snapshotPause/2, 0, false, snapshotPause/2)
	expect("everybody has gone", snapshotCalm, 0, true, 0)
	expect("so there are no pauses", 0, 0, true, 0)
	expect("until somebody comes", 0, 1, true, snapshotPause)
	expect("and then there are", time.Microsecond, 0, false, snapshotPause-time.Microsecond)
}
