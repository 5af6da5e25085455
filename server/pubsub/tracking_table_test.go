package pubsub

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"headgate/server/command"

	"github.com/stretchr/testify/require"
)

// TestTrackingTableAgainstModel: whoever listens to which prefixes, and however late what a client leaves is taken out, a change is noted
// for just the prefixes that the key begins with; what clients have read is remembered until it changes; and in the end nothing is left.
func TestTrackingTableAgainstModel(t *testing.T) {
	const listeners, steps = 6, 20_000
	seed := *hubSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-hub.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	word := func(most int) string {
		var b strings.Builder
		for range random.IntN(most + 1) {
			b.WriteByte('a' + byte(random.IntN(2)))
		}
		return b.String()
	}
	var table trackingTable
	fresh := func() *listener {
		return &listener{table: &table, client: &command.Client{}, prefixes: map[string]*broadcast{}}
	}
	var list, leaving []*listener
	for range listeners {
		list = append(list, fresh())
	}
	readers := map[string]map[int64]bool{}

	prefixes := func() map[string]bool {
		held := map[string]bool{}
		for _, l := range slices.Concat(list, leaving) {
			for _, b := range l.list {
				held[b.prefix] = true
			}
		}
		return held
	}
	check := func() {
		t.Helper()
		held, lengths := prefixes(), map[int]int{}
		for prefix := range held {
			lengths[len(prefix)]++
		}
		require.Equal(t, slices.Sorted(maps.Keys(held)), slices.Sorted(maps.Keys(table.Prefixes)))
		require.Equal(t, len(lengths), len(table.ofLength))
		require.Equal(t, slices.Sorted(maps.Keys(lengths)), slices.Clone(table.Lengths))
		items, names := 0, 0
		for key, ids := range readers {
			names, items = names+len(key), items+len(ids)
		}
		require.Equal(t, [3]int{len(readers), items, names}, [3]int{len(table.Readers), table.Items, table.Names})
		require.Equal(t, len(readers)*readerBytes+names+items*itemBytes, table.Memory())
	}
	for step := range steps {
		switch p := random.IntN(100); {
		case p < 30:
			l, prefix := list[random.IntN(listeners)], word(5)
			before := l.Bytes()
			already := l.prefixes[prefix] != nil
			table.addPrefix(l, prefix)
			if !already {
				before += listenerBytes + len(prefix)
			}
			require.Equal(t, before, l.Bytes())
		case p < 33:
			i := random.IntN(listeners)
			list[i].gone = true
			leaving = append(leaving, list[i])
			list[i] = fresh()
		case p < 43 && len(leaving) > 0:
			n, held := 1+random.IntN(5), len(leaving[0].list)
			require.Equal(t, min(n, held), leaving[0].TakeOut(n))
			if n > held {
				require.Zero(t, leaving[0].Bytes())
				leaving = leaving[1:]
			}
		case p < 60:
			key, id := word(8), int64(random.IntN(4))
			table.remember([]byte(key), id)
			if readers[key] == nil {
				readers[key] = map[int64]bool{}
			}
			readers[key][id] = true
		case p < 70:
			key := word(8)
			require.Equal(t, slices.Sorted(maps.Keys(readers[key])), table.forget([]byte(key)))
			delete(readers, key)
		default:
			checkChange(t, &table, word(8), prefixes())
		}
		if step%50 == 0 {
			check()
		}
	}
	for _, l := range slices.Concat(list, leaving) {
		l.TakeOut(len(l.list) + 1)
		require.Zero(t, l.Bytes())
	}
	require.Nil(t, table.Prefixes)
	require.Nil(t, table.ofLength)
	require.Nil(t, table.Lengths)
}

// checkChange has a key change, loudly, quietly and loudly again, and sends what was noted.
func checkChange(t *testing.T, table *trackingTable, key string, held map[string]bool) {
	t.Helper()
	var want []string
	for prefix := range held {
		if strings.HasPrefix(key, prefix) {
			want = append(want, prefix)
		}
	}
	slices.Sort(want)
	for _, change := range []struct {
		by    int64
		quiet bool
		noted int64
	}{{by: 7, noted: 7}, {by: 8, quiet: true, noted: 7}, {by: 9, noted: 9}} {
		table.noteChange([]byte(key), change.by, change.quiet)
		require.Equal(t, len(want) > 0, table.Changed)
		var noted []string
		for _, b := range table.fresh {
			require.Equal(t, map[string]int64{key: change.noted}, b.keys)
			noted = append(noted, b.prefix)
		}
		slices.Sort(noted)
		require.Equal(t, want, noted)
	}
	for _, b := range table.fresh {
		b.keys = nil
	}
	table.Changed, table.fresh = false, nil
}
