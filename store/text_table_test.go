package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireCounted checks what a table says of its texts.
func requireCounted(t *testing.T, table *textTable) {
	t.Helper()
	c := &table.texts
	bytes, live, chunks := 0, 0, make([]int, len(c.chunks))
	for p := range table.len() {
		held := table.at(p)
		size := len(c.data(*held))
		if int(held.name+held.value) > size {
			require.LessOrEqual(t, int(held.name+held.value), size)
		}
		chunks[held.chunk] += size
		live += size
	}
	gone, listed := 0, map[uint32]bool{}
	for _, i := range c.gone {
		listed[i] = true
	}
	for i, chunk := range c.chunks {
		require.Equal(t, chunks[i], chunk.live)
		bytes += len(chunk.data)
		if chunk.data == nil {
			require.True(t, listed[uint32(i)], "chunk %d", i)
			gone++
		} else if c.filling != i+1 {
			require.Positive(t, chunk.live, "a chunk without texts is kept")
		}
	}
	require.Len(t, c.gone, gone)
	require.Equal(t, bytes, c.bytes)
	require.Equal(t, live, c.live)
	if !table.moving { // a chunk that has just been begun is looked at when the next text is released
		require.LessOrEqual(t, c.bytes, 2*c.live+wasteSlack+chunkBytes, "much is unused")
	}
}

// requireHolds checks that a table holds exactly the members of the model.
func requireHolds(t *testing.T, model map[string]string, table *textTable) {
	t.Helper()
	require.Equal(t, len(model), table.len())
	table.each(func(name, value []byte) bool {
		if want, ok := model[string(name)]; !ok || want != string(value) {
			require.True(t, ok)
			require.Equal(t, want, string(value))
		}
		return true
	})
}

// randomText is a text of up to most bytes, mostly a short one.
func randomText(rnd *rand.Rand, most int) []byte {
	text := make([]byte, min(rnd.IntN(most+1), rnd.IntN(most+1), rnd.IntN(most+1)))
	for i := range text {
		text[i] = byte(rnd.Uint32())
	}
	return text
}

// pairsOf is a sink that keeps the fields that it is given.
type pairsOf struct {
	ValueSink
	pairs map[string]string
}

func (s *pairsOf) Hash(int, bool)           {}
func (s *pairsOf) Pair(field, value []byte) { s.pairs[string(field)] = string(value) }
func (s *pairsOf) End()                     {}

// textTableTest changes a table and its model alike, beside a copy and a snapshot of it.
type textTableTest struct {
	*testing.T
	rnd   *rand.Rand
	table textTable
	model map[string]string
	names []string

	copied textTable
	was    map[string]string

	view   *hashView // nil: there is no snapshot
	frozen map[string]string
	sink   pairsOf
	extra  int
}

// change changes one member; towards is how many there are to be in the end.
func (x *textTableTest) change(towards int) {
	switch n := x.rnd.IntN(8); {
	case len(x.names) == 0 || len(x.names) < towards && n < 4:
		name := randomText(x.rnd, 700)
		if _, held := x.table.find(name); held {
			return
		}
		value := randomText(x.rnd, 700)
		x.table.insert(name, value)
		x.names = append(x.names, string(name))
		x.model[string(name)] = string(value)
	case n < 6:
		name, value := x.names[x.rnd.IntN(len(x.names))], randomText(x.rnd, 700)
		p, held := x.table.find([]byte(name))
		require.True(x, held)
		x.table.change(p, value)
		x.model[name] = string(value)
	case len(x.names) > towards:
		i, last := x.rnd.IntN(len(x.names)), len(x.names)-1
		p, held := x.table.find([]byte(x.names[i]))
		require.True(x, held)
		x.table.remove(p)
		delete(x.model, x.names[i])
		x.names[i] = x.names[last]
		x.names = x.names[:last]
	}
}

// look takes and looks at copies and snapshots now and then.
func (x *textTableTest) look() {
	switch {
	case x.view == nil && x.rnd.IntN(500) == 0:
		x.view = &hashView{textView{table: &x.table, count: x.table.len()}}
		x.view.freeze(&x.extra)
		x.sink, x.frozen = pairsOf{pairs: map[string]string{}}, maps.Clone(x.model)
		x.view.begin(&x.sink)
	case x.view != nil && x.rnd.IntN(4) == 0:
		_, done := x.view.emit(&x.sink, x.rnd.IntN(8000))
		if gone := x.rnd.IntN(1000) == 0; done || gone {
			if done {
				require.Equal(x, x.frozen, x.sink.pairs)
			}
			x.view.thaw()
			x.view = nil
			require.Zero(x, x.extra)
		}
	case x.rnd.IntN(2000) == 0:
		requireHolds(x.T, x.was, &x.copied)
		x.copied, x.was = x.table.clone(), maps.Clone(x.model)
		requireCounted(x.T, &x.copied)
	case x.rnd.IntN(1000) == 0:
		requireCounted(x.T, &x.table)
	}
}

// TestTextTableModel lets a table grow and shrink by turns.
func TestTextTableModel(t *testing.T) {
	x := &textTableTest{T: t, rnd: newRand(t), table: newTextTable(), model: map[string]string{}, copied: newTextTable()}
	for phase, size := range []int{50, 3000, 200, 6000, 1, 2000, 0} {
		for len(x.names) != size {
			x.change(size)
			x.look()
		}
		requireHolds(t, x.model, &x.table)
		requireCounted(t, &x.table)
		t.Logf("phase %d: %d members, %d bytes in use of %d", phase, size, x.table.texts.live, x.table.texts.bytes)
	}
}

// TestTextTableGivesMemoryBack: chunks of which most is unused do not stay, whichever members go.
func TestTextTableGivesMemoryBack(t *testing.T) {
	rnd := newRand(t)
	table := newTextTable()
	for i := range 20_000 {
		table.insert(fmt.Appendf(nil, "field:%0*d", 8+i%40, i), []byte("value"))
	}
	c := &table.texts
	most := c.bytes
	for table.len() > 500 {
		table.remove(rnd.IntN(table.len()))
		require.LessOrEqual(t, c.bytes, 3*c.live+wasteSlack, "%d members", table.len())
	}
	require.Less(t, c.bytes, most/10)
}

// TestTextsWithoutLength: the empty name is one like all others, and has a value.
func TestTextsWithoutLength(t *testing.T) {
	table := newTextTable()
	table.insert(nil, nil)
	table.insert([]byte("x"), nil)
	p, held := table.find(nil)
	require.True(t, held)
	table.change(p, []byte("a value that is longer than a unit"))
	requireHolds(t, map[string]string{"": "a value that is longer than a unit", "x": ""}, &table)
	requireCounted(t, &table)
}
