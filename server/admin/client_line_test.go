package admin_test

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestClientListShowsInput: qbuf is what has come of a client and is not run: its running command, half a command, what waits behind a
// blocked one.
func TestClientListShowsInput(t *testing.T) {
	p := servertest.NewPipeServer(t)
	c, half, waits := p.Session(), p.Session(), p.Session()
	const part = "*2\r\n$3\r\nGET\r\n$100\r\nabc"
	_, err := half.Conn.Write([]byte(part))
	require.NoError(t, err)
	waits.Send("BLPOP nothing 0")
	p.AwaitBlocked(1)
	const behind = "GET a\r\nGET b\r\n"
	_, err = waits.Conn.Write([]byte(behind))
	require.NoError(t, err)
	qbuf := func() []string {
		c.Send("CLIENT LIST")
		var n int
		_, err := fmt.Sscanf(servertest.ReadLines(t, c.R, 1), "$%d", &n)
		require.NoError(t, err)
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.R, text)
		require.NoError(t, err)
		var all []string
		for _, m := range regexp.MustCompile(` qbuf=(\d+)`).FindAllSubmatch(text, -1) {
			all = append(all, string(m[1]))
		}
		slices.Sort(all)
		return all
	}
	want := []string{fmt.Sprint(len("CLIENT LIST\r\n")), fmt.Sprint(len(behind)), fmt.Sprint(len(part))} // 13, 14 and 22
	require.Eventually(t, func() bool { return slices.Equal(want, qbuf()) }, 10*time.Second, time.Millisecond)
	_, err = half.Conn.Write([]byte(strings.Repeat("x", 97) + "\r\n"))
	require.NoError(t, err)
	half.Want("$-1")
	c.Send("LPUSH nothing x")
	c.Want(":1")
	waits.Want("*2 $7 nothing $1 x $-1 $-1")
	require.Eventually(t, func() bool { return slices.Equal([]string{"0", "0", want[0]}, qbuf()) }, 10*time.Second, time.Millisecond)
}
