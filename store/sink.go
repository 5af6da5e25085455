package store

// ValueSink is given one value: by Int, by Text, or by the method that names another form, what that asks for, and End. Byte
// slices are the store's own memory: they must not be changed, and are valid until the method returns.
type ValueSink interface {
	Int(n int64)
	Text(v []byte)
	// LongText begins a string of n bytes that comes in parts.
	LongText(n int)
	TextPart(p []byte)

	// Hash begins a hash of n fields; packed says that it is kept in one block.
	Hash(n int, packed bool)
	Pair(field, value []byte)

	// ZSet begins a sorted set of n members: in ascending order when it is kept in one block, in descending order if not.
	ZSet(n int, packed bool)
	Scored(member []byte, score float64)

	// List begins a list of n elements in so many nodes; its elements follow from its head on, with EndNode after each node's.
	List(n, nodes int)
	Element(v []byte)
	EndNode()

	// Set begins a set of n members. IntSet begins one of whole numbers, which come in ascending order.
	Set(n int)
	Member(m []byte)
	IntSet()
	IntMember(n int64)

	// Stream begins a stream of so many nodes. Each is a listpack as Redis has it; a stream's numbers and its consumer groups follow,
	// each group with its pending entries and after those its consumers with theirs. IDs are two numbers.
	Stream(nodes int)
	StreamNode(id [2]uint64, listpack []byte)
	StreamInfo(length int, last, first, maxDeleted [2]uint64, added uint64, groups int)
	StreamGroup(name string, last [2]uint64, read int64, pending, consumers int)
	StreamPending(id [2]uint64, deliveredMs int64, deliveries uint64)
	StreamConsumer(name string, seenMs int64, pending int)
	StreamOwned(id [2]uint64)

	// End ends a value that was neither Int nor Text.
	End()
}

// Sink is given the keys of a snapshot.
type Sink interface {
	// Database says to which database the keys that follow belong. It is called again whenever that changes.
	Database(n int)
	// Sizes says how many keys the database has that was named last, and how many of them with a TTL.
	Sizes(keys, expires int)
	// Key begins a key, whose value follows. expireAt is in Unix milliseconds, 0 for no TTL; that time may have passed.
	Key(name []byte, expireAt int64)
	ValueSink
}

// longValue is the size in bytes from which a value is emitted in parts.
const longValue = 1 << 10

// Emit gives the value to a sink.
func (e *Entry) Emit(sink ValueSink) {
	if e.rec.enc.isObject() {
		value := e.db.view(e.rec)
		value.begin(sink)
		for done := false; !done; {
			_, done = value.emit(sink, longValue)
		}
		return
	}
	emitInline(e.rec, sink)
}

// emitInline emits the value of a record that holds it itself.
func emitInline(rec *record, sink ValueSink) {
	switch rec.enc {
	case encInt:
		sink.Int(int64(rec.word))
	case encBytes:
		sink.Text(rec.payload(rec.used()))
	case encPackedHash:
		p := packedHash(rec.payload(rec.used()))
		sink.Hash(int(rec.word>>32), true)
		for at := 0; at < len(p); {
			f, field, value := p.field(at)
			sink.Pair(field, value)
			at = f.end
		}
		sink.End()
	case encPackedZSet:
		n := int(rec.word >> 32)
		sink.ZSet(n, true)
		packedZSet(rec.payload(rec.used())).walk(0, n, func(member []byte, score float64) bool {
			sink.Scored(member, score)
			return true
		})
		sink.End()
	case encPackedList:
		n := int(rec.word >> 32)
		sink.List(n, 1)
		packedList(rec.payload(rec.used())).emit(sink)
		sink.End()
	case encIntSet:
		n := int(rec.word >> 32)
		p := rec.payload(rec.used())
		set := intSet{p, len(p) / n}
		sink.IntSet()
		for i := range n {
			sink.IntMember(set.at(i))
		}
		sink.End()
	case encPackedSet:
		p := rec.payload(rec.used())
		sink.Set(int(rec.word >> 32))
		for at := 0; at < len(p); {
			start, end := elementBounds(p, at)
			sink.Member(p[start:end])
			at = end
		}
		sink.End()
	default:
		panic("store: an encoding that snapshots do not know")
	}
}

// emit emits the elements of a node.
func (p packedList) emit(sink ValueSink) {
	for at := 0; at < len(p); {
		var v []byte
		v, at = p.next(at)
		sink.Element(v)
	}
	sink.EndNode()
}

// view is a value on the Go heap that is emitted in parts. It is of the present moment until freeze is called, and then of that
// moment, while the value itself goes on changing.
type view interface {
	// freeze keeps the value as it is. What is kept of it because it changed is added to extra, in bytes.
	freeze(extra *int)
	// begin names the value's form.
	begin(sink ValueSink)
	// emit emits the next parts, about budget bytes, and returns their size. done says that there are no more; then the value
	// has been ended.
	emit(sink ValueSink, budget int) (work int, done bool)
	// thaw ends what freeze began.
	thaw()
}

// view views the value of a record that is an object.
func (c *contents) view(rec *record) view {
	switch value := c.objects.at(rec.word).(type) {
	case *bigString:
		return &stringView{owner: value, data: value.data}
	case *hashTable:
		return &hashView{textView{table: &value.textTable, count: value.len()}}
	case *chunkedList:
		return &listView{list: value}
	case *setTable:
		return &setView{textView{table: &value.textTable, count: value.len()}}
	case *streamValue:
		return newStreamView(value)
	case *zsetLog:
		return newLogView(value)
	case *zsetTree:
		return &zsetView{tree: value, left: value.len()}
	}
	panic("store: a value that snapshots do not know")
}
