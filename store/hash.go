package store

// Hash is a view of a hash value, or of the place where one may come to be. A small
// hash is packed into the arena; past the Limits it becomes a hashTable, and stays one.
//
// A view is for one operation: it is valid until the keyspace changes other than
// through it. Fields and values that it hands out are the store's own memory, must
// not be changed, and hold until the hash next changes; arguments are copied and must
// not be such memory of the same hash. A hash that becomes empty deletes its key.
type Hash struct {
	db     *DB
	key    Key
	entry  Entry
	table  *hashTable // nil while packed or absent
	exists bool
}

// hashTable is a big hash.
type hashTable struct{ textTable }

// clone implements cloner.
func (t *hashTable) clone() any { return &hashTable{t.textTable.clone()} }

// Hash opens the hash at k. When there is no such key, found is false and the view
// is that of an empty hash, which the first Set creates. A key of another kind is
// ErrWrongType.
func (db *DB) Hash(k Key, now int64) (h Hash, found bool, err error) {
	h = Hash{db: db, key: k}
	h.entry, h.exists = db.Find(k, now)
	if !h.exists {
		return h, false, nil
	}
	switch h.entry.rec.enc {
	case encPackedHash:
	case encHash:
		h.table = h.entry.object().(*hashTable)
	default:
		return Hash{}, false, ErrWrongType
	}
	return h, true, nil
}

// HashCreate is Hash for a writer that does not mind whether the key is there.
func (db *DB) HashCreate(k Key, now int64) (Hash, error) {
	h, _, err := db.Hash(k, now)
	return h, err
}

// Entry is the key that holds the hash. It may be used only while Len is above 0.
func (h *Hash) Entry() *Entry { return &h.entry }

// Len is the number of fields.
func (h *Hash) Len() int {
	switch {
	case !h.exists:
		return 0
	case h.table != nil:
		return h.table.len()
	}
	return h.entry.count()
}

// Get returns a field's value.
func (h *Hash) Get(field []byte) (value []byte, ok bool) {
	if h.table != nil {
		p, ok := h.table.find(field)
		if !ok {
			return nil, false
		}
		_, value = h.table.both(p)
		return value, true
	}
	_, value, ok = h.packed().find(field)
	return value, ok
}

// Set gives a field a value and says whether the field is new. It creates the key
// when it is not there.
func (h *Hash) Set(field, value []byte) (created bool) {
	if !h.exists {
		h.entry = h.db.create(h.key, encPackedHash)
		h.exists = true
	}
	if h.table == nil {
		if created, ok := h.setPacked(field, value); ok {
			return created
		}
		h.convert()
	}
	h.entry.mutate()
	if p, ok := h.table.find(field); ok {
		h.table.change(p, value)
		return false
	}
	h.table.insert(field, value)
	return true
}

// Delete removes a field and says whether it was there.
func (h *Hash) Delete(field []byte) bool {
	if h.table != nil {
		p, ok := h.table.find(field)
		if !ok {
			return false
		}
		if h.table.len() == 1 {
			h.vanish()
			return true
		}
		h.entry.mutate()
		h.table.remove(p)
		return true
	}
	f, _, ok := h.packed().find(field)
	if !ok {
		return false
	}
	n := h.entry.count()
	if n == 1 {
		h.vanish()
		return true
	}
	h.entry.mutate()
	h.entry.splice(f.at, f.end-f.at, 0)
	h.entry.setCount(n - 1)
	return true
}

// Each hands every field to fn until fn says false. fn must not change the hash.
func (h *Hash) Each(fn func(field, value []byte) bool) {
	if h.table != nil {
		h.table.each(fn)
		return
	}
	p := h.packed()
	for at := 0; at < len(p); {
		f, field, value := p.field(at)
		if !fn(field, value) {
			return
		}
		at = f.end
	}
}

// At returns the field at position i in [0, Len), for random picks. Positions mean
// nothing beyond that and change with the hash.
func (h *Hash) At(i int) (field, value []byte) {
	if h.table != nil {
		return h.table.both(i)
	}
	return h.packed().at(i)
}

// Scan hands about count fields to fn and returns the cursor to go on with, 0 when
// all have been shown; a cursor of 0 starts. A field that is there from start to end
// is shown at least once, whatever else comes and goes between the calls. A packed
// hash is shown whole. A big one is walked by position from the end downward; see
// memberPages for why that keeps the guarantee.
func (h *Hash) Scan(cursor uint64, count int, fn func(field, value []byte)) (next uint64) {
	if h.table != nil {
		return h.table.scan(cursor, count, func(m *heldText) { fn(h.table.texts.both(m)) })
	}
	p := h.packed()
	for at := 0; at < len(p); {
		f, field, value := p.field(at)
		fn(field, value)
		at = f.end
	}
	return 0
}

// packed is the payload of a packed hash, nil when there is no key.
func (h *Hash) packed() packedHash {
	if !h.exists {
		return nil
	}
	return h.entry.packed()
}

// setPacked does Set within the packed form, or changes nothing and says !ok when
// the outcome would pass the limits of that form.
func (h *Hash) setPacked(field, value []byte) (created, ok bool) {
	limits := &h.db.ks.limits
	if limit := limits.HashMaxListpackValue; len(field) > limit || len(value) > limit {
		return false, false
	}
	p := h.packed()
	n := h.entry.count()
	size := elementSize(len(value))
	f, held, found := p.find(field)
	if found && len(held) == len(value) && n <= limits.HashMaxListpackEntries {
		h.entry.mutate()
		copy(held, value)
		return false, true
	}
	if !found {
		n++
		f = packedField{len(p), len(p), len(p)}
		size += elementSize(len(field))
	}
	if n > limits.HashMaxListpackEntries || len(p)-(f.end-f.value)+size > h.entry.maxPacked() {
		return false, false
	}
	h.entry.mutate()
	p = h.entry.splice(f.value, f.end-f.value, size)
	at := f.value
	if !found {
		at += putElement(p[at:], field)
		h.entry.setCount(n)
	}
	putElement(p[at:], value)
	return !found, true
}

// convert makes a packed hash into a hashTable.
func (h *Hash) convert() {
	h.entry.mutate()
	table := &hashTable{newTextTable()}
	p := h.packed()
	for at := 0; at < len(p); {
		f, field, value := p.field(at)
		table.insert(field, value)
		at = f.end
	}
	h.entry.toObject(encHash, table)
	h.table = table
}

// vanish deletes the key. The view goes on as that of an empty hash.
func (h *Hash) vanish() {
	h.entry.Delete()
	*h = Hash{db: h.db, key: h.key}
}
