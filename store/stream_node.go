package store

import (
	"math/bits"
	"slices"

	"headgate/internal/listpack"
	"headgate/internal/number"
)

// streamNode is a run of entries whose IDs begin at id. Its listpack holds, as in Redis,
//
//	entries, deleted, n, n fields, 0
//
// and for each entry
//
//	flags, ms, seq, [n, then] fields and values by turns, size
//
// with ms and seq counted from the node's ID. An entry that has just the fields at the node's start says so in its flags and holds
// the values only, without n. size is the number of the entry's elements before it, so that entries can be read backward.
// Deleted entries are marked and stay until all of the node is.
type streamNode struct {
	id     StreamID
	lp     listpack.Pack
	shared bool // a snapshot has still to see the listpack: it is not to be written to
}

// own gives the node a listpack of its own, before that is written to.
func (n *streamNode) own() {
	if n.shared {
		n.lp = slices.Clone(n.lp)
		n.shared = false
	}
}

const (
	streamDeleted    = 1 // flags of an entry
	streamSameFields = 2

	streamEntryHead = 3       // elements of an entry before its fields
	streamNodeMax   = 1 << 30 // bytes of a node, whatever the limits are
)

// newStreamNode is a node whose entries are likely to have the given fields.
func newStreamNode(id StreamID, fields [][]byte) streamNode {
	lp := listpack.New().AppendInt(0).AppendInt(0).AppendInt(int64(len(fields) / 2))
	for i := 0; i < len(fields); i += 2 {
		lp = lp.AppendText(fields[i])
	}
	return streamNode{id: id, lp: lp.AppendInt(0)}
}

// hasRoom says whether the node may take one more entry.
func (n *streamNode) hasRoom(fields [][]byte, limits *Limits) bool {
	size := len(n.lp)
	for _, f := range fields {
		size += len(f)
	}
	most := limits.StreamNodeMaxBytes
	if most <= 0 || most > streamNodeMax {
		most = streamNodeMax
	}
	if size >= most {
		return false
	}
	live := n.lp.First()
	return limits.StreamNodeMaxEntries <= 0 ||
		n.lp.Int(live)+n.lp.Int(n.lp.Next(live)) < int64(limits.StreamNodeMaxEntries)
}

// add appends an entry.
func (n *streamNode) add(id StreamID, fields [][]byte) {
	n.own()
	same := n.hasFields(fields)
	n.count(1)
	lp := n.lp
	flags, size := int64(0), int64(len(fields)+1+streamEntryHead)
	if same {
		flags, size = streamSameFields, int64(len(fields)/2+streamEntryHead)
	}
	lp = lp.AppendInt(flags).AppendInt(int64(id.MS - n.id.MS)).AppendInt(int64(id.Seq - n.id.Seq))
	if !same {
		lp = lp.AppendInt(int64(len(fields) / 2))
	}
	for i, f := range fields {
		if !same || i%2 == 1 {
			lp = lp.AppendText(f)
		}
	}
	n.lp = lp.AppendInt(size)
}

// hasFields says whether the fields are those at the node's start.
func (n *streamNode) hasFields(fields [][]byte) bool {
	at, count := n.fields()
	if count != len(fields)/2 {
		return false
	}
	var scratch [number.IntMax]byte
	for i := range count {
		if string(n.lp.Text(at, scratch[:])) != string(fields[2*i]) {
			return false
		}
		at = n.lp.Next(at)
	}
	return true
}

// live is the number of entries that are not deleted.
func (n *streamNode) live() int64 { return n.lp.Int(n.lp.First()) }

// count adds to the number of entries; those that it takes away count as deleted.
func (n *streamNode) count(more int64) {
	n.own()
	at := n.lp.First()
	n.lp = n.lp.ReplaceInt(at, n.lp.Int(at)+more)
	if more < 0 {
		at = n.lp.Next(at)
		n.lp = n.lp.ReplaceInt(at, n.lp.Int(at)-more)
	}
}

// fields finds the fields at the node's start.
func (n *streamNode) fields() (at, count int) {
	at = n.lp.Skip(n.lp.First(), 2)
	return n.lp.Next(at), int(n.lp.Int(at))
}

// StreamEntry is an entry of a stream.
type StreamEntry struct {
	ID     StreamID
	node   *streamNode
	at     int // of its flags
	fields int // offset of its fields, or of its values if they are the node's
	count  int // pairs of field and value
	same   bool
}

// entry reads the entry at an offset.
func (n *streamNode) entry(at int) (e StreamEntry, next int) {
	lp := n.lp
	e = StreamEntry{node: n, at: at}
	flags := lp.Int(at)
	at = lp.Next(at)
	e.ID.MS = n.id.MS + uint64(lp.Int(at))
	at = lp.Next(at)
	e.ID.Seq = n.id.Seq + uint64(lp.Int(at))
	at = lp.Next(at)
	elements := 0
	if e.same = flags&streamSameFields != 0; e.same {
		_, e.count = n.fields()
		elements = e.count
	} else {
		e.count = int(lp.Int(at))
		at = lp.Next(at)
		elements = 2 * e.count
	}
	e.fields = at
	return e, lp.Skip(at, elements+1)
}

// each hands the entries, deleted ones too, to fn until fn says false. fn may mark them.
func (n *streamNode) each(fn func(e *StreamEntry) bool) {
	at, count := n.fields()
	at = n.lp.Skip(at, count+1)
	for at < n.lp.End() {
		e, next := n.entry(at)
		size := len(n.lp)
		if !fn(&e) {
			return
		}
		at = next + len(n.lp) - size
	}
}

// eachBack is each from the last entry to the first.
func (n *streamNode) eachBack(fn func(e *StreamEntry) bool) {
	at := n.lp.End()
	for {
		at = n.lp.Previous(at)
		size := n.lp.Int(at)
		if size == 0 {
			return // the end of the fields at the node's start
		}
		for range size {
			at = n.lp.Previous(at)
		}
		e, _ := n.entry(at)
		if !fn(&e) {
			return
		}
	}
}

// last is the ID of the last entry, which may be deleted.
func (n *streamNode) last() (id StreamID) {
	n.eachBack(func(e *StreamEntry) bool {
		id = e.ID
		return false
	})
	return id
}

func (e *StreamEntry) deleted() bool { return e.node.lp.Int(e.at)&streamDeleted != 0 }

// markDeleted changes the flags, which may become shorter if they came in a longer form than they need.
func (e *StreamEntry) markDeleted() {
	e.node.own()
	e.node.lp = e.node.lp.ReplaceInt(e.at, e.node.lp.Int(e.at)|streamDeleted)
}

// Len is the number of pairs of field and value.
func (e *StreamEntry) Len() int { return e.count }

// Each hands the fields with their values to fn, in order. They are valid during the call only.
func (e *StreamEntry) Each(fn func(field, value []byte)) {
	var fieldDigits, valueDigits [number.IntMax]byte
	lp, at, master := e.node.lp, e.fields, 0
	if e.same {
		master, _ = e.node.fields()
	}
	for range e.count {
		var field []byte
		if e.same {
			field = lp.Text(master, fieldDigits[:])
			master = lp.Next(master)
		} else {
			field = lp.Text(at, fieldDigits[:])
			at = lp.Next(at)
		}
		fn(field, lp.Text(at, valueDigits[:]))
		at = lp.Next(at)
	}
}

// leadingBytes is the number of zero bytes that a number begins with.
func leadingBytes(n uint64) int { return bits.LeadingZeros64(n) / 8 }
