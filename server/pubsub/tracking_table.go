package pubsub

import (
	"cmp"
	"maps"
	"slices"

	"headgate/server/command"
)

// trackingTable remembers who has read what. The executor's lock guards it.
type trackingTable struct {
	Clients  int                           // that track
	Readers  map[string]map[int64]struct{} // by key: the IDs of clients that have read it since it last changed
	Items    int                           // the sum of the lengths of readers
	Names    int                           // the bytes of the keys' names
	Peak     int                           // the most keys that readers has had since it was made, as far as they were more than it may have
	Prefixes map[string]*broadcast
	Lengths  []int        // of the prefixes, each once, in order: a key that changes is looked up once for each
	ofLength map[int]int  // how many prefixes there are of each
	Changed  bool         // a broadcast has keys
	fresh    []*broadcast // those that have keys
}

// broadcast is a prefix that clients want to hear of, and the keys with it that have changed in this batch.
type broadcast struct {
	prefix    string
	listeners map[*listener]struct{}
	keys      map[string]int64 // to the ID of the client that changed it, 0 if none did; nil: there are none
}

// listener is a client that tracks by prefix, from the beginning of that to its end.
type listener struct {
	table    *trackingTable
	client   *command.Client
	prefixes map[string]*broadcast
	list     []*broadcast
	gone     bool // it tracks no longer
	bytes    int
}

// listenerBytes is about what a client's prefix takes up beside its bytes, the entries of the tables included.
const listenerBytes = 300

// Memory estimates the bytes that the table takes up.
func (t *trackingTable) Memory() int { return len(t.Readers)*readerBytes + t.Names + t.Items*itemBytes }

// What a key and each of its readers take up in the table beside the bytes of the name, about.
const (
	readerBytes = 160
	itemBytes   = 16
)

// addPrefix has a client listen to a prefix. Doing it again changes nothing.
func (t *trackingTable) addPrefix(l *listener, prefix string) {
	if l.prefixes[prefix] != nil {
		return
	}
	b := t.Prefixes[prefix]
	if b == nil {
		b = &broadcast{prefix: prefix, listeners: map[*listener]struct{}{}}
		if t.Prefixes == nil {
			t.Prefixes, t.ofLength = map[string]*broadcast{}, map[int]int{}
		}
		t.Prefixes[prefix] = b
		if t.ofLength[len(prefix)]++; t.ofLength[len(prefix)] == 1 {
			i, _ := slices.BinarySearch(t.Lengths, len(prefix))
			t.Lengths = slices.Insert(t.Lengths, i, len(prefix))
		}
	}
	b.listeners[l] = struct{}{}
	l.prefixes[prefix] = b
	l.list = append(l.list, b)
	l.bytes += listenerBytes + len(prefix)
}

// TakeOut implements command.Leftover.
func (l *listener) TakeOut(n int) (taken int) {
	t := l.table
	for ; taken < n && len(l.list) > 0; taken++ {
		last := len(l.list) - 1
		b := l.list[last]
		l.list = l.list[:last]
		l.bytes -= listenerBytes + len(b.prefix)
		if delete(b.listeners, l); len(b.listeners) == 0 {
			t.removePrefix(b.prefix)
		}
	}
	return taken
}

// removePrefix forgets a prefix that nobody wants to hear of any more.
func (t *trackingTable) removePrefix(prefix string) {
	delete(t.Prefixes, prefix)
	if t.ofLength[len(prefix)]--; t.ofLength[len(prefix)] == 0 {
		delete(t.ofLength, len(prefix))
		i, _ := slices.BinarySearch(t.Lengths, len(prefix))
		t.Lengths = slices.Delete(t.Lengths, i, i+1)
	}
	if len(t.Prefixes) == 0 {
		t.Prefixes, t.ofLength, t.Lengths = nil, nil, nil
	}
}

// Bytes implements command.Leftover.
func (l *listener) Bytes() int { return l.bytes }

// sorted returns those who listen to the prefix, by the IDs of their clients.
func (b *broadcast) sorted() []*listener {
	list := make([]*listener, 0, len(b.listeners))
	for l := range b.listeners {
		if !l.gone {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *listener) int { return cmp.Compare(a.client.ID, b.client.ID) })
	return list
}

// noteChange notes that a key changes, for those who listen to a prefix of it. by is the ID of the client that changes it, or 0. What is
// noted already stays as it is noted if the change is quiet.
func (t *trackingTable) noteChange(key []byte, by int64, quiet bool) {
	for _, n := range t.Lengths {
		if n > len(key) {
			return
		}
		b := t.Prefixes[string(key[:n])]
		if b == nil {
			continue
		}
		if _, noted := b.keys[string(key)]; noted && quiet {
			continue
		}
		if b.keys == nil {
			b.keys = map[string]int64{}
			t.Changed, t.fresh = true, append(t.fresh, b)
		}
		b.keys[string(key)] = by
	}
}

// remember notes that a client has read a key.
func (t *trackingTable) remember(key []byte, id int64) {
	readers := t.Readers[string(key)]
	if readers == nil {
		if t.Readers == nil {
			t.Readers = map[string]map[int64]struct{}{}
		}
		readers = map[int64]struct{}{}
		t.Readers[string(key)] = readers
		t.Names += len(key)
	}
	if _, known := readers[id]; !known {
		readers[id] = struct{}{}
		t.Items++
	}
}

// forget returns the IDs of those who have read a key, in order, and no longer remembers it.
func (t *trackingTable) forget(key []byte) []int64 {
	readers, known := t.Readers[string(key)]
	if !known {
		return nil
	}
	t.Items -= len(readers)
	t.Names -= len(key)
	delete(t.Readers, string(key))
	return slices.Sorted(maps.Keys(readers))
}
