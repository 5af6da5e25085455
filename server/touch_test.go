package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoTouch has a client whose commands are no uses of keys, and ends that in each way there is.
func TestNoTouch(t *testing.T) {
	w := newClockClient(t)
	w.call("SET k v")
	rest := func(seconds int64) string {
		w.now += seconds * 1e9
		return w.call("OBJECT IDLETIME k")
	}
	require.Equal(t, "5", rest(5))
	require.Equal(t, "OK", w.call("CLIENT NO-TOUCH ON"))
	w.call("GET k")
	w.call("EVAL return~redis.call('get',KEYS[1]) 1 k")
	require.Equal(t, "10", rest(5))
	w.call("TOUCH k")
	require.Equal(t, "0", rest(0), "TOUCH is there for that")
	require.Equal(t, "5", rest(5))
	w.call("CLIENT NO-TOUCH OFF")
	require.False(t, w.srv.gate.has(gateAttended))
	w.call("GET k")
	require.Equal(t, "0", rest(0))
	w.call("CLIENT NO-TOUCH ON")
	w.call("RESET")
	require.False(t, w.srv.gate.has(gateAttended))
}
