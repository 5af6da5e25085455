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

// manyPending is a stream of entries that are all pending, in two groups.
func manyPending(ks *Keyspace, entries int) Key {
	k := ks.Key([]byte("s"))
	s, _, _ := ks.DB(0).Stream(k, 1)
	s.Create()
	for _, name := range []string{"g", "h"} {
		s.CreateGroup([]byte(name), StreamID{}, 0)
	}
	for i := range entries {
		id := StreamID{1, uint64(i + 1)}
		s.Add(id, [][]byte{[]byte("field"), []byte("value")})
		for _, g := range s.Groups() {
			c, _ := s.See(g, fmt.Append(nil, i%3), 1)
			s.Assign(g, c, id, 1, 1)
		}
	}
	return k
}

// TestPendingEntriesWithinTheBudget: a step of a snapshot tells so many of them as the others, whether the stream has changed or not, and a
// value that is emitted at once is the same.
func TestPendingEntriesWithinTheBudget(t *testing.T) {
	const entries, budget = 20_000, 4096
	for _, write := range []bool{false, true} {
		ks, db := typesKeyspace(t, DefaultLimits())
		k := manyPending(ks, entries)
		var sink countingSink
		snap := ks.Snapshot(&sink, 1<<20)
		if write {
			s, _, _ := db.Stream(k, 1)
			s.Add(StreamID{2, 1}, [][]byte{[]byte("field"), []byte("value")})
			require.Less(t, snap.Extra(), entries*nodeBytes, "what is pending is not copied")
		}
		node := 2 * ks.Limits().StreamNodeMaxBytes
		most, steps := 0, 0
		for more := true; more; steps++ {
			before := sink.work
			more = snap.Step(budget)
			most = max(most, sink.work-before)
		}
		require.LessOrEqual(t, most, budget+node)
		require.Greater(t, steps, 4*entries*elementWork/(budget+node))
		require.Zero(t, snap.Extra())
	}
}

// TestPendingEntriesThatChange while a snapshot has still to see them are put in the place of what it sees, each once.
func TestPendingEntriesThatChange(t *testing.T) {
	const entries = 1000
	ks, db := typesKeyspace(t, DefaultLimits())
	k := manyPending(ks, entries)
	open := func() (Stream, *StreamGroup) {
		s, _, _ := db.Stream(k, 1)
		return s, s.Group([]byte("g"))
	}
	s, _ := open()
	var want, got streamParts
	s.Entry().Emit(&want)
	snap := ks.Snapshot(&got, 1<<30)
	defer snap.Abort()
	s, g := open()
	s.Acknowledge(g, StreamID{1, 1})
	before := snap.Extra()
	for count := range int64(5) {
		s, g = open()
		s.Assign(g, g.Consumers()[count%2], StreamID{1, 2}, 100+count, count)
	}
	require.Equal(t, before+pendingBytes, snap.Extra())
	s.DeleteConsumer(g, []byte("2"))
	s.DestroyGroup([]byte("h"))
	for snap.Step(1000) {
	}
	require.Equal(t, want.parts, got.parts)
	s, g = open()
	p := g.FindPending(StreamID{1, 2})
	require.Equal(t, []any{int64(104), int64(4), "0"}, []any{p.Delivered, p.Count, p.Consumer().Name()})
}
