package exec_test

import (
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestRefusedCommandsDoNotRun: a command that its client may not run is answered with the error and nothing else, and changes nothing.
func TestRefusedCommandsDoNotRun(t *testing.T) {
	for _, tc := range []struct{ name, begin, refusal string }{
		{"no right to the key", "AUTH u x", "NOPERM this user has no permissions to access one of the keys used as arguments"},
		{"no right to the command", "AUTH reader x", "NOPERM this user has no permissions to run the 'set' command"},
		{"subscribes", "SUBSCRIBE c", "ERR Can't execute 'set': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"},
		{"monitors", "MONITOR", "ERR Replica can't interact with the keyspace"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := servertest.NewClockClient(t)
			require.Equal(t, "OK", w.Ask("ACL", "SETUSER", "u", "on", "nopass", "~mine", "+@all"))
			require.Equal(t, "OK", w.Ask("ACL", "SETUSER", "reader", "on", "nopass", "~*", "+get"))
			other := servertest.NewWorkerClientOf(t, w.Srv)
			other.Ask(strings.Fields(tc.begin)...)
			require.Equal(t, "-"+tc.refusal+"\r\n", other.Ask("SET", "k", "v"))
			require.Equal(t, "0", w.Call("EXISTS k"))
		})
	}
	t.Run("has not authenticated", func(t *testing.T) {
		w := servertest.NewClockClient(t)
		require.Equal(t, "OK", w.Call("CONFIG SET requirepass secret"))
		other := servertest.NewWorkerClientOf(t, w.Srv)
		require.Equal(t, "-NOAUTH Authentication required.\r\n", other.Ask("SET", "k", "v"))
		require.Equal(t, "0", w.Call("EXISTS k"))
	})
}
