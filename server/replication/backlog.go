package replication

import (
	"errors"
	"sync"
	"time"

	"headgate/server/netpoll"
)

// blockSize is how many bytes of the stream lie in one piece.
const blockSize = 64 << 10

const (
	// restMost is how many bytes end a rest of a reader: what a server makes in a millisecond at its fastest, and no more than its socket takes.
	restMost = 4 * blockSize

	// pushedRest is how long a reader rests on to which Push has sent something: whoever pushes does so again.
	pushedRest = 10 * time.Millisecond

	// spareBlocks is how many blocks are kept that nobody needs any more, for what comes next.
	spareBlocks = 4
)

// block is a piece of the stream. What is in it never changes while anybody can read it.
type block struct {
	at   int64  // the offset before it
	data []byte // of capacity blockSize
	next *block
	lent bool // a reader that has ended may still be reading it
}

// end is the offset behind the block.
func (b *block) end() int64 { return b.at + int64(len(b.data)) }

// Backlog is the end of the stream of changes: the last bytes of it, for replicas that come back, and whatever the readers, which are
// replicas that are there, have not had. All of them share its blocks. Offsets count the bytes of the stream from its beginning. It is safe
// for concurrent use.
type Backlog struct {
	mu          sync.Mutex
	more        sync.Cond // readers wait for bytes, or for their end
	first, last *block    // never nil
	spare       []*block  // at most spareBlocks, to be used again
	size        int64     // how many bytes are kept for those who come back
	begin       int64     // the offset before the first byte that there has been
	limit       int64     // how many bytes a reader may be behind; 0: any number
	readers     []*StreamReader
}

// NewBacklog returns an empty one that goes on behind an offset, and keeps so many bytes.
func NewBacklog(offset, size int64) *Backlog {
	first := &block{at: offset}
	b := &Backlog{first: first, last: first, size: size, begin: offset}
	b.more.L = &b.mu
	return b
}

// SetLimits sets how many bytes are kept, and how many a reader may be behind, which is never less; 0 is any number.
func (b *Backlog) SetLimits(size, limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size, b.limit = size, limit
	if limit > 0 {
		b.limit = max(limit, size)
	}
	b.trim()
}

// Append adds to the stream, and wakes those who read it. The bytes are copied. Readers that are too far behind then are ended, and what
// they have given to Read is called.
func (b *Backlog) Append(p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(p) > 0 {
		last := b.last
		if last.data == nil || len(last.data) == cap(last.data) {
			last = b.grow()
		}
		n := min(len(p), cap(last.data)-len(last.data))
		last.data = append(last.data, p[:n]...)
		p = p[n:]
	}
	for _, r := range b.readers {
		switch behind := b.last.end() - r.at; {
		case r.err != nil:
		case b.limit > 0 && behind > b.limit:
			r.end(errSlow)
			r.Hurry()
			r.slow()
		case r.rests && behind >= r.hurries():
			r.Hurry()
		}
	}
	b.trim()
	b.more.Broadcast()
}

// much is how many bytes behind a reader end its rest: restMost, or less where that would be most of what it may be behind.
func (b *Backlog) much() int64 {
	if b.limit > 0 {
		return min(restMost, b.limit/4)
	}
	return restMost
}

// hurries is how many bytes behind the reader they end its rest. Where Push sends, that is its work, unless it does not come to it.
func (r *StreamReader) hurries() int64 {
	if r.pushed {
		return 2 * r.backlog.much()
	}
	return r.backlog.much()
}

// grow returns a last block that has room.
func (b *Backlog) grow() *block {
	last := b.last
	if last.data == nil { // the first of all
		last.data = make([]byte, 0, blockSize)
		return last
	}
	b.last = b.emptyBlock()
	b.last.at = last.end()
	last.next = b.last
	return b.last
}

// emptyBlock returns one that was used before, if there is any: to allocate it costs its being cleared, and garbage.
func (b *Backlog) emptyBlock() *block {
	n := len(b.spare) - 1
	if n < 0 {
		return &block{data: make([]byte, 0, blockSize)}
	}
	empty := b.spare[n]
	b.spare[n], b.spare = nil, b.spare[:n]
	return empty
}

