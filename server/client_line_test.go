package server

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClientListShowsInput: qbuf is what has come of a client and is not run: its running command, half a command, what waits behind a
// blocked one.
func TestClientListShowsInput(t *testing.T) {
	p := newPipeServer(t)
	c, half, waits := p.session(), p.session(), p.session()
	const part = "*2\r\n$3\r\nGET\r\n$100\r\nabc"
	_, err := half.conn.Write([]byte(part))
	require.NoError(t, err)
	waits.send("BLPOP nothing 0")
	p.awaitBlocked(1)
	const behind = "GET a\r\nGET b\r\n"
	_, err = waits.conn.Write([]byte(behind))
	require.NoError(t, err)
	qbuf := func() []string {
		c.send("CLIENT LIST")
		var n int
		_, err := fmt.Sscanf(readLines(t, c.r, 1), "$%d", &n)
		require.NoError(t, err)
		text := make([]byte, n+2)
		_, err = io.ReadFull(c.r, text)
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
	_, err = half.conn.Write([]byte(strings.Repeat("x", 97) + "\r\n"))
	require.NoError(t, err)
	half.want("$-1")
	c.send("LPUSH nothing x")
	c.want(":1")
	waits.want("*2 $7 nothing $1 x $-1 $-1")
	require.Eventually(t, func() bool { return slices.Equal([]string{"0", "0", want[0]}, qbuf()) }, 10*time.Second, time.Millisecond)
}
