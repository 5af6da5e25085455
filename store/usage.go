package store

import (
	"math/bits"
	"unsafe"
)

// slotShare is a key's share of the index: a bucket's bytes over the slots that are usually taken.
const slotShare = bucketBytes / 9

// bucketBytes is the size of a bucket of the index.
const bucketBytes = int(unsafe.Sizeof(bucket{}))

// MemoryUsage estimates the bytes that the key and its value take up: its block in the arena, its share of the index and, for a
// value on the Go heap, that value.
func (e *Entry) MemoryUsage() int {
	n := slotShare
	if e.rec.class == hugeClass {
		n += recordSize(int(e.rec.keyLen), e.rec.payloadLen())
	} else {
		n += int(classSize(e.rec.class))
	}
	if e.rec.enc.isObject() {
		n += int(unsafe.Sizeof(objectSlot{})) + e.object().memory()
	}
	return n
}

// Parts is how many pieces the value consists of, as far as it grows with them: 1 for one that is in one block.
func (e *Entry) Parts() int {
	if !e.rec.enc.isObject() {
		return 1
	}
	switch o := e.object().(type) {
	case *hashTable:
		return o.len()
	case *setTable:
		return o.len()
	case *zsetTree:
		return o.len()
	case *zsetLog:
		return o.len()
	case *chunkedList:
		return o.chunks
	case *streamValue:
		return len(o.nodes)
	}
	return 1
}

// Used is the number of bytes that keys and values take up, with what it takes to find them. It is kept up to date by every change, so
// that asking costs little.
func (ks *Keyspace) Used() uint64 {
	if ks.nextChanging != 0 {
		ks.measureAll()
	}
	return ks.arenas.used + uint64(ks.objectBytes) + ks.overhead
}

// IndexBytes is what it takes to find the database's keys.
func (db *DB) IndexBytes() int {
	n := db.indexOverhead()
	for _, tables := range db.atDepth {
		n += tables * tableBytes
	}
	return n
}

// BlockStats is what the arenas hold of blocks of one size.
type BlockStats struct {
	Size       int
	Used, Room int // blocks
}

// BlockStats are those of each size that is in use.
func (ks *Keyspace) BlockStats() (list []BlockStats) {
	var of [maxClasses]BlockStats
	for _, db := range ks.dbs {
		for chunk := uint32(1); chunk < db.arena.next; chunk++ {
			if db.arena.runs[chunk] == nil {
				continue
			}
			for i := range db.arena.runs[chunk] {
				if r := &db.arena.runs[chunk][i]; r.live > 0 {
					of[r.class].Used += int(r.live)
					of[r.class].Room += int(r.limit - r.live)
				}
			}
		}
	}
	for class := range of {
		if of[class].Used > 0 {
			of[class].Size = int(classSize(uint8(class)))
			list = append(list, of[class])
		}
	}
	return list
}

// indexOverhead is what a database has on the Go heap beside its values: directory, tables, the arena's own books and the slab.
func (db *DB) indexOverhead() int {
	n := len(db.dir) * int(unsafe.Sizeof(dirEntry{}))
	for _, tables := range db.atDepth {
		n += tables * allocated(int(unsafe.Sizeof(table{})))
	}
	if db.arena.bases != nil {
		n += int(db.arena.next) * allocated(int(unsafe.Sizeof([runsPerChunk]run{})))
	}
	return n + cap(db.objects.slots)*int(unsafe.Sizeof(objectSlot{})) + 4*cap(db.objects.free)
}

// goClasses are the sizes of blocks on the Go heap up to 1 KiB, above which it wastes an eighth at most.
var goClasses = [...]int{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512,
	576, 640, 704, 768, 896, 1024,
}

const tinyText = 16 // bytes of a text from which on it has a block of its own

// allocated is about what an allocation of n bytes takes up on the Go heap.
func allocated(n int) int {
	if n < tinyText {
		return n
	}
	if n <= len(goClassOf)*8-8 {
		return int(goClassOf[(n+7)/8])
	}
	step := 1 << (bits.Len(uint(n)) - 4)
	return (n + step - 1) &^ (step - 1)
}

// goClassOf is the block for each size in units of 8 bytes.
var goClassOf = func() (of [1024/8 + 1]uint16) {
	class := 0
	for i := range of {
		for goClasses[class] < 8*i {
			class++
		}
		of[i] = uint16(goClasses[class])
	}
	return of
}()

// treeItem is about what a member of a big sorted set takes up in the B-tree: its nodes are half full where members come in order, and
// two thirds full elsewhere.
const treeItem = int(unsafe.Sizeof(zsetItem{})) * 11 / 6

// memory implements object.
func (s *bigString) memory() int { return int(unsafe.Sizeof(*s)) + cap(s.data) }

// memory implements object.
func (t *zsetTree) memory() int {
	return int(unsafe.Sizeof(*t)) + t.members.memory() + t.len()*treeItem
}

// memory implements object.
func (l *zsetLog) memory() int {
	n := int(unsafe.Sizeof(*l)) + l.stamps.memory()
	if l.rest != nil {
		n += l.rest.memory()
	}
	return n
}

// memory implements object.
func (l *chunkedList) memory() int { return int(unsafe.Sizeof(*l)) + l.bytes }

func (c *listChunk) memory() int { return int(unsafe.Sizeof(*c)) + cap(c.buf) }

func (s *memberSegment) memory() int {
	return int(unsafe.Sizeof(*s)) + allocated(len(s.slots)*int(unsafe.Sizeof(memberSlot{})))
}

// measuredParts is how many parts of a long log or stream are measured; the others are taken to be alike.
const measuredParts = 8

// memory measures the log at some of its blocks.
func (l *stampLog) memory() int {
	n, blocks := cap(l.pages)*int(unsafe.Sizeof(logPage{})), 0
	for i := range l.pages {
		n += cap(l.pages[i].blocks) * int(unsafe.Sizeof(logBlock{}))
		blocks += len(l.pages[i].blocks)
	}
	if blocks == 0 {
		return n
	}
	samples := min(blocks, measuredParts)
	measured, seen, next := 0, 0, 0
	for i := range l.pages {
		page := l.pages[i].blocks
		for next < samples && next*blocks/samples < seen+len(page) {
			measured += cap(page[next*blocks/samples-seen].data)
			next++
		}
		seen += len(page)
	}
	return n + measured*blocks/samples
}

// memory implements object. It measures the entries at some of their nodes, the last among them, which is the one that grows.
func (v *streamValue) memory() int {
	n := int(unsafe.Sizeof(*v)) + cap(v.nodes)*int(unsafe.Sizeof(streamNode{}))
	if last := len(v.nodes) - 1; last >= 0 {
		n += cap(v.nodes[last].lp)
		samples, measured := min(last, measuredParts), 0
		for i := range samples {
			measured += cap(v.nodes[i*last/samples].lp)
		}
		if samples > 0 {
			n += measured * last / samples
		}
	}
	for _, g := range v.groups {
		n += int(unsafe.Sizeof(*g)) + allocated(len(g.name)) + g.pending.Len()*pendingShare
		n += len(g.consumers) * consumerShare
	}
	return n
}

// pendingShare is what a pending entry takes up: itself in a block of 48 bytes, and its places in two B-trees whose nodes are half
// full, since IDs come in order.
const pendingShare = 48 + 2*8*9/4

// consumerShare is about what a consumer takes up beside its pending entries.
const consumerShare = int(unsafe.Sizeof(StreamConsumer{})) + 256
