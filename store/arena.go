package store

import "unsafe"

// ref addresses a block of an arena in units of 8 bytes. 0 is no block.
type ref uint32

const (
	unitSize      = 8       // bytes a ref counts in; every block is a multiple of it and aligned to it
	chunkSize     = 1 << 20 // bytes mapped at a time
	runSize       = 64 << 10
	runsPerChunk  = chunkSize / runSize
	chunkShift    = 17 // bits of a ref below the chunk's number
	runShift      = 13 // bits of a ref below the run's number
	chunkMask     = 1<<chunkShift - 1
	maxChunks     = 1 << (32 - chunkShift)
	fullMargin    = 64            // chunks that are kept back, see Keyspace.Full
	crowdedChunks = maxChunks / 8 // so few chunks are left of an arena that is crowded
	warmRunsLimit = 16            // free runs that stay resident
	clearedChunks = 4             // an arena of no more stays mapped when it is cleared
)

// arena is memory outside the Go heap, cut into blocks of fixed classes. Chunks of 1 MiB are cut into runs of 64 KiB,
// and a run serves one class while a block in it is in use: the next block comes off the run's free list, which is
// threaded through the free blocks, or from its untouched end. What describes a run is kept beside the memory and not in
// it, so that neither looking up nor giving back touches a page for bookkeeping. (The shape is mimalloc's: Leijen,
// Zorn, de Moura, "Mimalloc: Free List Sharding in Action", 2019.) A run without blocks in use is free for any class;
// all but warmRunsLimit of those are given back to the operating system.
//
// A block above maxBlock is a mapping of its own, and takes up a chunk's number.
//
// The zero arena is ready for use.
type arena struct {
	bases    *[maxChunks]unsafe.Pointer // where each chunk starts; number 0 is never used
	runs     *[maxChunks]*[runsPerChunk]run
	current  [maxClasses]*run // the run that alloc takes from
	partial  [maxClasses]*run // other runs with room, in a list
	warm     []*run           // free runs that are resident
	cold     []*run           // free runs that are not
	huge     map[uint32]int   // chunk number -> bytes mapped
	spare    []uint32         // chunk numbers that became free
	next     uint32           // the next chunk number never used; 0 before the first
	used     uint64           // bytes of blocks in use
	all      *arenas          // what it is one of, or nil
	resident uint64           // bytes of runs in use or warm, and of huge blocks
	check    bool             // look for double frees and frees into the wrong class; set before the first alloc
}

// arenas are several arenas.
type arenas struct {
	used    uint64 // bytes of their blocks in use
	crowded func() // is called when one of them takes a chunk and is crowded, or nil
}

// runState is where a run is listed.
type runState uint8

const (
	runFree    runState = iota // in warm or cold
	runCurrent                 // in current
	runPartial                 // in the list of partial
	runFull                    // nowhere
)

// run describes 64 KiB of a chunk.
type run struct {
	next, prev *run   // list of partial runs of the class
	start      ref    // first block
	free       ref    // head of the free list
	step       uint32 // size of a block in units
	bump       uint16 // blocks taken from the untouched end so far
	limit      uint16 // blocks the run has room for
	live       uint16 // blocks in use
	class      uint8
	state      runState
	inUse      *blockSet // which blocks are in use, when the arena checks
}

// at is the address of the block r, which must be in use.
func (a *arena) at(r ref) unsafe.Pointer {
	return unsafe.Add(a.bases[r>>chunkShift], uintptr(r&chunkMask)*unitSize)
}

// touchEnd is where touch loads for the second time: the last word of a record of 48 bytes.
const touchEnd = 40

// touch loads the first word of the block r and one touchEnd bytes on, or the chunk's last if the block is shorter and
// at its end. The sum means nothing.
func (a *arena) touch(r ref) uint64 {
	base, offset := a.bases[r>>chunkShift], uintptr(r&chunkMask)*unitSize
	return *(*uint64)(unsafe.Add(base, offset)) +
		*(*uint64)(unsafe.Add(base, min(offset+touchEnd, chunkSize-unitSize)))
}

// alloc takes a block of the class; its bytes are undefined. It panics when the operating system has no memory left
// or all addresses are used: callers ask Keyspace.Full before that, with what they may need.
func (a *arena) alloc(class uint8) ref {
	var r ref
	run := a.current[class%maxClasses]
	switch {
	case run != nil && run.free != 0:
		r = run.free
		run.free = *(*ref)(a.at(r))
	case run != nil && run.bump < run.limit:
		r = run.start + ref(uint32(run.bump)*run.step)
		run.bump++
	default:
		a.nextRun(class)
		return a.alloc(class)
	}
	run.live++
	a.use(int(classSize(class)))
	if a.check {
		run.inUse.take(run, r)
	}
	return r
}

// nextRun replaces the class's current run, which is full or missing, by one with room.
func (a *arena) nextRun(class uint8) *run {
	if full := a.current[class]; full != nil {
		full.state = runFull
	}
	r := a.partial[class]
	if r != nil {
		a.unlist(r)
	} else {
		r = a.takeFreeRun()
		size := classSize(class)
		r.class, r.step, r.limit = class, size/unitSize, uint16(runSize/size)
		r.free, r.bump, r.live = 0, 0, 0
		if a.check {
			r.inUse = &blockSet{}
		}
	}
	r.state = runCurrent
	a.current[class] = r
	return r
}

// free gives back a block of the class.
func (a *arena) free(r ref, class uint8) {
	if class == hugeClass {
		a.freeHuge(r)
		return
	}
	run := &a.runs[r>>chunkShift][(r>>runShift)%runsPerChunk]
	if a.check {
		run.inUse.release(run, r, class)
	}
	a.use(-int(classSize(class)))
	*(*ref)(a.at(r)) = run.free
	run.free = r
	run.live--
	if run.live == 0 {
		a.retire(run)
	} else if run.state == runFull {
		run.state = runPartial
		a.list(run)
	}
}

