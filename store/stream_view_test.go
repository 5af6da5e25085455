package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// streamParts is a ValueSink that lists what it is told of a stream, but for the entries themselves.
type streamParts struct {
	countingSink
	parts []string
}

func (s *streamParts) add(a ...any) { s.parts = append(s.parts, strings.TrimSpace(fmt.Sprintln(a...))) }

func (s *streamParts) StreamNode(id [2]uint64, _ []byte) { s.add("node", id) }

func (s *streamParts) StreamInfo(length int, last, first, maxDeleted [2]uint64, added uint64, groups int) {
	s.add("stream", length, last, first, maxDeleted, added, groups)
}

func (s *streamParts) StreamGroup(name string, last [2]uint64, read int64, pending, consumers int) {
	s.add("group", name, last, read, pending, consumers)
}

func (s *streamParts) StreamPending(id [2]uint64, delivered int64, deliveries uint64) {
	s.add("pending", id, delivered, deliveries)
}

func (s *streamParts) StreamConsumer(name string, seen int64, pending int) {
	s.add("consumer", name, seen, pending)
}

func (s *streamParts) StreamOwned(id [2]uint64) { s.add("owned", id) }

// TestEmitOfAStream: a sink is told of a stream and its groups as they are.
func TestEmitOfAStream(t *testing.T) {
	limits := DefaultLimits()
	limits.StreamNodeMaxEntries = 2
	ks, db := typesKeyspace(t, limits)
	s, _, err := db.Stream(testKey(ks, "s"), 0)
	require.NoError(t, err)
	for _, id := range []StreamID{{4, 1}, {5, 2}, {6, 3}} {
		s.Add(id, [][]byte{[]byte("field"), []byte("value")})
	}
	require.True(t, s.Delete(StreamID{4, 1}))
	require.True(t, s.CreateGroup([]byte("g"), StreamID{4, 1}, 1))
	g := s.Group([]byte("g"))
	c, _ := s.See(g, []byte("c"), 70)
	s.Assign(g, c, StreamID{5, 2}, 80, 9)
	s.Advance(g, StreamID{5, 2})
	var told streamParts
	s.Entry().Emit(&told)
	require.Equal(t, []string{
		"node [4 1]", "node [6 3]",
		"stream 2 [6 3] [5 2] [4 1] 3 1",
		"group g [5 2] 2 1 1", "pending [5 2] 80 9",
		"consumer c 70 1", "owned [5 2]",
	}, told.parts)
}
