package rdb

import (
	"encoding/binary"
	"math"

	"headgate/internal/listpack"
)

// UntoldReads stands for what groups of streams from before Redis 7 have read: it was not counted, but may follow from what is in the
// stream.
const UntoldReads = -2

// pendingSet is which entries of a group are pending, to check those that its consumers claim.
type pendingSet map[StreamID]bool

// readStream reads a stream of any version of the type.
func (r *Reader) readStream(kind byte) error {
	nodes, err := r.in.count()
	if err != nil {
		return err
	}
	if err := r.sink.Stream(nodes); err != nil {
		return err
	}
	var s streamReader
	for range nodes {
		if err := r.readStreamNode(&s); err != nil {
			return err
		}
	}
	groups, err := r.readStreamInfo(kind, &s)
	if err != nil {
		return err
	}
	for range groups {
		if err := r.readStreamGroup(kind); err != nil {
			return err
		}
	}
	return r.sink.End()
}

// streamReader is how far the entries of a stream have been read.
type streamReader struct {
	entries     int // that are not deleted
	first, last StreamID
	nodes       int
	base        StreamID // of the last node
}

// readStreamNode reads a node.
func (r *Reader) readStreamNode(s *streamReader) error {
	at := r.in.position()
	name, err := r.in.bytes()
	if err != nil {
		return err
	}
	if len(name) != 16 {
		return r.in.fail("a stream's node without an ID")
	}
	base := StreamID{binary.BigEndian.Uint64(name), binary.BigEndian.Uint64(name[8:])}
	if s.nodes > 0 && compareIDs(base, s.base) <= 0 {
		return r.in.fail("a stream's nodes out of order")
	}
	s.base = base
	s.nodes++
	blob, err := r.in.blob()
	if err != nil {
		return err
	}
	before := s.entries
	p, err := listpack.Open(blob)
	if err == nil {
		err = s.readNode(&p, base)
	}
	if err == nil {
		err = p.Close()
	}
	if err == nil {
		err = r.sink.StreamNode(base, blob, s.entries-before)
	}
	return r.damaged(err, at)
}

// readNode checks a node's listpack. What changes in place while the node is used, its counts and the entries' flags, has to be in the shortest
// form, as all servers write it.
func (s *streamReader) readNode(p *listpack.Reader, base StreamID) error {
	var head [3]int // entries, deleted ones, fields
	for i, next := range [...]func() (int, error){p.NextShort, p.NextShort, p.NextCount} {
		var err error
		if head[i], err = next(); err != nil {
			return err
		}
	}
	if err := p.Skip(head[2]); err != nil {
		return err
	}
	if end, err := p.NextCount(); err != nil || end != 0 {
		return listpack.ErrInvalid
	}
	deleted, before := 0, s.entries
	for p.More() {
		gone, err := s.readEntry(p, base, head[2])
		if err != nil {
			return err
		}
		if gone {
			deleted++
		}
	}
	if s.entries-before != head[0] || deleted != head[1] || head[0] == 0 {
		return listpack.ErrInvalid
	}
	return nil
}

// readEntry checks an entry of a node whose master entry has so many fields.
func (s *streamReader) readEntry(p *listpack.Reader, base StreamID, fields int) (deleted bool, err error) {
	before := p.Seen()
	flags, err := p.NextShort()
	if err != nil {
		return false, err
	}
	ms, err := p.Next()
	if err != nil {
		return false, err
	}
	seq, err := p.Next()
	if err != nil {
		return false, err
	}
	if !ms.IsInt || !seq.IsInt || flags > streamDeleted|streamSameFields {
		return false, listpack.ErrInvalid
	}
	if flags&streamSameFields == 0 {
		if fields, err = p.NextCount(); err != nil {
			return false, err
		}
		err = p.Skip(2 * fields)
	} else {
		err = p.Skip(fields)
	}
	elements := p.Seen() - before
	if err != nil || fields == 0 {
		return false, listpack.ErrInvalid
	}
	if n, err := p.NextCount(); err != nil || n != elements {
		return false, listpack.ErrInvalid
	}
	if flags&streamDeleted != 0 {
		return true, nil // XSETID lets later IDs be below those of deleted entries
	}
	id := StreamID{base[0] + uint64(ms.N), base[1] + uint64(seq.N)}
	if id == (StreamID{}) || compareIDs(id, base) < 0 || s.entries > 0 && compareIDs(id, s.last) <= 0 {
		return false, listpack.ErrInvalid
	}
	if s.entries == 0 {
		s.first = id
	}
	s.last = id
	s.entries++
	return false, nil
}

