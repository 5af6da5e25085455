package store

import (
	"strconv"

	"headgate/internal/number"
)

// Bounds of the packed form of a set that has other members than whole numbers. OBJECT ENCODING does not tell of it, since redis.conf
// of the version that it answers for has no such directives.
const (
	packedSetMembers = 128 // members
	packedSetMember  = 64  // bytes of a member
)

// Set is a view of a set, or of the place where one may come to be. A set of whole numbers is an intSet in the arena up to
// Limits.SetMaxIntsetEntries; any other small one is packed there; past the limits it becomes a setTable, and stays one.
//
// A view is for one operation: it is valid until the keyspace changes other than through it. Members that it hands out are the
// store's own memory, must not be changed, and hold until the set changes or any set hands out another; arguments are copied and,
// but for Has and Remove, must not be such memory of the same set. A set that becomes empty deletes its key.
type Set struct {
	db     *DB
	key    Key
	entry  Entry
	table  *setTable // nil while packed or absent
	exists bool
}

// setTable is a big set: a textTable without values.
type setTable struct{ textTable }

// clone implements cloner.
func (t *setTable) clone() any { return &setTable{t.textTable.clone()} }

// Set opens the set at k. When there is no such key, found is false and the view is that of an empty set, which the first Add
// creates. A key of another kind is ErrWrongType.
func (db *DB) Set(k Key, now int64) (s Set, found bool, err error) {
	s = Set{db: db, key: k}
	s.entry, s.exists = db.Find(k, now)
	if !s.exists {
		return s, false, nil
	}
	switch s.entry.rec.enc {
	case encIntSet, encPackedSet:
	case encSet:
		s.table = s.entry.object().(*setTable)
	default:
		return Set{}, false, ErrWrongType
	}
	return s, true, nil
}

// Entry is the key that holds the set. It may be used only while Len is above 0.
func (s *Set) Entry() *Entry { return &s.entry }

// Len is the number of members.
func (s *Set) Len() int {
	switch {
	case !s.exists:
		return 0
	case s.table != nil:
		return s.table.len()
	}
	return s.entry.count()
}

// Ordered reports whether the members come in order, as whole numbers.
func (s *Set) Ordered() bool { return s.isInts() }

// Has reports whether the set has a member.
func (s *Set) Has(member []byte) bool {
	switch {
	case s.table != nil:
		_, ok := s.table.find(member)
		return ok
	case s.isInts():
		n, ok := number.ParseInt(member)
		if ok {
			_, ok = s.ints().find(n)
		}
		return ok
	}
	_, _, ok := s.findPacked(member)
	return ok
}

// Add adds a member and says whether it is new. It creates the key when it is not there.
func (s *Set) Add(member []byte) bool {
	n, whole := number.ParseInt(member)
	if !s.exists {
		enc := encPackedSet
		if whole {
			enc = encIntSet
		}
		s.entry = s.db.create(s.key, enc)
		s.exists = true
	}
	if s.isInts() {
		if whole {
			if added, ok := s.addInt(n); ok {
				return added
			}
		}
		s.leaveInts(len(member))
	}
	if s.table == nil {
		if added, ok := s.addPacked(member); ok {
			return added
		}
		s.convert()
	}
	if _, held := s.table.find(member); held {
		return false
	}
	s.entry.mutate()
	s.table.insert(member, nil)
	return true
}

// Remove takes a member out and says whether it was there.
func (s *Set) Remove(member []byte) bool {
	switch {
	case !s.exists:
		return false
	case s.table != nil:
		p, ok := s.table.find(member)
		if ok && !s.vanishesWithout() {
			s.table.remove(p)
		}
		return ok
	case s.isInts():
		n, ok := number.ParseInt(member)
		if !ok {
			return false
		}
		ints := s.ints()
		i, ok := ints.find(n)
		if ok && !s.vanishesWithout() {
			s.spliceOut(i*ints.width, ints.width)
		}
		return ok
	}
	at, end, ok := s.findPacked(member)
	if ok && !s.vanishesWithout() {
		s.spliceOut(at, end-at)
	}
	return ok
}

// Each hands every member to fn until fn says false. fn must not change the set.
func (s *Set) Each(fn func(member []byte) bool) {
	switch {
	case s.table != nil:
		s.table.each(func(member, _ []byte) bool { return fn(member) })
	case s.isInts():
		ints := s.ints()
		for i := range ints.len() {
			if !fn(s.text(ints.at(i))) {
				return
			}
		}
	default:
		p := s.packed()
		for at := 0; at < len(p); {
			start, end := elementBounds(p, at)
			if !fn(p[start:end:end]) {
				return
			}
			at = end
		}
	}
}

// At returns the member at position i in [0, Len), for random picks. Positions mean nothing beyond that and change with the set.
func (s *Set) At(i int) []byte {
	switch {
	case s.table != nil:
		return s.table.name(i)
	case s.isInts():
		return s.text(s.ints().at(i))
	}
	p := s.packed()
	start, end := elementBounds(p, 0)
	for ; i > 0; i-- {
		start, end = elementBounds(p, end)
	}
	return p[start:end:end]
}

// Scan hands about count members to fn and returns the cursor to go on with; see Hash.Scan.
func (s *Set) Scan(cursor uint64, count int, fn func(member []byte)) (next uint64) {
	if s.table != nil {
		return s.table.scan(cursor, count, func(m *heldText) { fn(s.table.texts.name(m)) })
	}
	s.Each(func(member []byte) bool {
		fn(member)
		return true
	})
	return 0
}

