package rdb

import "encoding/binary"

// A stream is n nodes of entries, each a string of 16 bytes (its first ID, big-endian) and a string that holds a listpack; then
// numbers: length, the last ID, the first ID, the greatest deleted ID, entries added (version 1 of the type has the length and the
// last ID alone); then n consumer groups: name, last ID, entries read (not in version 1), the pending entries (n, and n times ID,
// delivery time, deliveries) and the consumers: n, and n times name, time seen, time active (only in version 3) and pending
// entries (n IDs). IDs of pending entries are 16 bytes, others two numbers; times are 8 bytes of milliseconds.
//
// A node's listpack begins with a master entry: entries, deleted entries, number of fields, their names, 0. An entry is its
// flags, its ID as the distance from the node's, its fields, and the number of elements so far. If its fields are the
// master entry's it says so in the flags and has only values.
const (
	streamDeleted    = 1
	streamSameFields = 2
)

// StreamID is the ID of a stream's entry: Unix milliseconds, and a number among the entries of the same time.
type StreamID = [2]uint64

// compareIDs orders IDs.
func compareIDs(a, b StreamID) int {
	switch {
	case a == b:
		return 0
	case a[0] < b[0] || a[0] == b[0] && a[1] < b[1]:
		return -1
	}
	return 1
}

// streamEncoder is the part of an Encoder that streams need.
type streamEncoder struct {
	pending, consumers int // of the group: pending entries to come, and its consumers
}

// Stream begins a stream of so many nodes. They follow, then StreamInfo, then each group with its pending entries, and after those
// each of its consumers with theirs.
func (e *Encoder) Stream(nodes int) {
	e.begin(typeStream2)
	e.length(uint64(nodes))
}

// StreamNode tells a node: the ID of its first entry, and its listpack.
func (e *Encoder) StreamNode(id StreamID, listpack []byte) {
	e.length(16)
	e.streamID16(id)
	e.string(listpack)
}

// StreamInfo tells the numbers of a stream: its entries, the last ID that it has used, the first entry's, the greatest that was
// deleted, and how many entries were ever added; and how many consumer groups follow.
func (e *Encoder) StreamInfo(length int, last, first, maxDeleted StreamID, added uint64, groups int) {
	e.length(uint64(length))
	for _, id := range [...]StreamID{last, first, maxDeleted} {
		e.length(id[0])
		e.length(id[1])
	}
	e.length(added)
	e.length(uint64(groups))
}

// StreamGroup tells a consumer group. read is the number of entries that it has read, -1 if nobody knows.
func (e *Encoder) StreamGroup(name string, last StreamID, read int64, pending, consumers int) {
	e.string([]byte(name))
	e.length(last[0])
	e.length(last[1])
	e.length(uint64(read))
	e.length(uint64(pending))
	e.stream = streamEncoder{pending, consumers}
	if pending == 0 {
		e.length(uint64(consumers))
	}
}

// StreamPending tells a pending entry of the group, in the order of their IDs: when it was last delivered, in Unix milliseconds, and
// how often.
func (e *Encoder) StreamPending(id StreamID, deliveredMs int64, deliveries uint64) {
	e.streamID16(id)
	e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(deliveredMs))
	e.length(deliveries)
	if e.stream.pending--; e.stream.pending == 0 {
		e.length(uint64(e.stream.consumers))
	}
}

// StreamConsumer tells a consumer of the group: when it was last heard of, in Unix milliseconds, and how many of the pending entries
// are its own.
func (e *Encoder) StreamConsumer(name string, seenMs int64, pending int) {
	e.string([]byte(name))
	e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(seenMs))
	e.length(uint64(pending))
}

// StreamOwned tells one of the pending entries that the consumer has, in the order of their IDs.
func (e *Encoder) StreamOwned(id StreamID) { e.streamID16(id) }

// streamID16 writes an ID as 16 bytes.
func (e *Encoder) streamID16(id StreamID) {
	e.buf = binary.BigEndian.AppendUint64(e.buf, id[0])
	e.buf = binary.BigEndian.AppendUint64(e.buf, id[1])
}
