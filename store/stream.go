package store

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// StreamID names an entry of a stream: a time in Unix milliseconds, and a number among the entries of the same one.
type StreamID struct{ MS, Seq uint64 }

// MaxStreamID is the greatest ID. The zero value is the least.
var MaxStreamID = StreamID{math.MaxUint64, math.MaxUint64}

// Compare orders IDs.
func (id StreamID) Compare(other StreamID) int {
	if c := cmp.Compare(id.MS, other.MS); c != 0 {
		return c
	}
	return cmp.Compare(id.Seq, other.Seq)
}

// Next is the ID after this one; behind the greatest it is the least, and ok is false.
func (id StreamID) Next() (next StreamID, ok bool) {
	switch {
	case id.Seq != math.MaxUint64:
		return StreamID{id.MS, id.Seq + 1}, true
	case id.MS != math.MaxUint64:
		return StreamID{id.MS + 1, 0}, true
	}
	return StreamID{}, false
}

// Previous is the ID before this one; before the least it is the greatest, and ok is false.
func (id StreamID) Previous() (previous StreamID, ok bool) {
	switch {
	case id.Seq != 0:
		return StreamID{id.MS, id.Seq - 1}, true
	case id.MS != 0:
		return StreamID{id.MS - 1, math.MaxUint64}, true
	}
	return MaxStreamID, false
}

// StreamInfo is what a stream knows of itself beside its entries. Each of them can be set; see Stream.SetInfo.
type StreamInfo struct {
	Last       StreamID // the greatest ID that was ever used
	First      StreamID // of the first entry; zero if there is none
	MaxDeleted StreamID // the greatest ID that was ever deleted, other than by trimming
	Added      uint64   // entries that were ever added
}

// streamValue is a stream: its entries in nodes, ordered by ID, and its consumer groups, ordered by name.
type streamValue struct {
	nodes  []streamNode
	length int // entries that are not deleted
	info   StreamInfo
	groups []*StreamGroup

	frozen  *streamView // the one that has still to see what is pending, or nil
	freezes uint32      // how many such there have been
}

// clone implements cloner.
func (v *streamValue) clone() any {
	own := *v
	own.frozen = nil
	own.nodes = make([]streamNode, len(v.nodes))
	for i, n := range v.nodes {
		own.nodes[i] = streamNode{id: n.id, lp: slices.Clone(n.lp)}
	}
	own.groups = make([]*StreamGroup, len(v.groups))
	for i, g := range v.groups {
		own.groups[i] = g.clone()
	}
	return &own
}

// Stream is a view of a stream, or of the place where one may come to be. Unlike other collections a stream may be without
// entries.
//
// A view is for one operation: it is valid until the keyspace changes other than through it. What it hands out is the
// store's own memory, must not be changed, and holds until the stream next changes.
type Stream struct {
	db    *DB
	key   Key
	entry Entry
	value *streamValue // nil when there is no key
}

// Stream opens the stream at k. When there is no such key, found is false and the view is that of a stream without
// entries, which Create and Add bring about. A key of another kind is ErrWrongType.
func (db *DB) Stream(k Key, now int64) (s Stream, found bool, err error) {
	s = Stream{db: db, key: k}
	if s.entry, found = db.Find(k, now); !found {
		return s, false, nil
	}
	if s.entry.rec.enc != encStream {
		return Stream{}, false, ErrWrongType
	}
	s.value = s.entry.object().(*streamValue)
	return s, true, nil
}

// Create makes a stream without entries, unless there is one.
func (s *Stream) Create() {
	if s.value != nil {
		return
	}
	s.value = &streamValue{}
	s.entry = s.db.create(s.key, encStream)
	s.entry.toObject(encStream, s.value)
}

// Entry is the key that holds the stream. It may be used only while there is one.
func (s *Stream) Entry() *Entry { return &s.entry }

// Len is the number of entries.
func (s *Stream) Len() int {
	if s.value == nil {
		return 0
	}
	return s.value.length
}