// trim lets go of the blocks that nobody needs. The caller holds mu.
func (b *Backlog) trim() {
	needed := b.from()
	for _, r := range b.readers {
		if r.err == nil {
			r.skip()
			needed = min(needed, r.at)
		}
	}
	for b.first != b.last && b.first.end() <= needed {
		gone := b.first
		b.first = gone.next
		b.reuse(gone)
	}
}

// reuse keeps a block that is no longer a part of the stream for what comes next, if nobody can be reading it.
func (b *Backlog) reuse(gone *block) {
	if !gone.lent && len(b.spare) < spareBlocks {
		*gone = block{data: gone.data[:0]}
		b.spare = append(b.spare, gone)
	}
}

// from is the offset before the first byte that is kept for those who come back.
func (b *Backlog) from() int64 { return max(b.first.at, b.last.end()-b.size) }

// Extent returns the offsets before and behind what is kept for those who come back.
func (b *Backlog) Extent() (from, to int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.from(), b.last.end()
}

// End returns the offset behind all that has been appended.
func (b *Backlog) End() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last.end()
}

// Bytes returns how much memory all of it takes up.
func (b *Backlog) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.last.end()-b.first.at+blockSize-1)/blockSize*blockSize + int64(len(b.spare))*blockSize
}

// Reasons why a reader gets no more.
var (
	errSlow       = errors.New("it is so far behind that client-output-buffer-limit replica does not allow it")
	errReaderGone = errors.New("it is not sent changes any more")
	errStreamEnd  = errors.New("the server ends, and all has been sent")
)

// StreamReader reads a Backlog from an offset on. Nothing behind that offset is let go of before it was read. Next is called by one goroutine;
// the rest is safe for concurrent use.
type StreamReader struct {
	backlog *Backlog
	slow    func()
	at      int64 // what is before it was sent
	given   int   // bytes behind at that Next has returned last
	block   *block
	err     error         // why there is no more
	drains  bool          // there is no more behind what there is
	rests   bool          // Rest was called since Next
	from    int64         // when the rest began, or Push has sent something since, in ns
	push    PushFunc      // nil: there is none
	pushing bool          // Push is sending what was given
	pushed  bool          // Push has sent something in this rest
	hurry   chan struct{} // holds one if there is to be no rest; safe for concurrent use
}

// PushFunc sends, without waiting, as much of some bytes as can be sent at once, and returns how much that is.
type PushFunc func(parts [][]byte) (sent int)

// Read returns a reader that begins behind an offset, or false if what follows there is not all kept any more, or was never there. slow is
// called once, within Append, if the reader is too far behind; it must not use the Backlog.
func (b *Backlog) Read(offset int64, slow func()) (*StreamReader, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if offset < b.from() || offset > b.last.end() {
		return nil, false
	}
	return b.read(offset, slow), true
}

func (b *Backlog) read(offset int64, slow func()) *StreamReader {
	r := &StreamReader{slow: slow, backlog: b, at: offset, block: b.first, hurry: make(chan struct{}, 1)}
	b.readers = append(b.readers, r)
	return r
}

// Fork returns a reader that begins where r is, or false if r is at its end.
func (r *StreamReader) Fork(slow func()) (*StreamReader, bool) {
	b := r.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.err != nil {
		return nil, false
	}
	return b.read(r.at, slow), true
}

// Next waits for bytes behind those that it has returned before, which count as sent, and returns some. They are valid until the next call.
func (r *StreamReader) Next() ([]byte, error) {
	b := r.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	r.rests = false
	for r.pushing {
		b.more.Wait()
	}
	r.pass()
	for r.err == nil && r.at == b.last.end() && !r.drains {
		b.more.Wait()
	}
	switch {
	case r.err != nil:
		return nil, r.err
	case r.at == b.last.end():
		return nil, errStreamEnd
	}
	r.skip()
	p := r.block.data[r.at-r.block.at:]
	r.given = len(p)
	return p, nil
}

// skip goes on to the block that has what comes next, if there is one already. The caller holds mu.
func (r *StreamReader) skip() {
	for r.block.end() <= r.at && r.block.next != nil {
		r.block = r.block.next
	}
}

// At returns the offset before which all was sent.
func (r *StreamReader) At() int64 {
	r.backlog.mu.Lock()
	defer r.backlog.mu.Unlock()
	return r.at
}

// pass has what Next has returned count as sent. The caller holds mu.
func (r *StreamReader) pass() {
	r.at += int64(r.given)
	r.given = 0
	r.backlog.trim()
}

