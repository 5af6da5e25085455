package store

import "slices"

// chunkedList is a big list: a chain of chunks, each a packedList with room at either end. A chunk holds as much as
// Limits.ListMaxListpackSize says, or one element that is larger than that. No chunk is empty.
type chunkedList struct {
	first, last *listChunk
	count       int // elements
	chunks      int
	bytes       int // of the chunks
}

// listChunk is a part of a chunkedList. Its elements are buf[start:end].
type listChunk struct {
	list          *chunkedList // nil: none yet
	before, after *listChunk
	buf           []byte
	start, end    int
	count         int
	shared        bool // a snapshot has still to see the buffer: it is not to be written to
}

// own gives the chunk a buffer of its own, before that is written to.
func (c *listChunk) own() {
	if c.shared {
		c.take(slices.Clone(c.buf))
		c.shared = false
	}
}

// take replaces the chunk's buffer.
func (c *listChunk) take(buf []byte) {
	if c.list != nil {
		c.list.bytes += cap(buf) - cap(c.buf)
	}
	c.buf = buf
}

// firstChunkSize is the room that a new chunk begins with, in bytes.
const firstChunkSize = 64

// listRoom bounds a packed list.
type listRoom struct{ bytes, count int }

// holds reports whether a packed list may have so many bytes and elements.
func (r listRoom) holds(bytes, count int) bool { return bytes <= r.bytes && count <= r.count }

func (c *listChunk) packed() packedList { return c.buf[c.start:c.end] }

func (c *listChunk) size() int { return c.end - c.start }

// makeRoom takes a larger buffer, if it must, so that n bytes fit before or behind the elements.
func (c *listChunk) makeRoom(front bool, n, limit int) {
	if front && c.start >= n || !front && len(c.buf)-c.end >= n {
		return
	}
	need := c.size() + n
	size := max(2*len(c.buf), firstChunkSize)
	if size > limit {
		size = max(limit, len(c.buf))
	}
	if size < need {
		size = need
	}
	buf, start := c.buf, 0
	if size > len(c.buf) {
		buf = make([]byte, size)
	}
	if front {
		start = size - c.size()
	}
	end := start + copy(buf[start:], c.packed())
	c.take(buf)
	c.start, c.end = start, end
}

// push adds an element at an end of the chunk.
func (c *listChunk) push(front bool, v []byte, limit int) {
	c.own()
	n := listElementSize(len(v))
	c.makeRoom(front, n, limit)
	if front {
		c.start -= n
		putListElement(c.buf[c.start:], v)
	} else {
		putListElement(c.buf[c.end:], v)
		c.end += n
	}
	c.count++
}

// replace puts an element in the place of the bytes [at, end) of the chunk's elements.
func (c *listChunk) replace(at, end int, v []byte, limit int) {
	c.own()
	n := listElementSize(len(v))
	if grow := n - (end - at); grow > 0 {
		c.makeRoom(false, grow, limit)
	}
	p := c.buf[c.start:]
	size := c.size()
	copy(p[at+n:], p[end:size])
	putListElement(p[at:], v)
	c.end = c.start + size - (end - at) + n
}

// drop takes the bytes [at, end) out, which are n elements.
func (c *listChunk) drop(at, end, n int) {
	switch {
	case at == 0:
		c.start += end
	default:
		c.own()
		p := c.packed()
		c.end = c.start + at + copy(p[at:], p[end:])
	}
	c.count -= n
	c.shrink()
}

// shrink gives memory back that is mostly unused.
func (c *listChunk) shrink() {
	if size := c.size(); len(c.buf) > 4*size+firstChunkSize {
		buf := make([]byte, 2*size)
		c.start, c.end = size/2, size/2+copy(buf[size/2:], c.packed())
		c.take(buf)
	}
}

// clone implements cloner.
func (l *chunkedList) clone() any {
	own := &chunkedList{}
	for c := l.first; c != nil; c = c.after {
		copied := &listChunk{buf: append([]byte(nil), c.packed()...), end: c.size(), count: c.count}
		own.link(copied, own.last)
		own.count += c.count
	}
	return own
}

// link puts a chunk behind another, or first.
func (l *chunkedList) link(c, behind *listChunk) {
	c.list = l
	l.bytes += c.memory()
	c.before = behind
	if behind == nil {
		c.after = l.first
		l.first = c
	} else {
		c.after = behind.after
		behind.after = c
	}
	if c.after == nil {
		l.last = c
	} else {
		c.after.before = c
	}
	l.chunks++
}

func (l *chunkedList) unlink(c *listChunk) {
	l.bytes -= c.memory()
	c.list = nil
	if c.before == nil {
		l.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		l.last = c.before
	} else {
		c.after.before = c.before
	}
	l.chunks--
}

