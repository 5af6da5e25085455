package types

import (
	"errors"
	"fmt"

	"headgate/persistence/rdb"
	"headgate/store"
)

// ValueLoader is told one value and puts it into a database, as a key that is not there. It implements rdb.ValueSink.
type ValueLoader struct {
	DB       *store.DB
	name     []byte
	key      store.Key
	expireAt int64
	Skip     bool // the key is left out
	had      int  // keys of the database before
	parts    int  // of the collection, so far

	hash store.Hash
	zset store.ZSet
	list store.List
	set  store.Set

	stream   store.Stream
	group    *store.StreamGroup
	consumer *store.StreamConsumer
	pending  map[rdb.StreamID]delivery // of the group
	kind     store.Kind
}

// delivery is what is known of a pending entry.
type delivery struct{ ms, count int64 }

// never is a time at which no key has expired yet.
const never = 0

// Begin names the key that comes next.
func (l *ValueLoader) Begin(keys *store.Keyspace, name []byte, expireAt int64) {
	l.name = append(l.name[:0], name...)
	l.key, l.expireAt, l.had, l.parts = keys.Key(l.name), expireAt, l.DB.Len(), 0
}

// isNew checks that the value that has been stored is that of a new key.
func (l *ValueLoader) isNew() error {
	if l.DB.Len() == l.had {
		return fmt.Errorf("%w: the key %.100q", rdb.ErrDuplicate, l.name)
	}
	return nil
}

// open begins a collection.
func (l *ValueLoader) open(kind store.Kind) error {
	l.kind = kind
	if l.Skip {
		return nil
	}
	if _, there := l.DB.Peek(l.key); there {
		l.had = l.DB.Len()
		return l.isNew()
	}
	var err error
	switch kind {
	case store.KindHash:
		l.hash, err = l.DB.HashCreate(l.key, never)
	case store.KindZSet:
		l.zset, err = l.DB.ZSetCreate(l.key, never)
	case store.KindList:
		l.list, _, err = l.DB.List(l.key, never)
	case store.KindSet:
		l.set, _, err = l.DB.Set(l.key, never)
	case store.KindStream:
		l.stream, _, err = l.DB.Stream(l.key, never)
	}
	return err
}

// Int implements rdb.ValueSink.
func (l *ValueLoader) Int(n int64) error {
	if l.Skip {
		return nil
	}
	l.DB.SetInt(l.key, n, l.expireAt)
	return l.isNew()
}

// Text implements rdb.ValueSink.
func (l *ValueLoader) Text(v []byte) error {
	if l.Skip {
		return nil
	}
	l.DB.SetString(l.key, v, l.expireAt)
	return l.isNew()
}

// OwnText implements rdb.TextOwner.
func (l *ValueLoader) OwnText(v []byte) error {
	if l.Skip {
		return nil
	}
	l.DB.KeepText(l.key, v, l.expireAt)
	return l.isNew()
}

// Hash implements rdb.ValueSink.
func (l *ValueLoader) Hash(int) error { return l.open(store.KindHash) }

// Pair implements rdb.ValueSink.
func (l *ValueLoader) Pair(field, value []byte) error {
	return l.added(l.Skip || l.hash.Set(field, value))
}

// added counts an element, and refuses it if it was there.
func (l *ValueLoader) added(isNew bool) error {
	l.parts++
	if !isNew {
		return rdb.ErrDuplicate
	}
	return nil
}

// ZSet implements rdb.ValueSink.
func (l *ValueLoader) ZSet(int) error { return l.open(store.KindZSet) }

// Scored implements rdb.ValueSink.
func (l *ValueLoader) Scored(member []byte, score float64) error {
	if l.Skip {
		return l.added(true)
	}
	added, _ := l.zset.Add(score, member)
	return l.added(added)
}

// Set implements rdb.ValueSink.
func (l *ValueLoader) Set(int) error { return l.open(store.KindSet) }

// Member implements rdb.ValueSink.
func (l *ValueLoader) Member(m []byte) error { return l.added(l.Skip || l.set.Add(m)) }

// List implements rdb.ValueSink.
func (l *ValueLoader) List(int) error { return l.open(store.KindList) }

// Element implements rdb.ValueSink.
func (l *ValueLoader) Element(v []byte) error {
	if !l.Skip {
		l.list.Push(false, v)
	}
	return l.added(true)
}

// Stream implements rdb.ValueSink.
func (l *ValueLoader) Stream(int) error { return l.open(store.KindStream) }

func streamID(id rdb.StreamID) store.StreamID { return store.StreamID{MS: id[0], Seq: id[1]} }

// StreamNode implements rdb.ValueSink.
func (l *ValueLoader) StreamNode(id rdb.StreamID, listpack []byte, live int) error {
	if !l.Skip {
		l.stream.AddNode(streamID(id), listpack, live)
	}
	return nil
}

// StreamInfo implements rdb.ValueSink.
func (l *ValueLoader) StreamInfo(_ int, last, first, maxDeleted rdb.StreamID, added uint64) error {
	l.parts++ // a stream may be empty
	if !l.Skip {
		l.stream.SetLoaded(store.StreamInfo{Last: streamID(last), First: streamID(first), MaxDeleted: streamID(maxDeleted), Added: added})
	}
	return nil
}

// StreamGroup implements rdb.ValueSink.
func (l *ValueLoader) StreamGroup(name []byte, last rdb.StreamID, read int64) error {
	if l.Skip {
		return nil
	}
	if read == rdb.UntoldReads {
		read = l.stream.ReadsUpTo(streamID(last))
	}
	isNew := l.stream.CreateGroup(name, streamID(last), read)
	l.group = l.stream.Group(name)
	clear(l.pending)
	return l.added(isNew)
}

// StreamPending implements rdb.ValueSink. An entry is given to a consumer when that claims it.
func (l *ValueLoader) StreamPending(id rdb.StreamID, deliveredMs int64, deliveries uint64) error {
	if l.Skip {
		return nil
	}
	if l.pending == nil {
		l.pending = map[rdb.StreamID]delivery{}
	}
	l.pending[id] = delivery{deliveredMs, int64(deliveries)}
	return nil
}

// StreamConsumer implements rdb.ValueSink.
func (l *ValueLoader) StreamConsumer(name []byte, seenMs int64) error {
	if l.Skip {
		return nil
	}
	consumer, isNew := l.stream.See(l.group, name, seenMs)
	l.consumer = consumer
	return l.added(isNew)
}

// StreamOwned implements rdb.ValueSink.
func (l *ValueLoader) StreamOwned(id rdb.StreamID) error {
	if !l.Skip {
		d := l.pending[id]
		l.stream.Assign(l.group, l.consumer, streamID(id), d.ms, d.count)
	}
	return nil
}

var errEmptyCollection = errors.New("a collection without elements")

// End implements rdb.ValueSink.
func (l *ValueLoader) End() error {
	if l.parts == 0 {
		return errEmptyCollection
	}
	if l.Skip || l.expireAt == 0 {
		return nil
	}
	if e, ok := l.DB.Peek(l.key); ok {
		e.SetExpireAt(l.expireAt)
	}
	return nil
}
