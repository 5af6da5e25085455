package store

// packedHash is a small hash: field and value elements by turns, in the order in
// which the fields were first set.
type packedHash []byte

// packedField is where a field stands: its element at at, its value's at value,
// the next field at end.
type packedField struct{ at, value, end int }

// field reads the field at offset at.
func (p packedHash) field(at int) (f packedField, name, value []byte) {
	nameStart, nameEnd := elementBounds(p, at)
	valueStart, valueEnd := elementBounds(p, nameEnd)
	return packedField{at, nameEnd, valueEnd}, p[nameStart:nameEnd:nameEnd], p[valueStart:valueEnd:valueEnd]
}

// find looks a field up by name.
func (p packedHash) find(name []byte) (f packedField, value []byte, ok bool) {
	for at := 0; at < len(p); {
		f, held, value := p.field(at)
		if string(held) == string(name) {
			return f, value, true
		}
		at = f.end
	}
	return packedField{}, nil, false
}

// at returns the i-th field in order of insertion.
func (p packedHash) at(i int) (name, value []byte) {
	f, name, value := p.field(0)
	for ; i > 0; i-- {
		f, name, value = p.field(f.end)
	}
	return name, value
}
