package gateway

import (
	"bytes"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestACallIsSmall: many are under way at a time, and all of them should be in the processor's caches. What only some need is elsewhere.
func TestACallIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(call{}), uintptr(512))
}

// TestWaitIsWhatIsLeft: a call that is sent later than it came says for how long it still may wait, and nothing else of it changes.
func TestWaitIsWhatIsLeft(t *testing.T) {
	for _, left := range []struct {
		time  time.Duration
		words string
	}{{time.Hour, "3600000"}, {1500 * time.Microsecond, "2"}, {0, "1"}} {
		for before, after := range map[string]string{
			"RL.GCRA WAIT 1 1 1h wait 2s":          "RL.GCRA WAIT 1 1 1h wait " + left.words,
			"RL.LOG k 1 1s WAIT 8s MEMBER WAIT":    "RL.LOG k 1 1s WAIT " + left.words + " MEMBER WAIT",
			"RL.ACQUIRE k 1 1s MEMBER 8s WAIT 100": "RL.ACQUIRE k 1 1s MEMBER 8s WAIT " + left.words,
		} {
			args := bytes.Fields([]byte(before))
			require.Equal(t, after, string(bytes.Join(withWait(args, left.time), []byte(" "))))
			require.Equal(t, before, string(bytes.Join(args, []byte(" "))))
		}
	}
}