func (s *Set) isInts() bool { return s.exists && s.entry.rec.enc == encIntSet }

// ints is the payload of a set of whole numbers.
func (s *Set) ints() intSet {
	p, count := s.entry.packed(), s.entry.count()
	if count == 0 {
		return intSet{p, intWidth(0)}
	}
	return intSet{p, len(p) / count}
}

// text is a number as a member, in memory that the next call uses again.
func (s *Set) text(n int64) []byte {
	ks := s.db.ks
	return strconv.AppendInt(ks.digits[:0], n, 10)
}

// packed is the payload of a packed set, nil when there is no key.
func (s *Set) packed() []byte {
	if !s.exists {
		return nil
	}
	return s.entry.packed()
}

// findPacked is where a member stands in a packed set.
func (s *Set) findPacked(member []byte) (at, end int, ok bool) {
	p := s.packed()
	for at < len(p) {
		start, end := elementBounds(p, at)
		if string(p[start:end]) == string(member) {
			return at, end, true
		}
		at = end
	}
	return 0, 0, false
}

// addInt does Add within an intSet, or changes nothing and says !ok when the outcome would pass the limits of that form.
func (s *Set) addInt(n int64) (added, ok bool) {
	ints := s.ints()
	i, held := ints.find(n)
	if held {
		return false, true
	}
	count := s.entry.count()
	wide := intSet{width: max(ints.width, intWidth(n))}
	if size := (count + 1) * wide.width; count+1 > s.db.ks.limits.SetMaxIntsetEntries || size > s.entry.maxPacked() {
		return false, false
	}
	s.entry.mutate()
	if wide.width > ints.width {
		wide.bytes = s.entry.resizePacked((count + 1) * wide.width)
		wide.widen(count, ints.width)
		copy(wide.bytes[(i+1)*wide.width:], wide.bytes[i*wide.width:count*wide.width])
	} else {
		wide.bytes = s.entry.splice(i*wide.width, 0, wide.width)
	}
	wide.put(i, n)
	s.entry.setCount(count + 1)
	return true, true
}

// addPacked does Add within the packed form, or changes nothing and says !ok when the outcome would pass its bounds.
func (s *Set) addPacked(member []byte) (added, ok bool) {
	if len(member) > packedSetMember {
		return false, false
	}
	if _, _, held := s.findPacked(member); held {
		return false, true
	}
	count, used := s.entry.count(), len(s.packed())
	size := elementSize(len(member))
	if count+1 > packedSetMembers || used+size > s.entry.maxPacked() {
		return false, false
	}
	s.entry.mutate()
	putElement(s.entry.splice(used, 0, size)[used:], member)
	s.entry.setCount(count + 1)
	return true, true
}

// leaveInts makes an intSet into a set of any members, so that one more of so many bytes can be added.
func (s *Set) leaveInts(more int) {
	s.entry.mutate()
	ints, room := s.ints(), 0
	for i := range ints.len() {
		room += elementSize(len(s.text(ints.at(i))))
	}
	if ints.len() >= packedSetMembers || more > packedSetMember || room+elementSize(more) > s.entry.maxPacked() {
		s.toTable()
		return
	}
	text := make([]byte, 0, room)
	for i := range ints.len() {
		var head [elementHead]byte
		member := s.text(ints.at(i))
		putElement(head[:], member)
		text = append(append(text, head[:]...), member...)
	}
	copy(s.entry.resizePacked(room), text)
	s.entry.rec.enc = encPackedSet
}

// convert makes a packed set into a setTable.
func (s *Set) convert() {
	s.entry.mutate()
	s.toTable()
}

func (s *Set) toTable() {
	table := &setTable{newTextTable()}
	s.Each(func(member []byte) bool {
		table.insert(member, nil)
		return true
	})
	s.entry.toObject(encSet, table)
	s.table = table
}

// vanishesWithout passes the gate for the removal of a member, and deletes the key if it is the last one.
func (s *Set) vanishesWithout() bool {
	if s.Len() > 1 {
		s.entry.mutate()
		return false
	}
	s.entry.Delete()
	*s = Set{db: s.db, key: s.key}
	return true
}

// spliceOut takes one member's bytes out of the payload.
func (s *Set) spliceOut(at, n int) {
	count := s.entry.count()
	s.entry.splice(at, n, 0)
	s.entry.setCount(count - 1)
}

// Members are a set of its own, outside of any database: what SUNION and its like put together.
type Members struct {
	table textTable
	other int // members that are no whole numbers
}

// NewMembers returns an empty set.
func NewMembers() *Members { return &Members{table: newTextTable()} }

// Len is the number of members.
func (m *Members) Len() int { return m.table.len() }

// Add adds a member, copied, unless it is there.
func (m *Members) Add(member []byte) {
	if _, held := m.table.find(member); held {
		return
	}
	if _, whole := number.ParseInt(member); !whole {
		m.other++
	}
	m.table.insert(member, nil)
}

// Remove takes a member out, if it is there.
func (m *Members) Remove(member []byte) {
	p, held := m.table.find(member)
	if !held {
		return
	}
	if _, whole := number.ParseInt(member); !whole {
		m.other--
	}
	m.table.remove(p)
}

// Whole reports whether all members are whole numbers.
func (m *Members) Whole() bool { return m.other == 0 }

// Each hands every member to fn. fn must not change the set.
func (m *Members) Each(fn func(member []byte)) {
	for i := range m.table.len() {
		fn(m.table.name(i))
	}
}