// Rest waits for so long, so that more comes together before Next is called again. What Next has returned before counts as sent. There is no rest, or
// it ends, when much has come or nothing comes any more, and when Hurry is called. While Push sends in its place, it goes on. It is for the goroutine that
// calls Next.
func (r *StreamReader) Rest(length time.Duration) {
	if !r.mayRest() {
		return
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if !r.restsOn() {
				return
			}
			timer.Reset(pushedRest)
		case <-r.hurry:
			return
		}
	}
}

// mayRest begins a rest, and reports false if there is reason for none.
func (r *StreamReader) mayRest() bool {
	b := r.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	r.pass()
	r.rests = r.err == nil && !r.drains && b.last.end()-r.at < b.much()
	r.pushed = false
	if r.push != nil {
		r.from = time.Now().UnixNano()
	}
	return r.rests
}

// restsOn reports whether Push has sent something since it was last asked.
func (r *StreamReader) restsOn() (on bool) {
	r.backlog.mu.Lock()
	defer r.backlog.mu.Unlock()
	on, r.pushed = r.pushed, false
	return on
}

// SetPush has Push send to the reader while it rests.
func (r *StreamReader) SetPush(push PushFunc) {
	r.backlog.mu.Lock()
	defer r.backlog.mu.Unlock()
	r.push = push
}

// Push sends what has come to the readers that have rested for a time. It returns when there is more to be sent, in ns; 0: nothing waits. now is in ns.
// To wake up the goroutine of a reader for each of its writes would cost more than what is written.
func (b *Backlog) Push(now int64, rest time.Duration) (next int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		var due *StreamReader
		if due, next = b.due(now, int64(rest)); due == nil {
			return next
		}
		due.send(now)
	}
}

// due returns a reader to push to, or nil and when there will be one. The caller holds mu.
func (b *Backlog) due(now, rest int64) (r *StreamReader, next int64) {
	for _, r := range b.readers {
		behind := b.last.end() - r.at
		if r.push == nil || !r.rests || r.pushing || r.err != nil || behind == 0 {
			continue
		}
		if now-r.from >= rest || now < r.from || behind >= b.much() {
			return r, 0
		}
		if at := r.from + rest; next == 0 || at < next {
			next = at
		}
	}
	return nil, next
}

// send pushes what is behind the reader. If not all of that can be sent at once, its rest ends. The caller holds mu, which is free meanwhile.
func (r *StreamReader) send(now int64) {
	b := r.backlog
	r.skip()
	var room [netpoll.PushParts][]byte
	parts := append(room[:0], r.block.data[r.at-r.block.at:])
	r.given = len(parts[0])
	for next := r.block.next; next != nil && len(next.data) > 0 && len(parts) < cap(parts); next = next.next {
		parts = append(parts, next.data)
		r.given += len(next.data)
	}
	r.pushing, r.pushed, r.from = true, true, now
	b.mu.Unlock()
	sent := r.push(parts)
	b.mu.Lock()
	if r.pushing = false; r.err != nil {
		b.more.Broadcast()
		return
	}
	if sent < r.given {
		r.rests = false
		r.Hurry()
	}
	r.given = sent
	r.pass()
	b.more.Broadcast()
}

// Hurry ends the rest, or the next one at once.
func (r *StreamReader) Hurry() {
	select {
	case r.hurry <- struct{}{}:
	default: // it was told already
	}
}

// Close ends the reading: Next returns an error, and the reader needs nothing any more.
func (r *StreamReader) Close() {
	b := r.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.err == nil {
		r.end(errReaderGone)
	}
	for i, have := range b.readers {
		if have == r {
			b.readers = append(b.readers[:i], b.readers[i+1:]...)
			break
		}
	}
	b.trim()
	b.more.Broadcast()
	r.Hurry()
}

// end has Next return an error. What it has returned last may be in use still, and its block must not be used again. The caller holds mu.
func (r *StreamReader) end(why error) {
	if r.given > 0 {
		for lent := r.block; lent != nil && lent.at < r.at+int64(r.given); lent = lent.next {
			lent.lent = true
		}
	}
	r.err, r.block = why, nil
}

// Drain has Next return an error once all has been read that there is.
func (r *StreamReader) Drain() {
	r.backlog.mu.Lock()
	defer r.backlog.mu.Unlock()
	r.drains = true
	r.backlog.more.Broadcast()
	r.Hurry()
}
