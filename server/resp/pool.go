package resp

import "slices"

const (
	// BufferSize is the size of the buffers that connections read into and
	// write from at first, in bytes. Most pipelines and their replies fit, and
	// an idle connection holds none.
	BufferSize = 16 << 10
	// poolMax is how many idle buffers a Pool keeps: 16 MiB. An iteration of a
	// loop uses up to two for each connection that it serves; when they did not
	// all fit, clearing new ones was a tenth of the work for 200 clients.
	poolMax = 1024
	// trimAtOnce is how many buffers one call of Pool.Trim gives back at most.
	trimAtOnce = 64
)

// Pool keeps a front's buffers of BufferSize bytes between uses, the one used
// last on top, so that a loop goes on working in memory that is still cached.
// What it lacks, and buffers of other sizes, come from Buffers and go back to
// it; nil is the Go heap. The zero value is an empty pool. It keeps at most
// poolMax buffers and is not safe for concurrent use.
type Pool struct {
	Buffers *Buffers
	free    [][]byte
	fewest  int    // elements of free at one time, in this round
	round   uint32 // of Buffers
}

// Get returns a buffer of BufferSize bytes with whatever it held before.
func (p *Pool) Get() []byte {
	last := len(p.free) - 1
	if last < 0 {
		return p.Buffers.Get(BufferSize)
	}
	buf := p.free[last]
	p.free[last] = nil
	p.free = p.free[:last]
	p.fewest = min(p.fewest, last)
	return buf
}

// Trim gives back buffers that were not used between two calls of
// [Buffers.Trim], trimAtOnce at a time. It is to be called often, and mostly
// does nothing.
func (p *Pool) Trim() {
	if p.Buffers == nil || p.round == p.Buffers.round.Load() {
		return
	}
	unused := min(p.fewest, trimAtOnce)
	for _, buf := range p.free[:unused] {
		p.Buffers.Put(buf)
	}
	p.free = slices.Delete(p.free, 0, unused)
	if p.fewest -= unused; p.fewest == 0 {
		p.round, p.fewest = p.Buffers.round.Load(), len(p.free)
	}
}

// Drain gives all idle buffers back: the front is gone.
func (p *Pool) Drain() {
	for _, buf := range p.free {
		p.Buffers.Put(buf)
	}
	p.free, p.fewest = nil, 0
}

// Put takes back a buffer that came from here or from Buffers, cut to whatever
// length. Buffers of another origin are left to the garbage collector.
func (p *Pool) Put(buf []byte) {
	if cap(buf) == BufferSize && len(p.free) < poolMax {
		p.free = append(p.free, buf[:BufferSize])
		return
	}
	p.Buffers.Put(buf)
}