// Info is what the stream knows of itself; the zero value when there is no key.
func (s *Stream) Info() StreamInfo {
	if s.value == nil {
		return StreamInfo{}
	}
	return s.value.info
}

// SetInfo sets all of that but First, which the entries say. The caller sees to it that no entry lies behind Last.
func (s *Stream) SetInfo(info StreamInfo) {
	s.entry.mutate()
	info.First = s.value.info.First
	s.value.info = info
}

// Add appends an entry, creating the key when it is not there. fields holds fields and values by turns, at least one of each;
// they are copied. id must be greater than any used before.
func (s *Stream) Add(id StreamID, fields [][]byte) {
	s.Create()
	s.entry.mutate()
	v := s.value
	limits := &s.db.ks.limits
	if n := len(v.nodes); n == 0 || !v.nodes[n-1].hasRoom(fields, limits) {
		if n > 0 {
			v.nodes[n-1].lp = slices.Clip(slices.Clone(v.nodes[n-1].lp))
		}
		v.nodes = append(v.nodes, newStreamNode(id, fields))
	}
	v.nodes[len(v.nodes)-1].add(id, fields)
	v.length++
	v.info.Added++
	v.info.Last = id
	if v.length == 1 {
		v.info.First = id
	}
	s.db.Signal(s.key)
}

// StreamTrim says how much of a stream goes.
type StreamTrim struct {
	ByID   bool     // leave the entries from Min on, not the newest Max
	Max    int64    // how many entries may stay
	Min    StreamID // the least ID that stays
	Approx bool     // remove whole nodes only, and so perhaps less
	Limit  int64    // remove at most so many entries; 0: no limit
}

// Trim removes entries from the start and returns how many.
func (s *Stream) Trim(t StreamTrim) (removed int64) {
	if s.value == nil {
		return 0
	}
	v := s.value
	for len(v.nodes) > 0 && (t.ByID || int64(v.length) > t.Max) {
		node := &v.nodes[0]
		entries := node.live()
		if t.Limit != 0 && removed+entries > t.Limit {
			break
		}
		whole := int64(v.length)-entries >= t.Max
		if t.ByID {
			whole = node.last().Compare(t.Min) < 0
		}
		if !whole {
			if !t.Approx {
				removed += s.trimNode(node, t)
			}
			break
		}
		s.entry.mutate()
		s.dropNode(0)
		v.length -= int(entries)
		removed += entries
	}
	if removed > 0 {
		s.findFirst()
	}
	return removed
}

// trimNode marks entries at a node's start as deleted.
func (s *Stream) trimNode(node *streamNode, t StreamTrim) (removed int64) {
	left := int64(s.value.length)
	node.each(func(e *StreamEntry) bool {
		if t.ByID && e.ID.Compare(t.Min) >= 0 || !t.ByID && left-removed <= t.Max {
			return false
		}
		if !e.deleted() {
			s.entry.mutate()
			e.markDeleted()
			removed++
		}
		return true
	})
	if removed > 0 {
		node.count(-removed)
		s.value.length -= int(removed)
	}
	return removed
}

// Delete removes an entry and says whether it was there.
func (s *Stream) Delete(id StreamID) bool {
	if s.value == nil {
		return false
	}
	v := s.value
	i, entry, ok := v.find(id)
	if !ok {
		return false
	}
	s.entry.mutate()
	if v.nodes[i].live() == 1 {
		s.dropNode(i)
	} else {
		entry.markDeleted()
		v.nodes[i].count(-1)
	}
	v.length--
	if id.Compare(v.info.MaxDeleted) > 0 {
		v.info.MaxDeleted = id
	}
	if id == v.info.First || v.length == 0 {
		s.findFirst()
	}
	return true
}

// dropNode takes a node out.
func (s *Stream) dropNode(i int) {
	v := s.value
	if i == 0 {
		v.nodes[0] = streamNode{}
		v.nodes = v.nodes[1:]
		return
	}
	v.nodes = slices.Delete(v.nodes, i, i+1)
}

