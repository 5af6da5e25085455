package store

import "math"

// List is a view of a list, or of the place where one may come to be. A small list is packed into the arena; past the Limits it
// becomes a chunkedList, and stays one.
//
// A view is for one operation: it is valid until the keyspace changes other than through it. Elements that it hands out are the
// store's own memory, must not be changed, and hold until the list next changes; arguments are copied and must not be such memory
// of the same list. A list that becomes empty deletes its key.
type List struct {
	db     *DB
	key    Key
	entry  Entry
	big    *chunkedList // nil while packed or absent
	exists bool
}

// List opens the list at k. When there is no such key, found is false and the view is that of an empty list, which the first Push
// creates. A key of another kind is ErrWrongType.
func (db *DB) List(k Key, now int64) (l List, found bool, err error) {
	l = List{db: db, key: k}
	l.entry, l.exists = db.Find(k, now)
	if !l.exists {
		return l, false, nil
	}
	switch l.entry.rec.enc {
	case encPackedList:
	case encList:
		l.big = l.entry.object().(*chunkedList)
	default:
		return List{}, false, ErrWrongType
	}
	return l, true, nil
}

// listNodeBytes are the sizes that the negative values of list-max-listpack-size stand for, from -1 downward.
var listNodeBytes = [...]int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}

// listCountedBytes bounds a packed list whose elements are counted.
const listCountedBytes = 8 << 10

// room is what a packed list may hold.
func (l *Limits) room() listRoom {
	if n := l.ListMaxListpackSize; n < 0 {
		return listRoom{listNodeBytes[min(-n, len(listNodeBytes))-1], math.MaxInt}
	}
	return listRoom{listCountedBytes, max(l.ListMaxListpackSize, 1)}
}

// Entry is the key that holds the list. It may be used only while Len is above 0.
func (l *List) Entry() *Entry { return &l.entry }

// Len is the number of elements.
func (l *List) Len() int {
	switch {
	case !l.exists:
		return 0
	case l.big != nil:
		return l.big.count
	}
	return l.entry.count()
}

// End is the first element or the last one. The list must not be empty.
func (l *List) End(front bool) []byte {
	switch {
	case l.big == nil:
		return l.packed().end(front)
	case front:
		return l.big.first.packed().end(true)
	}
	return l.big.last.packed().end(false)
}

// At is element i, 0 <= i < Len.
func (l *List) At(i int) []byte {
	p, count := l.packed(), l.Len()
	if l.big != nil {
		c, within := l.big.locate(i)
		p, i, count = c.packed(), within, c.count
	}
	v, _ := p.next(p.seek(i, count))
	return v
}

// Walk hands n elements from element i on to fn until fn says false: upward, or downward in reverse. They must be there. fn must
// not change the list.
func (l *List) Walk(i, n int, reverse bool, fn func(i int, v []byte) bool) {
	switch {
	case n == 0:
	case l.big != nil:
		l.big.walk(i, n, reverse, fn)
	case reverse:
		p := l.packed()
		p.walkBack(p.seek(i+1, l.Len()), i, n, fn)
	default:
		p := l.packed()
		p.walk(p.seek(i, l.Len()), i, n, fn)
	}
}

// Push adds an element at an end. It creates the key when it is not there.
func (l *List) Push(front bool, v []byte) {
	i := 0
	if !front {
		i = l.Len()
	}
	l.Insert(i, v)
}

// Insert adds an element before element i, 0 <= i <= Len. It creates the key when it is not there.
func (l *List) Insert(i int, v []byte) {
	if !l.exists {
		l.entry = l.db.create(l.key, encPackedList)
		l.exists = true
	}
	l.entry.mutate()
	count := l.Len()
	if size := listElementSize(len(v)); l.big == nil && l.fits(size, count+1) {
		at := l.packed().seek(i, count)
		putListElement(l.entry.splice(at, 0, size)[at:], v)
		l.entry.setCount(count + 1)
		return
	}
	l.grow().insert(i, v, l.room())
}

// Set gives element i, 0 <= i < Len, another value.
func (l *List) Set(i int, v []byte) {
	l.entry.mutate()
	if l.big == nil {
		p := l.packed()
		at := p.seek(i, l.Len())
		_, end := p.next(at)
		size := listElementSize(len(v))
		if l.fits(size-(end-at), l.Len()) {
			putListElement(l.entry.splice(at, end-at, size)[at:], v)
			return
		}
	}
	l.grow().set(i, v, l.room())
}

// Cut takes out n elements from element i on, which must be there. Even if n is 0 it counts as a change, as LTRIM wants it.
func (l *List) Cut(i, n int) {
	if n == l.Len() {
		l.vanish()
		return
	}
	l.entry.mutate()
	if l.big != nil {
		l.big.cut(i, n, l.room())
		return
	}
	p, count := l.packed(), l.Len()
	at, end := p.seek(i, count), p.seek(i+n, count)
	l.entry.splice(at, end-at, 0)
	l.entry.setCount(count - n)
}

// Remove takes out elements that equal v and returns how many: at most limit, counted from the front or from the back.
func (l *List) Remove(v []byte, limit int, front bool) int {
	found := 0
	l.Walk(0, l.Len(), false, func(_ int, held []byte) bool {
		if string(held) == string(v) {
			found++
		}
		return !front || found < limit
	})
	n := min(found, limit)
	switch n {
	case 0:
		return 0
	case l.Len():
		l.vanish()
		return n
	}
	l.entry.mutate()
	r := removal{value: v, n: n}
	if !front {
		r.skip = found - n
	}
	if l.big != nil {
		l.big.remove(&r, l.room())
		return n
	}
	count := l.Len()
	rest, _ := l.packed().without(&r)
	l.entry.resizePacked(len(rest))
	l.entry.setCount(count - n)
	return n
}

// packed is the payload of a packed list, nil when there is no key.
func (l *List) packed() packedList {
	if !l.exists || l.big != nil {
		return nil
	}
	return l.entry.packed()
}

func (l *List) room() listRoom { return l.db.ks.limits.room() }

// fits reports whether a packed list may grow by so many bytes to count elements.
func (l *List) fits(grow, count int) bool {
	size := len(l.packed()) + grow
	return l.room().holds(size, count) && size <= l.entry.maxPacked() || grow <= 0
}

// grow makes a packed list into a chunkedList, if it is not one yet.
func (l *List) grow() *chunkedList {
	if l.big != nil {
		return l.big
	}
	big := &chunkedList{}
	p, room := l.packed(), l.room()
	p.walk(0, 0, l.Len(), func(_ int, v []byte) bool {
		big.push(false, v, room)
		return true
	})
	l.entry.toObject(encList, big)
	l.big = big
	return big
}

// vanish deletes the key. The view goes on as that of an empty list.
func (l *List) vanish() {
	l.entry.Delete()
	*l = List{db: l.db, key: l.key}
}
