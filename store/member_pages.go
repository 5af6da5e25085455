package store

import "unsafe"

// pageMembers is how many members a page has.
const pageMembers = 512

// memberPages holds the members of a table by position, from 0 to len-1 without a gap.
// A new member takes the next one, and a removal moves the last member into the hole.
// This makes a random pick one index, and gives a scan from the highest position
// downward its guarantee: what moves into a hole comes from the end, which such a
// scan has passed already, so nothing that is there all along is ever skipped.
// Growing adds one page at a time.
type memberPages[M any] struct {
	pages [][]M
	count int
}

func (t *memberPages[M]) len() int { return t.count }

// at returns the member at position i, in [0, len).
func (t *memberPages[M]) at(i int) *M {
	return &t.pages[uint(i)/pageMembers][uint(i)%pageMembers]
}

// push appends a member, on a new page when the last one is full. The first page
// grows with its members, so that a table of 200 does not pay for 512.
func (t *memberPages[M]) push(m M) {
	page := t.count / pageMembers
	if page == len(t.pages) {
		var p []M
		if page > 0 {
			p = make([]M, 0, pageMembers)
		}
		t.pages = append(t.pages, p)
	}
	t.pages[page] = append(t.pages[page], m)
	t.count++
}

// pop drops the last member. One empty page is kept, so that a table that hovers
// around a page's end does not allocate each time.
func (t *memberPages[M]) pop() {
	t.count--
	p := &t.pages[t.count/pageMembers]
	last := len(*p) - 1
	var none M
	(*p)[last] = none
	*p = (*p)[:last]
	if keep := (t.count-1)/pageMembers + 2; len(t.pages) > keep {
		t.pages[keep] = nil
		t.pages = t.pages[:keep]
	}
}

// scan hands at most count members to fn, from the highest position below cursor
// downward, and returns the cursor to go on with, 0 when all have been shown. A
// cursor of 0 starts.
func (t *memberPages[M]) scan(cursor uint64, count int, fn func(*M)) uint64 {
	i := t.count
	if cursor != 0 && cursor < uint64(i) {
		i = int(cursor)
	}
	for count = max(count, 1); i > 0 && count > 0; count-- {
		i--
		fn(t.at(i))
	}
	return uint64(i)
}

// clone is a copy of the pages.
func (t *memberPages[M]) clone() memberPages[M] {
	own := memberPages[M]{pages: make([][]M, len(t.pages)), count: t.count}
	for i, page := range t.pages {
		own.pages[i] = append(make([]M, 0, cap(page)), page...)
	}
	return own
}

// memory is what the pages take up.
func (t *memberPages[M]) memory() int {
	var m M
	n := cap(t.pages) * int(unsafe.Sizeof(t.pages[0]))
	if len(t.pages) > 0 {
		n += (cap(t.pages[0]) + (len(t.pages)-1)*pageMembers) * int(unsafe.Sizeof(m))
	}
	return n
}
