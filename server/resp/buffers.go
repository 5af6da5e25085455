package resp

import (
	"maps"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// largestKept is the largest buffer that Buffers keeps between uses for
	// whoever needs one of its size, in bytes. Larger ones have others' sizes.
	largestKept = 1 << 20
	// largeKept is how many bytes of larger ones Buffers keeps until Trim finds
	// them unused, or a part of SetLimit's limit (overdraft): who asks for large
	// replies mostly asks again, and new pages cost more than the copying. What
	// was kept and has been given out for less than it holds is among them.
	largeKept = 64 << 20
	// largeEach is how many bytes of one of these are kept. What it has beyond
	// goes back to the system.
	largeEach = 16 << 20
	// keptMax is how many bytes of buffers Buffers keeps between uses.
	keptMax = 16 << 20
	// smallKept is how many buffers of BufferSize are among these: each front
	// has a Pool for them.
	smallKept = 32
	// heapBuffers is how many buffers of BufferSize come from the Go heap:
	// those that are in use all the time. The others serve a crowd that leaves
	// again.
	heapBuffers = poolMax
	// hugeStep is by how much a buffer grows at once, in bytes, that is better
	// made of huge pages: a reply of large values. Others grow by little, and
	// together, as those of subscribers who all get the same messages; there
	// each huge page would be a pause of its own in the same command.
	hugeStep = 1 << 20
	// coarseStep is what buffers above largestKept are a multiple of, in bytes:
	// so much at a time is asked of the system.
	coarseStep = 256 << 10
	// alwaysAllowed is the size of a buffer that a connection may have even
	// when all buffers together are over their limit, in bytes: who asks for
	// little is not made to pay for who took much.
	alwaysAllowed = 1 << 20
	// unmapStep is how much of a large buffer is given back to the system in one
	// step, so that nobody waits for more: each page that was written to costs
	// some 0.2 µs.
	unmapStep = 2 << 20
	// shrinkFrom and shrinkPart say when the map of buffers is made anew: from so
	// many buffers on, when one in so many of them is left.
	shrinkFrom = 1024
	shrinkPart = 4
	// overdraft is the part of the limit by which buffers may exceed it until
	// the largest clients are gone.
	overdraft = 8
)

const kinds = 7 // sizes that are kept: BufferSize, twice that, … largestKept

// Buffers is where connections get the memory for what they have received and
// for what they have still to send. Buffers above BufferSize lie outside the Go
// heap where the system offers that: one grows without being copied, and goes
// back to the system soon after it was put back, not after a collection. Up to
// largestKept one costs only the pages that were written to; the pages of
// larger ones are asked for many at a time, since they are written to at once,
// and a fault for each would take longer than that.
//
// The zero value is ready; a nil *Buffers takes everything from the Go heap and
// counts nothing. It is safe for concurrent use.
type Buffers struct {
	used  atomic.Int64 // bytes that are given out
	going atomic.Int64 // bytes that were, and are on their way back to the system
	max   atomic.Int64 // bytes that may be; 0 = as many as there are

	round atomic.Uint32 // how often Trim was called; Pools follow

	mu     sync.Mutex
	free   [kinds][][]byte
	fewest [kinds]int        // elements of free at one time, since the last Trim
	kept   int               // bytes in free
	inHeap int               // buffers of BufferSize that came from the Go heap
	mapped map[*byte]mapping // those that lie outside the Go heap, by where they begin
	most   int               // elements of mapped at one time, since it was made

	large      [][]byte // kept ones above largestKept, the one that was put back last at the end; all of their pages are there
	largeBytes int      // in large, and those that others hold beyond what counts as given out
	largeLeast int      // elements of large at one time, since the last Trim

	leaving [][]byte // large ones that a goroutine is giving back
}

// mapping is memory from the system.
type mapping struct {
	room  int // bytes of address space, to which a buffer may grow as it is
	there int // bytes from its beginning that may have pages
}

// Used returns how many bytes are given out, in buffers above BufferSize.
func (b *Buffers) Used() int64 { return b.used.Load() }

// SetLimit sets how many bytes all buffers may have together before large ones
// are refused; 0 is no limit.
func (b *Buffers) SetLimit(bytes int64) { b.max.Store(bytes) }

// Crowded reports whether more is given out than SetLimit allows.
func (b *Buffers) Crowded() bool {
	limit := b.max.Load()
	return limit > 0 && b.used.Load() > limit
}

// refuses reports whether a buffer of that size is not to be had, since all
// together are over their limit.
func (b *Buffers) refuses(size int) bool {
	if b == nil || size <= alwaysAllowed {
		return false
	}
	limit := b.max.Load()
	return limit > 0 && b.used.Load()+b.going.Load()+int64(size) > limit+limit/overdraft
}

// capacity returns the size of the buffer that serves for n bytes.
func capacity(n int) int {
	switch {
	case n <= BufferSize:
		return BufferSize
	case n <= largestKept:
		return 1 << bits.Len(uint(n-1))
	}
	return (n + coarseStep - 1) / coarseStep * coarseStep
}

// kind returns the index in Buffers.free of a size that is kept.
func kind(size int) int { return bits.Len(uint(size/BufferSize)) - 1 }