// readStreamInfo reads the numbers after the nodes and checks them against those.
func (r *Reader) readStreamInfo(kind byte, s *streamReader) (groups int, err error) {
	var length, added uint64
	var last, first, maxDeleted StreamID
	read := func(into ...*uint64) {
		for _, n := range into {
			if err == nil {
				*n, err = r.in.number()
			}
		}
	}
	read(&length, &last[0], &last[1])
	if added = length; kind != typeStream1 {
		read(&first[0], &first[1], &maxDeleted[0], &maxDeleted[1], &added)
	}
	if err != nil {
		return 0, err
	}
	if length != uint64(s.entries) || s.entries > 0 && compareIDs(last, s.last) < 0 || added > math.MaxInt64 {
		return 0, r.in.fail("a stream whose numbers do not fit its entries")
	}
	if groups, err = r.in.count(); err != nil {
		return 0, err
	}
	return groups, r.sink.StreamInfo(s.entries, last, s.first, maxDeleted, added)
}

func (r *Reader) readStreamGroup(kind byte) error {
	name, err := r.in.kept()
	if err != nil {
		return err
	}
	var last StreamID
	for i := range last {
		if last[i], err = r.in.number(); err != nil {
			return err
		}
	}
	entriesRead := int64(UntoldReads)
	if kind != typeStream1 {
		read, err := r.in.number()
		if err != nil {
			return err
		}
		entriesRead = max(int64(read), -1)
	}
	pending, err := r.in.count()
	if err != nil {
		return err
	}
	if err := r.sink.StreamGroup(name, last, entriesRead); err != nil {
		return err
	}
	if err := r.readStreamPending(pending); err != nil {
		return err
	}
	consumers, err := r.in.count()
	if err != nil {
		return err
	}
	for range consumers {
		if err := r.readStreamConsumer(kind); err != nil {
			return err
		}
	}
	if len(r.owned) > 0 {
		return r.in.fail("a pending entry that no consumer has")
	}
	return nil
}

// streamID16 reads an ID of 16 bytes.
func (in *input) streamID16() (StreamID, error) {
	b, err := in.take(16)
	if err != nil {
		return StreamID{}, err
	}
	return StreamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

func (r *Reader) readStreamPending(n int) error {
	r.owned = pendingSet{}
	var last StreamID
	for i := range n {
		id, err := r.in.streamID16()
		if err != nil {
			return err
		}
		delivered, err := r.in.uint64LE()
		if err != nil {
			return err
		}
		deliveries, err := r.in.number()
		if err != nil {
			return err
		}
		if i > 0 && compareIDs(id, last) <= 0 {
			return r.in.fail("pending entries out of order")
		}
		last = id
		r.owned[id] = true
		if err := r.sink.StreamPending(id, int64(delivered), deliveries); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) readStreamConsumer(kind byte) error {
	name, err := r.in.kept()
	if err != nil {
		return err
	}
	seen, err := r.in.uint64LE()
	if err != nil {
		return err
	}
	if kind == typeStream3 { // when it last got anything, which is not kept here
		if _, err := r.in.uint64LE(); err != nil {
			return err
		}
	}
	pending, err := r.in.count()
	if err != nil {
		return err
	}
	if err := r.sink.StreamConsumer(name, int64(seen)); err != nil {
		return err
	}
	for range pending {
		id, err := r.in.streamID16()
		if err != nil {
			return err
		}
		if !r.owned[id] {
			return r.in.fail("a consumer's entry that is not pending, or another's")
		}
		delete(r.owned, id)
		if err := r.sink.StreamOwned(id); err != nil {
			return err
		}
	}
	return nil
}