// findFirst looks for the first entry's ID.
func (s *Stream) findFirst() {
	s.value.info.First = StreamID{}
	s.Each(StreamID{}, MaxStreamID, false, func(e *StreamEntry) bool {
		s.value.info.First = e.ID
		return false
	})
}

// Has says whether an entry is there.
func (s *Stream) Has(id StreamID) bool {
	if s.value == nil {
		return false
	}
	_, _, ok := s.value.find(id)
	return ok
}

// Newest is the ID of the last entry that is there, zero if there is none.
func (s *Stream) Newest() (id StreamID) {
	s.Each(StreamID{}, MaxStreamID, true, func(e *StreamEntry) bool {
		id = e.ID
		return false
	})
	return id
}

// find returns an entry that is there, with its node's place.
func (v *streamValue) find(id StreamID) (node int, entry StreamEntry, ok bool) {
	node = v.nodeOf(id)
	if node < 0 {
		return 0, entry, false
	}
	v.nodes[node].each(func(e *StreamEntry) bool {
		if e.deleted() {
			return true // XSETID lets IDs after it be less
		}
		c := e.ID.Compare(id)
		if c == 0 {
			entry, ok = *e, true
		}
		return c < 0
	})
	return node, entry, ok
}

// nodeOf is the place of the node in which an ID would be: the last that begins at or before it, -1 for none.
func (v *streamValue) nodeOf(id StreamID) int {
	return sort.Search(len(v.nodes), func(i int) bool { return v.nodes[i].id.Compare(id) > 0 }) - 1
}

// Each hands the entries with from <= ID <= to to fn, or with reverse in the opposite order, until fn says false. The
// StreamEntry is valid during the call only. fn must not change the stream.
func (s *Stream) Each(from, to StreamID, reverse bool, fn func(e *StreamEntry) bool) {
	if s.value == nil || from.Compare(to) > 0 {
		return
	}
	v := s.value
	more := true
	show := func(e *StreamEntry) bool {
		switch before, behind := e.ID.Compare(from) < 0, e.ID.Compare(to) > 0; {
		case e.deleted():
		case before && reverse, behind && !reverse:
			more = false
		case before, behind:
		default:
			more = fn(e)
		}
		return more
	}
	if reverse {
		for i := v.nodeOf(to); i >= 0 && more; i-- {
			v.nodes[i].eachBack(show)
		}
		return
	}
	for i := max(v.nodeOf(from), 0); i < len(v.nodes) && more; i++ {
		v.nodes[i].each(show)
	}
}

// Nodes is the number of nodes that the entries are in.
func (s *Stream) Nodes() int {
	if s.value == nil {
		return 0
	}
	return len(s.value.nodes)
}

// RadixNodes is the number of nodes that a radix tree of the nodes' IDs has in Redis: one for each ID, one for each branch,
// and one for each stretch of bytes without a branch. Nothing is kept like that here; people who compare servers look at it.
func (s *Stream) RadixNodes() int {
	const idBytes, none = 16, -1
	if s.Nodes() == 0 {
		return 1
	}
	count := 0
	add := func(parent, depth int) { // depths at which there are branches, or a leaf's
		count++
		if depth > parent+1 {
			count++
		}
	}
	var open []int // branches around the present ID, the deepest last
	innermost := func() int {
		if len(open) == 0 {
			return none
		}
		return open[len(open)-1]
	}
	nodes := s.value.nodes
	before := none // the depth at which the ID before parts from this one
	for i := range nodes {
		after := none
		if i+1 < len(nodes) {
			after = commonBytes(nodes[i].id, nodes[i+1].id)
		}
		add(max(before, after), idBytes)
		for innermost() > after {
			depth := innermost()
			open = open[:len(open)-1]
			add(max(after, innermost()), depth)
		}
		if innermost() < after {
			open = append(open, after)
		}
		before = after
	}
	return count
}

// commonBytes is the number of bytes that two IDs begin with alike, as 16 bytes with the highest first.
func commonBytes(a, b StreamID) int {
	if a.MS != b.MS {
		return leadingBytes(a.MS ^ b.MS)
	}
	return 8 + leadingBytes(a.Seq^b.Seq)
}
