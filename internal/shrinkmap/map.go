// Package shrinkmap provides a map that frees its memory when it becomes empty. A Go map keeps room for as many entries as it ever had, so a
// table that a client once filled with hundreds of thousands of names would keep that memory forever.
package shrinkmap

// keptEntries is how many entries a map may have had at once and still keep its room when it has become empty: making that anew would cost
// more than it saves.
const keptEntries = 1024

// Map is a map that gives its room back when it becomes empty after it was large. The zero value is an empty map. It is not safe for
// concurrent use.
type Map[K comparable, V any] struct {
	entries map[K]V
	most    int // entries at once, since entries was made
}

// Len is how many entries there are.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Entries is what the map holds, to be looked up and gone through, and not to be changed. It is good until the next change.
func (m *Map[K, V]) Entries() map[K]V { return m.entries }

// Set gives the key a value.
func (m *Map[K, V]) Set(key K, value V) {
	if m.entries == nil {
		m.entries = make(map[K]V)
	}
	m.entries[key] = value
	m.most = max(m.most, len(m.entries))
}

// Delete takes the key out, if it is there.
func (m *Map[K, V]) Delete(key K) {
	delete(m.entries, key)
	if len(m.entries) == 0 && m.most > keptEntries {
		*m = Map[K, V]{}
	}
}
