package store

// objectSlab holds the values that live on the Go heap; a record keeps an index into it. Index 0 is never given out.
type objectSlab struct {
	slots []any
	free  []uint32
}

// add stores obj and returns its index.
func (s *objectSlab) add(obj any) uint64 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[i] = obj
		return uint64(i)
	}
	if len(s.slots) == 0 {
		s.slots = append(s.slots, nil)
	}
	s.slots = append(s.slots, obj)
	return uint64(len(s.slots) - 1)
}

// at is the object at index i.
func (s *objectSlab) at(i uint64) any { return s.slots[i] }

// remove forgets the object at index i; for 0, which no object has, it does nothing. The slab's own memory goes back
// when nothing is left in it.
func (s *objectSlab) remove(i uint64) {
	if i == 0 {
		return
	}
	s.slots[i] = nil
	s.free = append(s.free, uint32(i))
	if s.len() == 0 {
		*s = objectSlab{}
	}
}

// len is the number of objects held.
func (s *objectSlab) len() int { return max(0, len(s.slots)-1) - len(s.free) }
