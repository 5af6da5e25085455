package store

import (
	"strings"

	"github.com/tidwall/btree"
)

// zsetTree is a big sorted set: the entries in order in a B-tree, whose node counts
// give access by rank, beside each member's score in a memberTable. Both hold the same
// member string, and a new score re-uses it.
type zsetTree struct {
	order   *btree.BTreeG[zsetItem]
	members memberTable
}

type zsetItem struct {
	score  float64
	member string
}

// zsetLess orders by score, then member. 0 and -0 are the same score.
func zsetLess(a, b zsetItem) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return strings.Compare(a.member, b.member) < 0
}

func newZSetTree() *zsetTree {
	return &zsetTree{
		order:   btree.NewBTreeGOptions(zsetLess, btree.Options{NoLocks: true}),
		members: newMemberTable(),
	}
}

// clone implements cloner. The B-tree's nodes stay common until one of the two trees changes them, the members' names for good.
func (t *zsetTree) clone() any {
	return &zsetTree{order: t.order.Copy(), members: t.members.clone()}
}

func (t *zsetTree) len() int { return t.members.len() }

// insert adds a member that is not there.
func (t *zsetTree) insert(score float64, member []byte) {
	m := t.members.insert(member, score)
	// Load appends without a search where the entry is the new last, as in a window.
	t.order.Load(zsetItem{score, m.name})
}

// move gives the member at position p of the table a new score.
func (t *zsetTree) move(p int, score float64) {
	m := t.members.at(p)
	t.order.Delete(zsetItem{m.score, m.name})
	m.score = score
	t.order.Set(zsetItem{score, m.name})
}

// remove takes out the member at position p of the table.
func (t *zsetTree) remove(p int) {
	m := t.members.at(p)
	t.order.Delete(zsetItem{m.score, m.name})
	t.members.remove(p)
}

// removeRanks takes out n entries from rank on.
func (t *zsetTree) removeRanks(rank, n int) {
	for ; n > 0; n-- {
		item, _ := t.order.DeleteAt(rank)
		p, _ := t.members.find(nameBytes(item.member))
		t.members.remove(p)
	}
}

// at returns the entry of a rank in [0, len).
func (t *zsetTree) at(rank int) zsetItem {
	switch rank {
	case 0:
		item, _ := t.order.Min()
		return item
	case t.len() - 1:
		item, _ := t.order.Max()
		return item
	}
	item, _ := t.order.GetAt(rank)
	return item
}

// rank returns the rank of the member at position p of the table.
func (t *zsetTree) rank(p int) int {
	m := t.members.at(p)
	return t.beforeItem(zsetItem{m.score, m.name})
}

// beforeItem counts the entries before an item, whether it is there or not.
func (t *zsetTree) beforeItem(item zsetItem) int {
	low, high := 0, t.len()
	for low < high {
		if middle := int(uint(low+high) / 2); zsetLess(t.at(middle), item) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// before counts the entries up to a bound. The first and the last entry are tried
// before the search, because most windows begin or end there.
func (t *zsetTree) before(bound *zsetBound) int {
	low, high := 0, t.len()
	if high == 0 || !t.isBefore(0, bound) {
		return 0
	}
	if t.isBefore(high-1, bound) {
		return high
	}
	for low < high {
		if middle := int(uint(low+high) / 2); t.isBefore(middle, bound) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (t *zsetTree) isBefore(rank int, bound *zsetBound) bool {
	item := t.at(rank)
	return bound.after(item.score, nameBytes(item.member))
}

// walk hands n entries from rank on, upward or downward, to fn until fn says false.
func (t *zsetTree) walk(rank, n int, reverse bool, fn func(member []byte, score float64) bool) {
	if n <= 0 {
		return
	}
	first := t.at(rank)
	if n == 1 {
		fn(nameBytes(first.member), first.score)
		return
	}
	step := func(item zsetItem) bool {
		n--
		return fn(nameBytes(item.member), item.score) && n > 0
	}
	if reverse {
		t.order.Descend(first, step)
	} else {
		t.order.Ascend(first, step)
	}
}

// treeCursor stands in the last cursorBits bits of each cursor of a tree. A tree that has been a log may be given one of the log's, and none of
// those ends so: those of stamps end in less, and those behind the stamps are even.
const treeCursor = 1<<cursorBits - 1

// scan hands at most count members to fn and returns the cursor to go on with, 0 when
// all have been shown. A cursor that is no tree's starts.
func (t *zsetTree) scan(cursor uint64, count int, fn func(member []byte, score float64)) uint64 {
	from := uint64(0)
	if cursor&treeCursor == treeCursor {
		from = cursor >> cursorBits
	}
	next := t.members.scan(from, count, func(m *member) {
		fn(nameBytes(m.name), m.score)
	})
	if next == 0 {
		return 0
	}
	return next<<cursorBits | treeCursor
}
