package store

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// UnknownReads is the number of entries that a group has read when nobody can tell.
const UnknownReads = -1

// StreamGroup is a consumer group: how far it has read, and what it has handed to its consumers and not heard of again.
type StreamGroup struct {
	name      string
	last      StreamID
	reads     int64
	pending   pendingTree
	consumers []*StreamConsumer // by name
}

// StreamConsumer is a consumer of a group.
type StreamConsumer struct {
	name    string
	seen    int64 // Unix milliseconds
	pending pendingTree
}

// Pending is an entry that a group has handed to a consumer who has not acknowledged it.
type Pending struct {
	ID        StreamID
	Delivered int64 // Unix milliseconds of the last time
	Count     int64 // how often
	consumer  *StreamConsumer
	born      uint32 // streamValue.freezes when this was made
}

// pendingTree orders pending entries by ID.
type pendingTree = *btree.BTreeG[*Pending]

func newPendingTree() pendingTree {
	return btree.NewBTreeGOptions(func(a, b *Pending) bool { return a.ID.Compare(b.ID) < 0 }, btree.Options{NoLocks: true})
}

// clone is a copy that shares nothing that changes.
func (g *StreamGroup) clone() *StreamGroup {
	own := *g
	own.pending = newPendingTree()
	own.consumers = make([]*StreamConsumer, len(g.consumers))
	for i, c := range g.consumers {
		consumer := &StreamConsumer{name: c.name, seen: c.seen, pending: newPendingTree()}
		own.consumers[i] = consumer
		c.pending.Scan(func(p *Pending) bool {
			entry := *p
			entry.consumer = consumer
			consumer.pending.Set(&entry)
			own.pending.Set(&entry)
			return true
		})
	}
	return &own
}

// share is the group as it is now: its trees have their nodes in common with the copies until either changes them.
func (g *StreamGroup) share() *StreamGroup {
	own := *g
	own.pending = g.pending.Copy()
	own.consumers = make([]*StreamConsumer, len(g.consumers))
	for i, c := range g.consumers {
		own.consumers[i] = &StreamConsumer{name: c.name, seen: c.seen, pending: c.pending.Copy()}
	}
	return &own
}

// Name is the group's name.
func (g *StreamGroup) Name() string { return g.name }

// Last is the last ID that the group has handed out.
func (g *StreamGroup) Last() StreamID { return g.last }

// Reads is the number of entries that the group has read, or UnknownReads.
func (g *StreamGroup) Reads() int64 { return g.reads }

// Consumers are the group's consumers, by name. They are for reading only.
func (g *StreamGroup) Consumers() []*StreamConsumer { return g.consumers }

// Pending is the number of entries that are not acknowledged.
func (g *StreamGroup) Pending() int { return g.pending.Len() }

// EachPending hands the pending entries from an ID on to fn until it says false. fn must not change the stream.
func (g *StreamGroup) EachPending(from StreamID, fn func(p *Pending) bool) {
	g.pending.Ascend(&Pending{ID: from}, fn)
}

// FindPending is the pending entry with an ID, or nil.
func (g *StreamGroup) FindPending(id StreamID) *Pending {
	p, _ := g.pending.Get(&Pending{ID: id})
	return p
}

// PendingBounds are the first and the last ID that are pending; there must be one.
func (g *StreamGroup) PendingBounds() (first, last StreamID) {
	low, _ := g.pending.Min()
	high, _ := g.pending.Max()
	return low.ID, high.ID
}

// Name is the consumer's name.
func (c *StreamConsumer) Name() string { return c.name }

// Seen is when the consumer was last heard of, in Unix milliseconds.
func (c *StreamConsumer) Seen() int64 { return c.seen }

// Pending is the number of entries that the consumer has not acknowledged.
func (c *StreamConsumer) Pending() int { return c.pending.Len() }

// EachPending is as for the group.
func (c *StreamConsumer) EachPending(from StreamID, fn func(p *Pending) bool) {
	c.pending.Ascend(&Pending{ID: from}, fn)
}

// Consumer is who has the entry.
func (p *Pending) Consumer() *StreamConsumer { return p.consumer }

// Groups are the stream's groups, by name. They are for reading only.
func (s *Stream) Groups() []*StreamGroup {
	if s.value == nil {
		return nil
	}
	return s.value.groups
}

// Group is the group of a name, or nil.
func (s *Stream) Group(name []byte) *StreamGroup {
	if s.value == nil {
		return nil
	}
	i, ok := s.value.groupPlace(name)
	if !ok {
		return nil
	}
	return s.value.groups[i]
}

func (v *streamValue) groupPlace(name []byte) (int, bool) {
	return slices.BinarySearchFunc(v.groups, string(name), func(g *StreamGroup, name string) int { return strings.Compare(g.name, name) })
}

// CreateGroup adds a group that has read up to an ID, and says whether there was none of its name. The key must be there.
func (s *Stream) CreateGroup(name []byte, last StreamID, reads int64) bool {
	i, taken := s.value.groupPlace(name)
	if taken {
		return false
	}
	s.entry.mutate()
	s.value.groups = slices.Insert(s.value.groups, i, &StreamGroup{name: string(name), last: last, reads: reads, pending: newPendingTree()})
	return true
}

