package pubsub_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// TestPipePublish: messages of one connection's command reach another that waits in a read, in their order.
func TestPipePublish(t *testing.T) {
	const messages = 1000
	p := servertest.NewPipeServer(t)
	sub, sr := p.Dial()
	_, err := sub.Write([]byte("SUBSCRIBE news\r\n"))
	require.NoError(t, err)
	servertest.ReadLines(t, sr, 6)
	pub, pr := p.Dial()
	go func() {
		for i := range messages {
			fmt.Fprintf(pub, "PUBLISH news %d\r\n", i)
		}
	}()
	go io.Copy(io.Discard, pr)
	for i := range messages {
		want := fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
		require.Equal(t, want, servertest.ReadLines(t, sr, 7))
	}
}

// TestSubscriberThatDoesNotReadIsClosed: a subscriber's unread messages count towards the limit of its class, whoever publishes.
func TestSubscriberThatDoesNotReadIsClosed(t *testing.T) {
	p := servertest.NewPipeServer(t)
	sub, sr := p.Dial()
	_, err := sub.Write([]byte("SUBSCRIBE news\r\n"))
	require.NoError(t, err)
	servertest.ReadLines(t, sr, 6)
	pub, pr := p.Dial()
	_, err = pub.Write([]byte("CONFIG SET client-output-buffer-limit \"pubsub 100kb 0 0\"\r\n"))
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", servertest.ReadLines(t, pr, 1))
	message := strings.Repeat("x", 1000)
	for sent := 0; ; sent++ {
		require.Less(t, sent, 1000, "100 messages are over the limit")
		_, err = fmt.Fprintf(pub, "PUBLISH news %s\r\nPUBSUB NUMSUB news\r\n", message)
		require.NoError(t, err)
		servertest.ReadLines(t, pr, 4)
		if servertest.ReadLines(t, pr, 1) == ":0\r\n" {
			require.Greater(t, sent, 90)
			break
		}
	}
	_, err = io.ReadAll(sr)
	require.NoError(t, err, "what is read ends")
}