// push adds an element at an end.
func (l *chunkedList) push(front bool, v []byte, room listRoom) {
	c := l.last
	if front {
		c = l.first
	}
	if c == nil || !room.holds(c.size()+listElementSize(len(v)), c.count+1) {
		behind := c
		if front {
			behind = nil
		}
		c = &listChunk{}
		l.link(c, behind)
	}
	c.push(front, v, room.bytes)
	l.count++
}

// locate finds element i, 0 <= i < count: its chunk, and its number there. It starts from the nearer end.
func (l *chunkedList) locate(i int) (c *listChunk, within int) {
	if i < l.count/2 {
		for c = l.first; i >= c.count; c = c.after {
			i -= c.count
		}
		return c, i
	}
	i = l.count - 1 - i
	for c = l.last; i >= c.count; c = c.before {
		i -= c.count
	}
	return c, c.count - 1 - i
}

// insert adds an element before element i, 0 <= i <= count. A chunk without room is split there.
func (l *chunkedList) insert(i int, v []byte, room listRoom) {
	if i == 0 || i == l.count {
		l.push(i == 0, v, room)
		return
	}
	c, within := l.locate(i)
	at := c.packed().seek(within, c.count)
	size := listElementSize(len(v))
	l.count++
	switch {
	case room.holds(c.size()+size, c.count+1):
		c.replace(at, at, v, room.bytes)
		c.count++
		return
	case within == 0 && room.holds(c.before.size()+size, c.before.count+1):
		c.before.push(false, v, room.bytes)
		return
	case within > 0:
		rest := &listChunk{buf: append([]byte(nil), c.packed()[at:]...), end: c.size() - at, count: c.count - within}
		l.link(rest, c)
		c.end, c.count = c.start+at, within
		c = rest
	}
	if room.holds(c.before.size()+size, c.before.count+1) {
		c.before.push(false, v, room.bytes)
		return
	}
	own := &listChunk{}
	l.link(own, c.before)
	own.push(false, v, room.bytes)
}

// set gives element i another value.
func (l *chunkedList) set(i int, v []byte, room listRoom) {
	c, within := l.locate(i)
	p := c.packed()
	at := p.seek(within, c.count)
	_, end := p.next(at)
	if c.count == 1 || room.holds(c.size()-(end-at)+listElementSize(len(v)), c.count) {
		c.replace(at, end, v, room.bytes)
		return
	}
	l.cut(i, 1, room)
	l.insert(i, v, room)
}

// cut takes out n elements from element i on.
func (l *chunkedList) cut(i, n int, room listRoom) {
	if n == 0 {
		return
	}
	c, within := l.locate(i)
	before := c.before
	l.count -= n
	for n > 0 {
		here, after := min(n, c.count-within), c.after
		n -= here
		if here == c.count {
			l.unlink(c)
		} else {
			p := c.packed()
			at := p.seek(within, c.count)
			c.drop(at, p.seek(within+here, c.count), here)
		}
		c, within = after, 0
	}
	if c != nil {
		l.join(c.before, c, room)
	}
	if before != nil {
		l.join(before, before.after, room)
	}
}

// join makes one of two neighbours that have become small; either may be nil.
func (l *chunkedList) join(c, after *listChunk, room listRoom) {
	if c == nil || after == nil || !room.holds(2*(c.size()+after.size()), c.count+after.count) {
		return
	}
	c.own()
	c.makeRoom(false, after.size(), room.bytes)
	c.end += copy(c.buf[c.end:], after.packed())
	c.count += after.count
	l.unlink(after)
}

// remove takes out elements that equal a value.
func (l *chunkedList) remove(r *removal, room listRoom) {
	for c := l.first; c != nil && r.n > 0; {
		after := c.after
		c.own()
		rest, removed := c.packed().without(r)
		c.end = c.start + len(rest)
		c.count -= removed
		l.count -= removed
		switch {
		case c.count == 0:
			l.unlink(c)
		case removed > 0:
			c.shrink()
			l.join(c.before, c, room)
		}
		c = after
	}
}

// walk hands n elements from element i on to fn, upward or downward, until fn says false.
func (l *chunkedList) walk(i, n int, reverse bool, fn func(i int, v []byte) bool) {
	if n == 0 {
		return
	}
	c, within := l.locate(i)
	for n > 0 {
		p := c.packed()
		if reverse {
			here := min(n, within+1)
			if !p.walkBack(p.seek(within+1, c.count), i, here, fn) {
				return
			}
			i, n, c = i-here, n-here, c.before
			if c != nil {
				within = c.count - 1
			}
			continue
		}
		here := min(n, c.count-within)
		if !p.walk(p.seek(within, c.count), i, here, fn) {
			return
		}
		i, n, c, within = i+here, n-here, c.after, 0
	}
}