// DestroyGroup takes a group away and says whether it was there.
func (s *Stream) DestroyGroup(name []byte) bool {
	i, ok := s.value.groupPlace(name)
	if ok {
		s.entry.mutate()
		s.value.keep(s.value.groups[i].Pending())
		s.value.groups = slices.Delete(s.value.groups, i, i+1)
		s.db.Signal(s.key)
	}
	return ok
}

// SetGroupID says how far a group has read.
func (s *Stream) SetGroupID(g *StreamGroup, last StreamID, reads int64) {
	s.entry.mutate()
	g.last, g.reads = last, reads
}

// Consumer is the group's consumer of a name, or nil.
func (g *StreamGroup) Consumer(name []byte) *StreamConsumer {
	i, ok := g.consumerPlace(name)
	if !ok {
		return nil
	}
	return g.consumers[i]
}

func (g *StreamGroup) consumerPlace(name []byte) (int, bool) {
	return slices.BinarySearchFunc(g.consumers, string(name), func(c *StreamConsumer, name string) int { return strings.Compare(c.name, name) })
}

// See notes that a consumer was heard of at now (Unix milliseconds), adds it if the group has none of its name, and says
// whether it did. Hearing of one is no change that passes the gate.
func (s *Stream) See(g *StreamGroup, name []byte, now int64) (c *StreamConsumer, created bool) {
	i, ok := g.consumerPlace(name)
	if !ok {
		s.entry.mutate()
		g.consumers = slices.Insert(g.consumers, i, &StreamConsumer{name: string(name), pending: newPendingTree()})
	}
	g.consumers[i].seen = now
	return g.consumers[i], !ok
}

// DeleteConsumer takes a consumer away, with what it has not acknowledged, and returns how much that was.
func (s *Stream) DeleteConsumer(g *StreamGroup, name []byte) (pending int, ok bool) {
	i, ok := g.consumerPlace(name)
	if !ok {
		return 0, false
	}
	s.entry.mutate()
	c := g.consumers[i]
	s.value.keep(c.Pending())
	c.pending.Scan(func(p *Pending) bool {
		g.pending.Delete(p)
		return true
	})
	g.consumers = slices.Delete(g.consumers, i, i+1)
	return c.pending.Len(), true
}

// Acknowledge takes a pending entry away and says whether it was there.
func (s *Stream) Acknowledge(g *StreamGroup, id StreamID) bool {
	p := g.FindPending(id)
	if p == nil {
		return false
	}
	s.entry.mutate()
	if s.value.shares(p) {
		s.value.keep(1)
	}
	g.pending.Delete(p)
	p.consumer.pending.Delete(p)
	return true
}

// Assign gives an entry to a consumer, whoever had it before, with what is known of its deliveries. What was known of it before may stay as
// it was, or not.
func (s *Stream) Assign(g *StreamGroup, c *StreamConsumer, id StreamID, delivered, count int64) *Pending {
	s.entry.mutate()
	p := g.FindPending(id)
	if p != nil && p.consumer != c {
		p.consumer.pending.Delete(p)
	}
	if p == nil || s.value.shares(p) {
		if p != nil {
			s.value.keep(1)
		}
		p = &Pending{ID: id, born: s.value.freezes}
		g.pending.Set(p)
	}
	if p.consumer != c {
		p.consumer = c
		c.pending.Set(p)
	}
	p.Delivered, p.Count = delivered, count
	return p
}

// Advance notes that a group has handed an entry out, in order. It keeps count of what the group has read as far as that
// can be known.
func (s *Stream) Advance(g *StreamGroup, id StreamID) {
	if id.Compare(g.last) <= 0 {
		return
	}
	s.entry.mutate()
	switch {
	case g.reads != UnknownReads && !s.hasGaps(id):
		g.reads++
	case s.value.info.Added > 0:
		g.reads = s.ReadsUpTo(id)
	}
	g.last = id
}

// hasGaps says whether an entry at or behind an ID may have been deleted.
func (s *Stream) hasGaps(from StreamID) bool {
	info := &s.value.info
	return s.value.length > 0 && info.MaxDeleted.Compare(info.First) >= 0 && from.Compare(info.MaxDeleted) <= 0
}

// ReadsUpTo is how many entries were ever added up to an ID, or UnknownReads.
func (s *Stream) ReadsUpTo(id StreamID) int64 {
	info, length := &s.value.info, uint64(s.value.length)
	behind := id.Compare(info.Last)
	switch {
	case info.Added == 0:
		return 0
	case length == 0 && behind <= 0, behind == 0:
		return int64(info.Added)
	case behind > 0:
		return UnknownReads
	}
	if (info.MaxDeleted == StreamID{}) || info.MaxDeleted.Compare(info.First) < 0 {
		switch c := id.Compare(info.First); {
		case c < 0:
			return int64(info.Added - length)
		case c == 0:
			return int64(info.Added - length + 1)
		}
	}
	return UnknownReads
}

// Lag is how many entries a group has still to read; ok is false when nobody can tell.
func (s *Stream) Lag(g *StreamGroup) (lag int64, ok bool) {
	added := int64(s.value.info.Added)
	if added == 0 {
		return 0, true
	}
	reads := g.reads
	if reads == UnknownReads || s.hasGaps(g.last) {
		reads = s.ReadsUpTo(g.last)
	}
	return added - reads, reads != UnknownReads
}
