package reference

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplies(t *testing.T) {
	s := Start(t, "--timeout", "7")
	texts, err := s.Do("EVAL", "return {1, 'a', {'b', {}, false}, redis.status_reply('c'), ''}", "0")
	require.NoError(t, err)
	require.Equal(t, []string{"1", "a", "b", "", "c", ""}, texts)

	_, err = s.Do("NOSUCH", "x")
	require.Equal(t, Error("ERR unknown command 'NOSUCH', with args beginning with: 'x' "), err)
	_, err = s.Text("EVAL", "return {1, 2}", "0")
	require.ErrorContains(t, err, "not one text")
	_, err = s.Map("ECHO", "odd")
	require.ErrorContains(t, err, "not pairs")

	values, err := s.Map("CONFIG", "GET", "timeout")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"timeout": "7"}, values)

	long := strings.Repeat("\r\n$3", readSize)
	text, err := s.Text("ECHO", long)
	require.NoError(t, err)
	require.Equal(t, long, text)
}
