package store

// object is a value on the Go heap.
type object interface {
	// clone returns a copy: what changes in the one is not seen in the other.
	clone() any
	// memory estimates the bytes that the value takes up, in a time that hardly depends on how many they are.
	memory() int
}

// objectSlab holds the values that live on the Go heap; a record keeps an index into it. Index 0 is never given out.
type objectSlab struct {
	slots []objectSlot
	free  []uint32
	bytes int // of all values, as last measured
}

type objectSlot struct {
	object object
	bytes  int  // as last measured
	noted  bool // it is among Keyspace.changing
}

// add stores obj and returns its index.
func (s *objectSlab) add(obj object) uint64 {
	if len(s.slots) == 0 {
		s.slots = append(s.slots, objectSlot{})
	}
	i := len(s.slots)
	if n := len(s.free); n > 0 {
		i = int(s.free[n-1])
		s.free = s.free[:n-1]
	} else {
		s.slots = append(s.slots, objectSlot{})
	}
	s.slots[i] = objectSlot{object: obj}
	return uint64(i)
}

// at is the object at index i.
func (s *objectSlab) at(i uint64) object { return s.slots[i].object }

// remove forgets the object at index i; for 0, which no object has, it does nothing. The slab's own memory goes back
// when nothing is left in it.
func (s *objectSlab) remove(i uint64) {
	if i == 0 {
		return
	}
	s.bytes -= s.slots[i].bytes
	s.slots[i] = objectSlot{}
	s.free = append(s.free, uint32(i))
	if s.len() == 0 {
		*s = objectSlab{}
	}
}

// len is the number of objects held.
func (s *objectSlab) len() int { return max(0, len(s.slots)-1) - len(s.free) }

// Values on the Go heap are measured anew after they have changed: each that is about to change is noted here, and measured when so
// many others have been that the change must be over, or when somebody wants to know.
const maxChanging = 32

type changingObject struct {
	db    *DB
	index uint64
}

// addObject keeps a value for a record.
func (db *DB) addObject(obj object) (index uint64) {
	index = db.objects.add(obj)
	db.noteChange(index)
	return index
}

// removeObject forgets the value at an index; 0 is none.
func (db *DB) removeObject(index uint64) {
	before := db.objects.bytes
	db.objects.remove(index)
	db.ks.objectBytes -= before - db.objects.bytes
}

// noteChange has the value of a record measured when it has changed.
func (db *DB) noteChange(index uint64) {
	if index >= uint64(len(db.objects.slots)) {
		return
	}
	slot := &db.objects.slots[index]
	if slot.noted {
		return
	}
	slot.noted = true
	ks := db.ks
	place := &ks.changing[ks.nextChanging%maxChanging]
	ks.nextChanging++
	place.measure()
	*place = changingObject{db, index}
}

// measure measures the value, if there is still one.
func (c *changingObject) measure() {
	if c.db == nil || c.index >= uint64(len(c.db.objects.slots)) {
		return
	}
	if slot := &c.db.objects.slots[c.index]; slot.object != nil {
		before := slot.bytes
		slot.bytes, slot.noted = slot.object.memory(), false
		c.db.objects.bytes += slot.bytes - before
		c.db.ks.objectBytes += slot.bytes - before
	}
}

// measureAll brings the measured sizes of all values up to date. It has to be done before values change their database.
func (ks *Keyspace) measureAll() {
	for i := range min(ks.nextChanging, maxChanging) {
		ks.changing[i].measure()
		ks.changing[i] = changingObject{}
	}
	ks.nextChanging = 0
}