// Get returns a buffer of at least n bytes with whatever it held before. Its
// length is its capacity.
func (b *Buffers) Get(n int) []byte {
	size := capacity(n)
	if b == nil {
		return make([]byte, size)
	}
	if size > BufferSize {
		b.used.Add(int64(size))
	}
	if size > largestKept {
		return b.fromLarge(size)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := &b.free[kind(size)]
	if last := len(*list) - 1; last >= 0 {
		buf := (*list)[last]
		(*list)[last] = nil
		*list = (*list)[:last]
		b.fewest[kind(size)] = min(b.fewest[kind(size)], last)
		b.kept -= size
		return buf
	}
	if size == BufferSize && b.inHeap < heapBuffers {
		return b.fromHeap(size)
	}
	return b.fromSystem(size)
}

// fromLarge returns a buffer above largestKept.
func (b *Buffers) fromLarge(size int) []byte {
	b.mu.Lock()
	buf := b.takeLarge(size)
	if buf != nil {
		b.mu.Unlock()
		return buf
	}
	buf = b.fromSystem(size)
	b.mu.Unlock()
	adviseHuge(buf)
	populate(buf)
	return buf
}

// takeLarge returns a kept buffer of that size, nil if there is none. The caller
// holds mu.
func (b *Buffers) takeLarge(size int) []byte {
	i := b.findLarge(size)
	if i < 0 {
		return nil
	}
	buf := b.large[i]
	b.large = slices.Delete(b.large, i, i+1)
	b.largeLeast = min(b.largeLeast, len(b.large))
	b.largeBytes -= size // what is there beyond still counts as kept, or clients could hold any amount of it
	b.note(buf)
	return buf[:size:size]
}

// findLarge returns the index in large of the buffer that was put back last
// among those that are large enough, -1 if none is. The caller holds mu.
func (b *Buffers) findLarge(size int) int {
	for i := len(b.large) - 1; i >= 0; i-- {
		if len(b.large[i]) >= size {
			return i
		}
	}
	return -1
}

// keepLarge keeps the beginning of a buffer for the next use, and returns the
// rest of it. The caller holds mu.
func (b *Buffers) keepLarge(buf []byte) (rest []byte) {
	most := largeKept
	if limit := b.max.Load(); limit > 0 {
		most = min(most, int(limit/overdraft))
	}
	n := min(len(buf), largeEach, most-b.largeBytes) / coarseStep * coarseStep
	if n <= largestKept {
		return buf
	}
	b.large = append(b.large, buf[:n:n])
	b.largeBytes += n
	return buf[n:]
}

// fromSystem returns memory from the system, or from the Go heap if the system
// has no mapping left. The caller holds mu.
func (b *Buffers) fromSystem(size int) []byte {
	buf := mapBuffer(size)
	if buf == nil {
		return b.fromHeap(size)
	}
	b.note(buf)
	return buf
}

// fromHeap returns memory from the Go heap. The caller holds mu.
func (b *Buffers) fromHeap(size int) []byte {
	if size == BufferSize {
		b.inHeap++
	}
	return make([]byte, size)
}

// note notes that a buffer lies outside the Go heap. The caller holds mu.
func (b *Buffers) note(buf []byte) {
	if b.mapped == nil {
		b.mapped = make(map[*byte]mapping)
	}
	b.mapped[unsafe.SliceData(buf)] = mapping{len(buf), len(buf)}
	b.most = max(b.most, len(b.mapped))
}

// shrink makes the map of buffers anew when few are left of many: a map keeps
// the room for as many elements as it has had. The caller holds mu.
func (b *Buffers) shrink() {
	if b.most < shrinkFrom || len(b.mapped) > b.most/shrinkPart {
		return
	}
	left := make(map[*byte]mapping, len(b.mapped))
	maps.Copy(left, b.mapped)
	b.mapped, b.most = left, len(left)
}

// Grow returns a buffer of at least n bytes, which are more than buf has, that
// begins with what buf holds. It is mostly larger than that, so that who goes on
// growing it byte by byte pays little. buf is no longer to be used.
func (b *Buffers) Grow(buf []byte, n int) []byte {
	have := cap(buf)
	if b != nil && have > BufferSize && !b.movesToLarge(have, n) {
		if grown := b.extend(buf[:have], n); grown != nil {
			b.used.Add(int64(len(grown) - have))
			if len(grown) > largestKept {
				populate(grown[have:])
			}
			return grown
		}
	}
	grown := b.Get(max(n, have+have/2))
	copy(grown, buf)
	b.Put(buf)
	return grown
}

// movesToLarge reports whether a buffer that is not large grows into a kept
// large one.
func (b *Buffers) movesToLarge(have, n int) bool {
	if have > largestKept || n <= largestKept {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.findLarge(capacity(n)) >= 0
}

// extend makes a buffer that lies outside the Go heap larger; nil if it does
// not, or cannot be. A large one has address space for half as much again before
// it is moved, and is given out by coarseStep.
func (b *Buffers) extend(buf []byte, n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, is := b.mapped[unsafe.SliceData(buf)]
	if !is {
		return nil
	}
	have := len(buf)
	if n > m.room {
		whole := unsafe.Slice(unsafe.SliceData(buf), m.room)
		grown := remapBuffer(whole, capacity(max(n, m.room+m.room/2)))
		if grown == nil {
			grown = remapBuffer(whole, capacity(n)) // address space may be short
		}
		if grown == nil {
			return nil
		}
		delete(b.mapped, unsafe.SliceData(buf))
		m.room, buf = len(grown), grown
	}
	size := len(buf)
	if size > largestKept {
		size = capacity(n)
		if n-have >= hugeStep {
			adviseHuge(unsafe.Slice(unsafe.SliceData(buf), m.room))
		}
	}
	b.largeBytes -= m.there - have
	m.there = max(m.there, size)
	b.largeBytes += m.there - size
	b.mapped[unsafe.SliceData(buf)] = m
	return unsafe.Slice(unsafe.SliceData(buf), size)
}

// Put takes back a buffer that Get or Grow returned, cut to whatever length. A
// buffer of another origin is left to the garbage collector.
func (b *Buffers) Put(buf []byte) {
	size := cap(buf)
	if b == nil || size < BufferSize || size != capacity(size) {
		return
	}
	buf = buf[:size]
	if size > BufferSize {
		b.used.Add(-int64(size))
	}
	if size <= largestKept && b.keep(buf) {
		return
	}
	b.discard(buf)
}

// discard gives a buffer back to the system, or keeps it if it is large, or
// leaves it to the garbage collector.
func (b *Buffers) discard(buf []byte) {
	b.mu.Lock()
	buf = b.forget(buf)
	if len(buf) > largestKept {
		buf = b.keepLarge(buf)
	}
	buf = b.giveBack(buf)
	b.mu.Unlock()
	if len(buf) > 0 {
		unmapBuffer(buf)
	}
}

// giveBack gives memory back to the system, or returns it if the caller is to do
// so, without mu. A large piece is given back in steps, by a goroutine: whoever
// puts it back may be a loop, with clients that wait. The caller holds mu.
func (b *Buffers) giveBack(buf []byte) (now []byte) {
	if len(buf) <= unmapStep {
		return buf
	}
	b.going.Add(int64(len(buf)))
	if b.leaving = append(b.leaving, buf); len(b.leaving) == 1 {
		go b.unmapLeaving(buf)
	}
	return nil
}

// forget returns the memory of a buffer that is not used any more; nil if it is
// the garbage collector's. The caller holds mu.
func (b *Buffers) forget(buf []byte) []byte {
	m, is := b.mapped[unsafe.SliceData(buf)]
	if !is {
		if len(buf) == BufferSize {
			b.inHeap--
		}
		return nil
	}
	delete(b.mapped, unsafe.SliceData(buf))
	b.largeBytes -= m.there - len(buf)
	whole := unsafe.Slice(unsafe.SliceData(buf), m.room)
	if m.room > m.there {
		unmapBuffer(whole[m.there:])
	}
	return whole[:m.there]
}

// unmapLeaving gives back to the system what leave has left, buf first, and ends
// when nothing is left.
func (b *Buffers) unmapLeaving(buf []byte) {
	for ; buf != nil; buf = b.nextLeaving() {
		for step := range slices.Chunk(buf, unmapStep) {
			unmapBuffer(step)
			b.going.Add(-int64(len(step)))
			runtime.Gosched()
		}
	}
}

// nextLeaving forgets the buffer in front, and returns the next one; nil if
// there is none.
func (b *Buffers) nextLeaving() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leaving = slices.Delete(b.leaving, 0, 1); len(b.leaving) == 0 {
		b.leaving = nil
		return nil
	}
	return b.leaving[0]
}

// Trim gives back what is kept and has not been used since the last Trim, and
// has Pools do the same. It takes about a microsecond for each buffer.
func (b *Buffers) Trim() {
	b.mu.Lock()
	var unused, now [][]byte
	for _, buf := range b.large[:b.largeLeast] {
		b.largeBytes -= len(buf)
		if buf = b.giveBack(buf); buf != nil {
			now = append(now, buf)
		}
	}
	b.large = slices.Delete(b.large, 0, b.largeLeast)
	b.largeLeast = len(b.large)
	for i := range b.free {
		unused = append(unused, b.free[i][:b.fewest[i]]...)
		b.free[i] = slices.Delete(b.free[i], 0, b.fewest[i])
		b.fewest[i] = len(b.free[i])
	}
	for _, buf := range unused {
		b.kept -= len(buf)
	}
	b.shrink()
	b.mu.Unlock()
	for _, buf := range unused {
		b.discard(buf)
	}
	for _, buf := range now {
		unmapBuffer(buf)
	}
	b.round.Add(1)
}

// keep keeps a buffer for the next use, unless there are enough.
func (b *Buffers) keep(buf []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := &b.free[kind(len(buf))]
	if b.kept+len(buf) > keptMax || len(buf) == BufferSize && len(*list) == smallKept {
		return false
	}
	b.kept += len(buf)
	*list = append(*list, buf)
	return true
}
