package store

import "slices"

const (
	savedMember   = 96       // bytes that a saved member takes up beyond its texts, about
	elementWork   = 16       // work of emitting an element beyond its bytes
	longTextPart  = 16 << 10 // bytes of a long string emitted at a time
	wholeTextSize = 64 << 10 // bytes of a big string that is emitted at once all the same
)

// stringView views a big string. Appending to the string leaves a frozen view alone; any other change in place has the
// string copied first.
type stringView struct {
	owner *bigString
	data  []byte
	at    int
	extra *int
	kept  int // bytes added to extra
}

func (v *stringView) freeze(extra *int) {
	v.extra = extra
	v.owner.frozen = v
}

// ownBytes gives the string bytes that no view shares, before they are changed in place.
func (s *bigString) ownBytes() {
	if v := s.frozen; v != nil {
		v.kept = len(s.data)
		*v.extra += v.kept
		s.data = slices.Clone(s.data)
		s.frozen = nil
	}
}

func (v *stringView) begin(sink ValueSink) {
	if len(v.data) <= wholeTextSize {
		sink.Text(v.data)
		v.at = len(v.data)
		return
	}
	sink.LongText(len(v.data))
}

func (v *stringView) emit(sink ValueSink, budget int) (work int, done bool) {
	n := min(len(v.data)-v.at, max(budget, longTextPart))
	if n == 0 {
		return len(v.data), true
	}
	sink.TextPart(v.data[v.at : v.at+n])
	v.at += n
	if v.at < len(v.data) {
		return n, false
	}
	sink.End()
	return n, true
}

func (v *stringView) thaw() {
	if v.owner.frozen == v {
		v.owner.frozen = nil
	}
	*v.extra -= v.kept
}

// textView views a big hash or set. When frozen it still reads the table itself, but for the members that have been changed or
// moved since, of which it has copies.
type textView struct {
	table *textTable
	count int
	next  int // positions below it have been emitted
	saved map[int]savedText
	extra *int
}

// savedText is a name, and a value behind it.
type savedText struct {
	text []byte
	name int
}

func (s savedText) both() (name, value []byte) { return s.text[:s.name], s.text[s.name:] }

func (v *textView) freeze(extra *int) {
	v.extra = extra
	v.table.frozen = v
}

// save keeps the member at position p for a snapshot, if there is one that has still to see it, before it is changed or moved.
func (t *textTable) save(p int) {
	v := t.frozen
	if v == nil || p < v.next || p >= v.count {
		return
	}
	if _, held := v.saved[p]; held {
		return
	}
	if v.saved == nil {
		v.saved = make(map[int]savedText)
	}
	name, value := t.both(p)
	v.saved[p] = savedText{slices.Concat(name, value), len(name)}
	*v.extra += savedMember + len(name) + len(value)
}

// take returns the next member.
func (v *textView) take() (name, value []byte) {
	p := v.next
	v.next++
	s, ok := v.saved[p]
	if !ok {
		return v.table.both(p)
	}
	v.forget(p, s)
	return s.both()
}

func (v *textView) forget(p int, s savedText) {
	delete(v.saved, p)
	*v.extra -= savedMember + len(s.text)
}

func (v *textView) thaw() {
	for p, s := range v.saved {
		v.forget(p, s)
	}
	v.saved = nil
	if v.table.frozen == v {
		v.table.frozen = nil
	}
}

// hashView views a big hash.
type hashView struct{ textView }

func (v *hashView) begin(sink ValueSink) { sink.Hash(v.count, false) }

func (v *hashView) emit(sink ValueSink, budget int) (work int, done bool) {
	for v.next < v.count && work < budget {
		field, value := v.take()
		sink.Pair(field, value)
		work += elementWork + len(field) + len(value)
	}
	if v.next < v.count {
		return work, false
	}
	sink.End()
	return work, true
}

// zsetView views a big sorted set. When frozen it has a copy of its tree, whose nodes are common with the set's until that changes
// them.
type zsetView struct {
	tree *zsetTree
	left int
	last zsetItem
}

func (v *zsetView) freeze(*int) { v.tree = &zsetTree{order: v.tree.order.Copy()} }

func (v *zsetView) begin(sink ValueSink) {
	sink.ZSet(v.left, false)
	v.last, _ = v.tree.order.Max()
}

// emit goes downward. The entry that comes next is where the tree is entered again.
func (v *zsetView) emit(sink ValueSink, budget int) (work int, done bool) {
	v.tree.order.Descend(v.last, func(item zsetItem) bool {
		v.last = item
		if work >= budget {
			return false
		}
		sink.Scored(nameBytes(item.member), item.score)
		work += elementWork + len(item.member)
		v.left--
		return true
	})
	if v.left > 0 {
		return work, false
	}
	sink.End()
	return work, true
}

