package servertest

import (
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/command"
	"headgate/server/config"

	"github.com/stretchr/testify/require"
)

// AnyCall is a command line of the right length for a command.
func AnyCall(cmd *command.Command) []string {
	words := strings.Split(cmd.FullName, "|")
	for len(words) < max(cmd.Arity, -cmd.Arity) {
		words = append(words, "1")
	}
	return words
}

// AsUser returns an administrator's connection, and one of a user with these rules.
func AsUser(t testing.TB, rules ...string) (admin, user *WorkerClient) {
	s := server.New(config.NewLive(Unsaved()), server.Options{})
	admin, user = NewWorkerClientOf(t, s), NewWorkerClientOf(t, s)
	require.Equal(t, "+OK\r\n", admin.Ask(append([]string{"ACL", "SETUSER", "u", "on", "nopass"}, rules...)...))
	require.Equal(t, "+OK\r\n", user.Ask("AUTH", "u", "x"))
	return admin, user
}
