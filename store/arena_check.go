package store

import "fmt"

// blockSet is the set of a run's blocks that are in use, kept only by an arena that checks itself.
type blockSet [runSize / unitSize / 2 / 64]uint64

// index is the block's number in its run; it panics for an address inside a block.
func (s *blockSet) index(run *run, r ref) uint32 {
	offset := uint32(r - run.start)
	if run.step == 0 || offset%run.step != 0 || offset/run.step >= uint32(run.limit) {
		panic(fmt.Sprintf("store: %#x is no block of its run", r))
	}
	return offset / run.step
}

// take notes that a block is given out.
func (s *blockSet) take(run *run, r ref) {
	i := s.index(run, r)
	if s[i/64]&(1<<(i%64)) != 0 {
		panic(fmt.Sprintf("store: block %#x given out twice", r))
	}
	s[i/64] |= 1 << (i % 64)
}

// release notes that a block comes back.
func (s *blockSet) release(run *run, r ref, class uint8) {
	if run.state == runFree {
		panic(fmt.Sprintf("store: block %#x freed in a run that is free", r))
	}
	if run.class != class {
		panic(fmt.Sprintf("store: block %#x of class %d freed as class %d", r, run.class, class))
	}
	i := s.index(run, r)
	if s[i/64]&(1<<(i%64)) == 0 {
		panic(fmt.Sprintf("store: block %#x freed twice", r))
	}
	s[i/64] &^= 1 << (i % 64)
}