func (v *zsetView) thaw() { v.tree = nil }

// logView views a sorted set that is a log: its stamps from the last one back, then the members beside them. When frozen it has a
// copy, which shares what does not change.
type logView struct {
	owner  *zsetLog
	stamps stampLog
	at     logPlace // of the stamp that was emitted last
	left   int      // stamps to come
	rest   *zsetView
	text   [maxStampText]byte
}

func newLogView(l *zsetLog) *logView {
	v := &logView{owner: l, stamps: l.stamps, left: l.stamps.len(), at: logPlace{page: len(l.stamps.pages)}}
	if l.rest != nil {
		v.rest = &zsetView{tree: l.rest, left: l.rest.len()}
		v.rest.last, _ = l.rest.order.Max()
	}
	return v
}

func (v *logView) freeze(*int) {
	v.stamps = v.owner.stamps.clone()
	if v.rest != nil {
		v.rest.freeze(nil)
	}
}

func (v *logView) begin(sink ValueSink) {
	n := v.left
	if v.rest != nil {
		n += v.rest.left
	}
	sink.ZSet(n, false)
}

func (v *logView) emit(sink ValueSink, budget int) (work int, done bool) {
	for ; v.left > 0 && work < budget; v.left-- {
		v.at = v.stamps.prev(v.at)
		s := v.stamps.at(v.at)
		text := s.appendText(v.text[:0])
		sink.Scored(text, float64(s.score))
		work += elementWork + len(text)
	}
	switch {
	case v.left > 0:
		return work, false
	case v.rest != nil:
		n, done := v.rest.emit(sink, max(budget-work, 1))
		return work + n, done
	}
	sink.End()
	return work, true
}

func (v *logView) thaw() {
	v.owner, v.stamps, v.rest = nil, stampLog{}, nil
}

// setView views a big set.
type setView struct{ textView }

func (v *setView) begin(sink ValueSink) { sink.Set(v.count) }

func (v *setView) emit(sink ValueSink, budget int) (work int, done bool) {
	for v.next < v.count && work < budget {
		member, _ := v.take()
		sink.Member(member)
		work += elementWork + len(member)
	}
	if v.next < v.count {
		return work, false
	}
	sink.End()
	return work, true
}

// listView views a big list. When frozen it has the chunks' buffers, which those leave alone from then on.
type listView struct {
	list  *chunkedList // unless it is frozen
	chunk *listChunk   // the next one, unless it is frozen
	count int
	parts []listPart // the chunks, if it is frozen
	next  int
	extra *int
}

// listPart is what a chunk has held.
type listPart struct {
	chunk *listChunk
	held  packedList
}

// partBytes is what a part takes up.
const partBytes = 32

func (v *listView) freeze(extra *int) {
	l := v.list
	v.count, v.extra, v.list = l.count, extra, nil
	v.parts = make([]listPart, 0, l.chunks)
	for c := l.first; c != nil; c = c.after {
		c.shared = true
		v.parts = append(v.parts, listPart{c, c.packed()})
	}
	*extra += partBytes * len(v.parts)
}

func (v *listView) begin(sink ValueSink) {
	if v.list == nil {
		sink.List(v.count, len(v.parts))
		return
	}
	v.chunk = v.list.first
	sink.List(v.list.count, v.list.chunks)
}

func (v *listView) emit(sink ValueSink, budget int) (work int, done bool) {
	for work < budget {
		p := v.take()
		if p == nil {
			sink.End()
			return work, true
		}
		p.emit(sink)
		work += elementWork + len(p)
	}
	return work, false
}

// take returns what the next chunk holds, or nil.
func (v *listView) take() packedList {
	if v.list != nil {
		if v.chunk == nil {
			return nil
		}
		p := v.chunk.packed()
		v.chunk = v.chunk.after
		return p
	}
	if v.next == len(v.parts) {
		return nil
	}
	part := &v.parts[v.next]
	v.next++
	p := part.held
	part.release()
	return p
}

// release lets the chunk be written to again. If it has a buffer of its own by now, that makes no difference.
func (p *listPart) release() {
	p.chunk.shared = false
	*p = listPart{}
}

func (v *listView) thaw() {
	for ; v.next < len(v.parts); v.next++ {
		v.parts[v.next].release()
	}
	*v.extra -= partBytes * len(v.parts)
	v.parts = nil
}
