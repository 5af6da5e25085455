package exec_test

import (
	"bytes"
	"testing"

	"headgate/server/command"
	"headgate/server/exec"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestEachQueued: whoever runs a queue elsewhere is told each command in its order, and which of them the client has lost the right to. Then the
// transaction is over, and the context is that of EXEC again.
func TestEachQueued(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "~*", "+@all")
	require.Equal(t, "+OK\r\n", user.Ask("MULTI"))
	user.Ask("SET", "a", "1")
	user.Ask("INCR", "a")
	user.Ask("GET", "a")
	require.Equal(t, "+OK\r\n", admin.Ask("ACL", "SETUSER", "u", "-incr"))

	cl := user.Conn.Client.(*command.Client)
	args := [][]byte{[]byte("EXEC")}
	c := &command.Ctx{
		Core: user.Srv.Core, Worker: user.Worker.(*exec.Worker), Turn: &command.Turn{}, Client: cl, Reply: cl.Reply, Cfg: user.Srv.Config.Get(),
		Cmd: user.Srv.Commands.Lookup([]byte("exec")), Args: args,
	}
	var told []string
	func() {
		user.Srv.Lock()
		defer user.Srv.Unlock()
		require.True(t, user.Srv.HasQueued(cl))
		user.Srv.EachQueued(c, func(refusal string) {
			told = append(told, string(bytes.Join(c.Args, []byte(" ")))+": "+refusal)
		})
	}()
	require.Equal(t, []string{
		"SET a 1: ",
		"INCR a: NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand",
		"GET a: ",
	}, told)
	require.Equal(t, "exec", c.Cmd.Name)
	require.Equal(t, args, c.Args)
	require.Equal(t, "$-1\r\n", user.Ask("GET", "a"), "it is run, not queued")
	require.Equal(t, "-ERR EXEC without MULTI\r\n", user.Ask("EXEC"))
}
