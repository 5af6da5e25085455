package store

import (
	"slices"
	"unsafe"
)

const (
	chunkBytes  = 4 << 10 // of a chunk at most, but for one that holds a single long text
	firstChunk  = 64      // of the first chunk; the others are larger by
	chunkShare  = 8       // what is held divided by this
	chunkedText = 512     // the longest text that shares a chunk
	textUnit    = 8       // texts in shared chunks take up a multiple of it
	wasteSlack  = 8 << 10 // bytes that may be unused in any case
)

// textChunks keeps texts, each a name and a value, side by side in chunks, and names their
// places by numbers: the garbage collector would look at each of millions of pointers. A
// chunk is let go of when all of its texts have been released. The zero value is ready for
// use.
type textChunks struct {
	chunks  []textChunk
	gone    []uint32 // numbers of chunks that have been let go of
	filling int      // the number of the chunk that is being filled plus one, so that 0 is none
	room    int      // bytes that are free at its end
	bytes   int      // of all chunks
	live    int      // bytes of the texts
}

// textChunk is one chunk.
type textChunk struct {
	data []byte
	live int // bytes of its texts
}

// heldText is where a text is held. It holds no pointer.
type heldText struct {
	chunk       uint32
	at, size    uint16 // in textUnits; a size of 0 is all of the chunk
	name, value uint32 // lengths
}

// hold holds a copy of a name and a value.
func (c *textChunks) hold(name, value []byte) heldText {
	held := heldText{name: uint32(len(name)), value: uint32(len(value))}
	size := max(textUnit, (len(name)+len(value)+textUnit-1)&^(textUnit-1))
	if size > chunkedText {
		held.chunk = c.add(size)
		size = len(c.chunks[held.chunk].data)
	} else {
		if size > c.room {
			c.fillNext(size)
		}
		held.chunk = uint32(c.filling - 1)
		held.at = uint16((len(c.chunks[held.chunk].data) - c.room) / textUnit)
		held.size = uint16(size / textUnit)
		c.room -= size
	}
	c.chunks[held.chunk].live += size
	c.live += size
	data := c.data(held)
	copy(data[copy(data, name):], value)
	return held
}

// add adds a chunk for n bytes at least, and returns its number.
func (c *textChunks) add(n int) uint32 {
	chunk := textChunk{data: make([]byte, allocated(n)&^(textUnit-1))}
	c.bytes += len(chunk.data)
	if last := len(c.gone) - 1; last >= 0 {
		number := c.gone[last]
		c.gone = c.gone[:last]
		c.chunks[number] = chunk
		return number
	}
	c.chunks = append(c.chunks, chunk)
	return uint32(len(c.chunks) - 1)
}

// fillNext begins a chunk in which there is room for n bytes.
func (c *textChunks) fillNext(n int) {
	if full := c.filling - 1; full >= 0 && c.chunks[full].live == 0 {
		c.letGo(uint32(full))
	}
	number := c.add(max(n, min(chunkBytes, firstChunk+c.live/chunkShare)))
	c.filling, c.room = int(number)+1, len(c.chunks[number].data)
}

// letGo forgets a chunk. Its bytes stay as they are for whoever has been shown some.
func (c *textChunks) letGo(number uint32) {
	c.bytes -= len(c.chunks[number].data)
	c.chunks[number] = textChunk{}
	c.gone = append(c.gone, number)
}

// data is all that a text may take up.
func (c *textChunks) data(held heldText) []byte {
	data := c.chunks[held.chunk].data
	if held.size == 0 {
		return data
	}
	from := int(held.at) * textUnit
	return data[from : from+int(held.size)*textUnit]
}

// name shows a text's name.
func (c *textChunks) name(held *heldText) []byte {
	from := int(held.at) * textUnit
	end := from + int(held.name)
	return c.chunks[held.chunk].data[from:end:end]
}

// both shows a text's name and value.
func (c *textChunks) both(held *heldText) (name, value []byte) {
	data := c.chunks[held.chunk].data[int(held.at)*textUnit:]
	n, end := int(held.name), int(held.name)+int(held.value)
	return data[:n:n], data[n:end:end]
}

// overwrite gives a text another value where it is, unless that is too long, or so short that more than as much again and spare bytes
// would be left unused.
func (c *textChunks) overwrite(held *heldText, value []byte, spare int) bool {
	room := c.data(*held)[held.name:]
	if n := len(value); n > len(room) || len(room) > 2*n+spare {
		return false
	}
	held.value = uint32(copy(room, value))
	return true
}

// release tells that a text is no longer needed.
func (c *textChunks) release(held heldText) {
	size := len(c.data(held))
	chunk := &c.chunks[held.chunk]
	chunk.live -= size
	c.live -= size
	if chunk.live == 0 && c.filling != int(held.chunk)+1 {
		c.letGo(held.chunk)
	}
}

// wasteful reports whether more than half of what the chunks take up is unused.
func (c *textChunks) wasteful() bool { return c.bytes-c.live > c.live+wasteSlack }

// sparse reports whether that is so of the chunk of a text.
func (c *textChunks) sparse(held heldText) bool {
	chunk := &c.chunks[held.chunk]
	return 2*chunk.live < len(chunk.data) && c.filling != int(held.chunk)+1
}

// clone is a copy, in which each text has the same place.
func (c *textChunks) clone() textChunks {
	own := *c
	own.chunks, own.gone = slices.Clone(c.chunks), slices.Clone(c.gone)
	for i := range own.chunks {
		own.chunks[i].data = slices.Clone(own.chunks[i].data)
	}
	return own
}

// memory is what the texts take up.
func (c *textChunks) memory() int {
	return c.bytes + cap(c.chunks)*int(unsafe.Sizeof(textChunk{})) + cap(c.gone)*int(unsafe.Sizeof(c.gone[0]))
}
