package compat

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	eventsFile   = "testdata/events.list"
	eventsFlags  = "KEAnm"
	endOfCommand = "__key__:end" // the channel of the message that follows a command's events
)

// TestEvents runs the commands of events.list against both servers, and compares the key-space events that they cause: each event,
// on both kinds of channels, in their order.
func TestEvents(t *testing.T) {
	text, err := os.ReadFile(eventsFile)
	require.NoError(t, err)
	var commands [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words, err := harness.SplitWords(strings.TrimSpace(line))
		require.NoError(t, err, line)
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	p := startPair(t)
	want, got := eventsOf(t, p.reference, commands), eventsOf(t, p.subject, commands)
	count := 0
	for i, command := range commands {
		if !slices.Equal(want[i], got[i]) {
			t.Errorf("%q\n  redis-server: %q\n  headgate:     %q", command, want[i], got[i])
		}
		count += len(want[i])
	}
	t.Logf("%d commands, %d events compared", len(commands), count)
}

// eventsOf returns the events that each of the commands causes.
func eventsOf(t *testing.T, server *harness.Server, commands [][]string) [][]string {
	t.Helper()
	listener, writer, marker := harness.Dial(t, server.Addr), harness.Dial(t, server.Addr), harness.Dial(t, server.Addr)
	listener.Ask("PSUBSCRIBE", "__key*__:*")
	require.Equal(t, "+OK\r\n", string(writer.Do("CONFIG", "SET", "notify-keyspace-events", eventsFlags)))
	events := make([][]string, len(commands))
	for i, command := range commands {
		writer.Ask(command...)
		marker.Ask("PUBLISH", endOfCommand, "")
		for {
			message := listener.Value().Strings()
			require.Len(t, message, 4)
			if message[2] == endOfCommand {
				break
			}
			events[i] = append(events[i], message[2]+" "+message[3])
		}
	}
	return events
}
