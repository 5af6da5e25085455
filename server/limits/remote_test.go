package limits_test

import (
	"testing"

	"headgate/server/command"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestHoldPolicy: a policy that was set or deleted at another server holds here at once, or no longer.
func TestHoldPolicy(t *testing.T) {
	w := servertest.NewClockClient(t)
	hold := func(name, text string, deleted bool) {
		w.Srv.Lock()
		defer w.Srv.Unlock()
		w.Srv.HoldPolicy(&command.Ctx{Core: w.Srv.Core, DB: w.Srv.Keys.DB(0), Now: w.Now / 1e6, NowNs: w.Now, Cfg: w.Srv.Config.Get()}, name, text, deleted)
	}
	hold("p", "FIXED 7 1h", false)
	hold("q", "FIXED 2 1h", false)
	require.Equal(t, "[0 -1 [[0 7 6 -1 3600000]]]", w.Call("RL.TAKE 1 p k"))
	hold("p", "", true)
	hold("nosuch", "", true)
	require.Equal(t, "ERR no such policy 'p'", w.Call("RL.TAKE 1 p k"))
	require.Equal(t, "[q FIXED 2 1h]", w.Call("RL.POLICY LIST"))
	hold("q", "", true)
	require.Equal(t, "[]", w.Call("RL.POLICY LIST"))
	require.Equal(t, "1", w.Call("DBSIZE"))
}
