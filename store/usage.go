package store

import "unsafe"

// slotShare is a key's share of the index: a bucket's bytes over the slots that are usually taken.
const slotShare = bucketBytes / 9

// bucketBytes is the size of a bucket of the index.
const bucketBytes = int(unsafe.Sizeof(bucket{}))

// MemoryUsage estimates the bytes that the key and its value take up: its block in the arena, its share of the index and, for a
// value on the Go heap, that value. The names and values of a big hash, set or sorted set, and a
// list's chunks, are measured at some of its members (samples
// of them; all if that is 0) and taken to be alike in the rest.
func (e *Entry) MemoryUsage(samples int) int {
	n := slotShare
	if e.rec.class == hugeClass {
		n += recordSize(int(e.rec.keyLen), e.rec.payloadLen())
	} else {
		n += int(classSize(e.rec.class))
	}
	if e.rec.enc.hasPayload() || e.rec.enc == encInt {
		return n
	}
	switch value := e.object().(type) {
	case *bigString:
		n += int(unsafe.Sizeof(*value)) + cap(value.data)
	case *hashTable:
		n += int(unsafe.Sizeof(*value)) + value.fields.memoryUsage(samples, func(v []byte) int { return cap(v) })
	case *chunkedList:
		n += value.memoryUsage(samples)
	case *setTable:
		n += value.memoryUsage(samples)
	case *zsetTree:
		n += value.memoryUsage(samples)
	case *zsetLog:
		n += int(unsafe.Sizeof(*value)) + value.stamps.memoryUsage(samples)
		if value.rest != nil {
			n += value.rest.memoryUsage(samples)
		}
	case *streamValue:
		n += value.memoryUsage()
	}
	return n
}

func (t *zsetTree) memoryUsage(samples int) int {
	return int(unsafe.Sizeof(*t)) + t.members.memoryUsage(samples, func(float64) int { return treeItem })
}

// memoryUsage estimates the stream's bytes.
func (v *streamValue) memoryUsage() int {
	n := int(unsafe.Sizeof(*v)) + cap(v.nodes)*int(unsafe.Sizeof(streamNode{}))
	for i := range v.nodes {
		n += cap(v.nodes[i].lp)
	}
	for _, g := range v.groups {
		n += int(unsafe.Sizeof(*g)) + len(g.name) + g.pending.Len()*pendingShare
		for _, c := range g.consumers {
			n += int(unsafe.Sizeof(*c)) + len(c.name)
		}
	}
	return n
}

// pendingShare is what a pending entry takes up: itself, and its places in two B-trees.
const pendingShare = int(unsafe.Sizeof(Pending{})) + 2*8*4/3

// treeItem is what a member of a big sorted set takes up in the B-tree, whose nodes are between half and entirely full.
const treeItem = int(unsafe.Sizeof(zsetItem{})) * 4 / 3

// memoryUsage estimates the table's bytes; extra says what a value takes up outside it.
func (t *memberTable[V]) memoryUsage(samples int, extra func(V) int) int {
	n := len(t.dir) * int(unsafe.Sizeof(t.dir[0]))
	for i := 0; i < len(t.dir); {
		s := t.dir[i]
		n += int(unsafe.Sizeof(*s)) + len(s.slots)*int(unsafe.Sizeof(memberSlot{}))
		i += 1 << (t.depth - s.depth)
	}
	for _, page := range t.pages {
		n += cap(page) * int(unsafe.Sizeof(member[V]{}))
	}
	if t.count == 0 {
		return n
	}
	if samples <= 0 || samples > t.count {
		samples = t.count
	}
	measured := 0
	for i := range samples {
		m := t.at(i * t.count / samples)
		measured += len(m.name) + extra(m.value)
	}
	return n + measured*t.count/samples
}