// retire makes a run without blocks in use free for any class, and gives its memory back unless it is kept warm.
func (a *arena) retire(r *run) {
	switch r.state {
	case runCurrent:
		a.current[r.class] = nil
	case runPartial:
		a.unlist(r)
	}
	r.state = runFree
	if len(a.warm) < warmRunsLimit {
		a.warm = append(a.warm, r)
		return
	}
	discardMemory(a.at(r.start), runSize)
	a.resident -= runSize
	a.cold = append(a.cold, r)
}

// takeFreeRun is a free run, from a new chunk if need be.
func (a *arena) takeFreeRun() *run {
	if n := len(a.warm); n > 0 {
		r := a.warm[n-1]
		a.warm = a.warm[:n-1]
		return r
	}
	if len(a.cold) == 0 {
		a.addChunk()
	}
	n := len(a.cold)
	r := a.cold[n-1]
	a.cold = a.cold[:n-1]
	a.resident += runSize
	return r
}

// addChunk maps a chunk, whose runs are cold.
func (a *arena) addChunk() {
	chunk := a.takeChunkNumber()
	a.bases[chunk] = mapMemory(chunkSize)
	runs := &[runsPerChunk]run{}
	a.runs[chunk] = runs
	for i := runsPerChunk - 1; i >= 0; i-- {
		runs[i].start = ref(chunk)<<chunkShift + ref(i)<<runShift
		a.cold = append(a.cold, &runs[i])
	}
}

// takeChunkNumber is a chunk number that is not in use.
func (a *arena) takeChunkNumber() uint32 {
	if a.bases == nil {
		a.bases = new([maxChunks]unsafe.Pointer)
		a.runs = new([maxChunks]*[runsPerChunk]run)
		a.next = 1
	}
	chunk := a.next
	switch n := len(a.spare); {
	case n > 0:
		chunk = a.spare[n-1]
		a.spare = a.spare[:n-1]
	case a.next == maxChunks:
		panic("store: arena exhausted")
	default:
		a.next++
	}
	if a.left() < crowdedChunks && a.all != nil && a.all.crowded != nil {
		a.all.crowded()
	}
	return chunk
}

// left is how many chunks may still be taken.
func (a *arena) left() int { return maxChunks - max(int(a.next), 1) + len(a.spare) }

// spares reports whether a block of the class is to be had without one of the last chunks.
func (a *arena) spares(class uint8) bool {
	return a.left() >= fullMargin || a.partial[class%maxClasses] != nil || len(a.warm)+len(a.cold) > 0
}

// allocHuge takes a block of size bytes above maxBlock, as a mapping of its own.
func (a *arena) allocHuge(size int) ref {
	chunk := a.takeChunkNumber()
	a.bases[chunk] = mapMemory(size)
	if a.huge == nil {
		a.huge = make(map[uint32]int)
	}
	a.huge[chunk] = size
	a.use(size)
	a.resident += uint64(size)
	return ref(chunk) << chunkShift
}

// freeHuge unmaps a block from allocHuge.
func (a *arena) freeHuge(r ref) {
	chunk := uint32(r >> chunkShift)
	size, ok := a.huge[chunk]
	if !ok || r&chunkMask != 0 {
		panic("store: huge block freed that is not in use")
	}
	unmapMemory(a.bases[chunk], size)
	a.bases[chunk] = nil
	delete(a.huge, chunk)
	a.spare = append(a.spare, chunk)
	a.use(-size)
	a.resident -= uint64(size)
}

// clear frees every block at once and returns what is to be unmapped: nothing of an arena of few chunks, whose runs are kept like those that come
// free one by one. To map memory anew takes many times as long as to write some keys into it.
func (a *arena) clear() []mapping {
	if a.next > clearedChunks+1 || len(a.huge) > 0 {
		return a.release()
	}
	a.use(-int(a.used))
	for chunk := uint32(1); chunk < a.next; chunk++ {
		if a.runs[chunk] == nil { // a huge block was here
			continue
		}
		for i := range a.runs[chunk] {
			if r := &a.runs[chunk][i]; r.state != runFree {
				r.live = 0
				a.retire(r)
			}
		}
	}
	return nil
}

// release frees every block at once and returns what is to be unmapped.
func (a *arena) release() []mapping {
	var maps []mapping
	for chunk := uint32(1); chunk < a.next; chunk++ {
		if size, ok := a.huge[chunk]; ok {
			maps = append(maps, mapping{a.bases[chunk], size})
		} else if a.bases[chunk] != nil {
			maps = append(maps, mapping{a.bases[chunk], chunkSize})
		}
	}
	a.use(-int(a.used))
	*a = arena{check: a.check, all: a.all}
	return maps
}

// use counts bytes of blocks that are taken, or with a negative number given back.
func (a *arena) use(bytes int) {
	a.used += uint64(bytes)
	if a.all != nil {
		a.all.used += uint64(bytes)
	}
}

// list puts a run into its class's list of partial runs.
func (a *arena) list(r *run) {
	head := a.partial[r.class]
	r.next, r.prev = head, nil
	if head != nil {
		head.prev = r
	}
	a.partial[r.class] = r
}

// unlist takes a run out of that list.
func (a *arena) unlist(r *run) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		a.partial[r.class] = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	r.next, r.prev = nil, nil
}

// bytesAt is the first n bytes of a record's block.
func bytesAt(rec *record, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(rec)), n)
}
