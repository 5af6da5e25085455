package command_test

import (
	"testing"

	"headgate/server/command"
	"headgate/server/resp"

	"github.com/stretchr/testify/require"
)

// TestRenderedIsKeptWhileAsked: a reply that is asked for again and again is made once, and not kept once nobody asks.
func TestRenderedIsKeptWhileAsked(t *testing.T) {
	var r command.Rendered
	var w resp.Writer
	made := 0
	send := func(proto int) string {
		w.Reset()
		w.SetProto(proto)
		r.Send(&w, func() {
			made++
			w.Map(1)
			w.Int(1)
			w.Int(2)
		})
		return string(w.Bytes())
	}
	for range 3 {
		require.Equal(t, "*2\r\n:1\r\n:2\r\n", send(2))
		require.Equal(t, "%1\r\n:1\r\n:2\r\n", send(3))
		r.Trim()
	}
	require.Equal(t, 2, made)
	r.Trim()
	send(2)
	require.Equal(t, 3, made)
}
