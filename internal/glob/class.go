package glob

// byteSet is a set of bytes, one bit for each. The bits are in the order of
// C's signed char, 0x80 first, so that a range of bytes is a range of bits.
type byteSet [4]uint64

// signBit turns a byte into its place in that order.
const signBit = 0x80

func (s *byteSet) has(c byte) bool {
	c ^= signBit
	return s[c>>6]&(1<<(c&63)) != 0
}

func (s *byteSet) add(c byte) {
	c ^= signBit
	s[c>>6] |= 1 << (c & 63)
}

// addFolded adds every byte that is c in lower case.
func (s *byteSet) addFolded(c byte) {
	c = lower(c)
	s.add(c)
	if c >= 'a' && c <= 'z' {
		s.add(c - 'a' + 'A')
	}
}

// addRange adds the bytes from one end to the other, whichever comes first.
// With nocase it adds those that are in lower case between the ends in lower
// case, which may be none.
func (s *byteSet) addRange(first, last byte, nocase bool) {
	if int8(first) > int8(last) {
		first, last = last, first
	}
	if nocase {
		first, last = lower(first), lower(last)
	}
	var added byteSet
	for i := range added {
		low := max(int(first^signBit), 64*i)
		high := min(int(last^signBit), 64*i+63)
		if low <= high {
			added[i] = ^uint64(0) >> (63 - (high - low)) << (low & 63)
		}
	}
	if nocase {
		// All letters are in one word, a lower case 32 bits above its upper
		// case.
		const letters = ('A' ^ signBit) >> 6
		const upper = (1<<26 - 1) << (('A' ^ signBit) & 63)
		added[letters] = added[letters]&^upper | added[letters]>>32&upper
	}
	for i := range s {
		s[i] |= added[i]
	}
}

// classCache keeps the class in brackets that was looked at last, since a
// class behind an asterisk is tried against every byte of the text and may be
// as long as the pattern. The zero value holds none.
type classCache struct {
	byteSet
	start, next int // where the class starts, and where the next element does
}

// holds reports whether the class at pattern position p is the one kept.
func (s *classCache) holds(p int) bool { return s.start == p && s.next > p }

// parse reads the class at pattern[p], an opening bracket.
func (s *classCache) parse(pattern []byte, p int, nocase bool) {
	*s = classCache{start: p}
	p++
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			s.add(pattern[p]) // nocase does not reach escaped bytes
		case p+2 < len(pattern) && pattern[p+1] == '-':
			s.addRange(pattern[p], pattern[p+2], nocase)
			p += 2
		case nocase:
			s.addFolded(pattern[p])
		default:
			s.add(pattern[p])
		}
	}
	if negated {
		for i := range s.byteSet {
			s.byteSet[i] = ^s.byteSet[i]
		}
	}
	s.next = min(p+1, len(pattern))
}
