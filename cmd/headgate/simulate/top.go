package simulate

import (
	"cmp"
	"slices"
)

// topKeys is how many keys a list of the first has.
const topKeys = 10

// top holds the keys with the highest counts. A key's count may be offered several times while it grows; the last offer has all of it.
type top struct{ list []counted }

type counted struct {
	ever  uint32
	name  string
	count uint32
}

func (t *top) offer(ever uint32, name string, count uint32) {
	if count == 0 {
		return
	}
	least := 0
	for i := range t.list {
		if t.list[i].ever == ever {
			t.list[i].count = count
			return
		}
		if t.list[i].count < t.list[least].count {
			least = i
		}
	}
	switch {
	case len(t.list) < topKeys:
		t.list = append(t.list, counted{ever, name, count})
	case count > t.list[least].count:
		t.list[least] = counted{ever, name, count}
	}
}

// sorted is the list, the highest count first.
func (t *top) sorted() []counted {
	return slices.SortedFunc(slices.Values(t.list), func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
}
