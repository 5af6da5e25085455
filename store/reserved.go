package store

import "strings"

// reserved says which keys a server keeps for itself among those of its clients: label gives their names a label, by which each database counts
// them.
type reserved struct {
	prefix  string                        // of all of their names
	next    [256]bool                     // bytes that follow it in one of them
	label   func(dst, name []byte) []byte // nil: there are none
	version uint64                        // the last that a tally was given
	follow  string                        // the beginning of the labels whose keys' coming and going is counted
	changes uint64                        // how many of those have come or gone
	scratch []byte
}

// Reserve has keys be counted by a label whose names begin with one of prefixes and have one: label appends it to dst, or leaves dst as it is for a
// key like any other. It must give the same name the same label always. It is called before there is a key, and costs those who add or remove
// other keys a look at the beginnings of their names. No prefix is the beginning of another.
func (ks *Keyspace) Reserve(prefixes []string, label func(dst, name []byte) []byte) {
	r := reserved{prefix: prefixes[0], label: label}
	for _, prefix := range prefixes {
		for !strings.HasPrefix(prefix, r.prefix) || len(prefix) == len(r.prefix) {
			r.prefix = r.prefix[:len(r.prefix)-1]
		}
	}
	for _, prefix := range prefixes {
		r.next[prefix[len(r.prefix)]] = true
	}
	ks.reserved = r
}

// FollowReserved has ReservedChanges count the keys whose labels begin with prefix. It is called after Reserve, and before there is a key.
func (ks *Keyspace) FollowReserved(prefix string) { ks.reserved.follow = prefix }

// ReservedChanges is how many keys that FollowReserved asks for have come or gone one by one: a flush and SWAPDB do not count.
func (ks *Keyspace) ReservedChanges() uint64 { return ks.reserved.changes }

// of returns the label of a name, which is valid until the next call, or nothing.
func (r *reserved) of(name []byte) []byte {
	r.scratch = r.label(r.scratch[:0], name)
	return r.scratch
}

// may reports whether a name may be reserved, by its beginning.
func (r *reserved) may(name []byte) bool {
	n := len(r.prefix)
	return len(name) > n && r.next[name[n]] && string(name[:n]) == r.prefix
}

// tally counts a database's reserved keys by their labels. The zero value has none.
type tally struct {
	counts  map[string]*int
	version uint64 // differs from those of all other tallies and of this one before a label came or went; 0: there is no label
}

// tallyName counts a name that may be reserved, by 1 when its key is added and by -1 when that is removed.
func (db *DB) tallyName(name []byte, by int) {
	label := db.ks.reserved.of(name)
	if len(label) == 0 {
		return
	}
	if r := &db.ks.reserved; r.follow != "" && len(label) >= len(r.follow) && string(label[:len(r.follow)]) == r.follow {
		r.changes++
	}
	t := &db.tally
	n := t.counts[string(label)]
	if n == nil {
		if t.counts == nil {
			t.counts = map[string]*int{}
		}
		n = new(int)
		t.counts[string(label)] = n
		db.ks.renew(t)
	}
	if *n += by; *n == 0 {
		delete(t.counts, string(label))
		db.ks.renew(t)
	}
}

// renew gives a tally whose labels have changed another version.
func (ks *Keyspace) renew(t *tally) {
	if len(t.counts) == 0 {
		*t = tally{} // a map that was large stays so
		return
	}
	ks.reserved.version++
	t.version = ks.reserved.version
}

// ReservedVersion tells which labels the database's reserved keys have: two equal versions, of whichever databases of the Keyspace, stand for the same
// labels. 0 stands for none.
func (db *DB) ReservedVersion() uint64 { return db.tally.version }

// Reserved is how many reserved keys of the database have a label, those past their time but not yet removed among them.
func (db *DB) Reserved(label []byte) int {
	if n := db.tally.counts[string(label)]; n != nil {
		return *n
	}
	return 0
}

// ReservedLabels calls fn for each label of the database's reserved keys and their number, in no order.
func (db *DB) ReservedLabels(fn func(label string, keys int)) {
	for label, n := range db.tally.counts {
		fn(label, *n)
	}
}
