package top

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	seed  = flag.Uint64("top.seed", 1, "seed of the random calls")
	calls = flag.Int("top.calls", 1_000_000, "calls of TestZipf")
)

var hashSeed = maphash.MakeSeed()

func hashOf(name []byte) uint64 { return maphash.Bytes(hashSeed, name) }

// zipf draws numbers below n, of which 0 is the most frequent, as keys of the real world are called.
func zipf(r *rand.Rand, n int) func() int {
	z := rand.NewZipf(r, 1.1, 1, uint64(n-1))
	return func() int { return int(z.Uint64()) }
}

// check compares a window with exact counts: no error is beyond the bound, no count is further from the truth than it says, and the
// first keys are the right ones.
func check(t *testing.T, w *Window, exact map[int]uint64, first int) {
	t.Helper()
	order := make([]int, 0, len(exact))
	for key := range exact {
		order = append(order, key)
	}
	slices.SortFunc(order, func(a, b int) int { return int(exact[b]) - int(exact[a]) })
	top := w.Top(MaxKeys)
	for _, k := range top {
		var key int
		_, err := fmt.Sscanf(string(k.Name), "key:%d", &key)
		require.NoError(t, err)
		calls := exact[key]
		require.LessOrEqual(t, k.Error, w.Bound(), "%s", k.Name)
		require.LessOrEqual(t, k.Count-k.Error, calls, "%s: %d calls", k.Name, calls)
		require.LessOrEqual(t, calls, k.Count+2*Unseen, "%s: %d calls", k.Name, calls)
	}
	var want, got []string
	for i := range first {
		want = append(want, fmt.Sprintf("key:%d", order[i]))
		got = append(got, string(top[i].Name))
	}
	require.ElementsMatch(t, want, got)
}

// TestZipf: the top 20 of a million keys, against exact counts, in the memory that the sketch has from the beginning.
func TestZipf(t *testing.T) {
	t.Logf("-top.seed %d", *seed)
	const keys = 1_000_000
	r := rand.New(rand.NewPCG(*seed, 0))
	next := zipf(r, keys)
	w := NewWindow(512, *seed)
	exact := map[int]uint64{}
	name := make([]byte, 0, 32)
	before := heapBytes()
	memory := w.Memory()
	total := uint64(0)
	for i := range *calls {
		if i == *calls/2 {
			w.GoOn()
		}
		key := next()
		exact[key]++
		name = fmt.Appendf(name[:0], "key:%d", key)
		w.Add(hashOf(name), 0, 0, name)
		total++
	}
	check(t, w, exact, 20)
	require.InEpsilon(t, total, w.Sum(), 0.02)
	require.Equal(t, memory, w.Memory())
	grown := int64(heapBytes()) - int64(before)
	runtime.KeepAlive(w)
	t.Logf("%d calls of %d keys: bound %d, %d bytes, heap grew by %d with the exact counts' map", *calls, len(exact), w.Bound(), memory, grown)
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAddAllocatesNothing, whether keys are known, unknown or long.
func TestAddAllocatesNothing(t *testing.T) {
	s := New(64, 1)
	name := make([]byte, 2*MaxName)
	n := uint64(0)
	require.Zero(t, testing.AllocsPerRun(100_000, func() {
		n++
		s.Add(n*0x9E3779B97F4A7C15, 0, 0, name)
		s.Add(7, 0, 0, name[:5])
	}))
	require.Len(t, s.keys, 64)
}

// TestFewKeys: as long as there is room, all counts are exact.
func TestFewKeys(t *testing.T) {
	w := NewWindow(100, *seed)
	exact := map[int]uint64{}
	for i := range 50 {
		name := fmt.Appendf(nil, "key:%d", i)
		for range (i + 1) * 100 {
			w.Add(hashOf(name), 0, 0, name)
			exact[i]++
		}
	}
	for _, k := range w.Top(100) {
		require.Zero(t, k.Error)
		require.Zero(t, k.Count%100)
	}
	check(t, w, exact, 10)
}

// TestManyKeysOnce: where no key is called twice, no count pretends that one was.
func TestManyKeysOnce(t *testing.T) {
	w := NewWindow(100, *seed)
	for i := range 100_000 {
		name := fmt.Appendf(nil, "key:%d", i)
		w.Add(hashOf(name), 0, 0, name)
	}
	for _, k := range w.Top(100) {
		require.LessOrEqual(t, k.Count-k.Error, uint64(1))
		require.LessOrEqual(t, k.Error, w.Bound())
	}
}

// TestWindowForgets: what was called before the last two steps is gone.
func TestWindowForgets(t *testing.T) {
	w := NewWindow(10, 1)
	call := func(name string) {
		for range 1000 {
			w.Add(hashOf([]byte(name)), 3, 0, []byte(name))
		}
	}
	names := func() (all []string) {
		for _, k := range w.Top(10) {
			require.Equal(t, 3, k.DB)
			all = append(all, string(k.Name))
		}
		return all
	}
	call("old")
	w.GoOn()
	call("new")
	require.ElementsMatch(t, []string{"old", "new"}, names())
	call("old")
	require.Equal(t, []string{"old", "new"}, names(), "both halves count")
	w.GoOn()
	w.GoOn()
	require.Empty(t, names())
	require.Zero(t, w.Sum())
	call("new")
	w.Reset()
	require.Empty(t, names())
}

// TestNames: long ones are cut, with a mark, and are told apart all the same.
func TestNames(t *testing.T) {
	w := NewWindow(10, 1)
	long := slices.Repeat([]byte("x"), MaxName)
	for _, name := range [][]byte{nil, long, append(slices.Clone(long), 'a'), append(slices.Clone(long), 'b')} {
		for range 1000 {
			w.Add(hashOf(name), 0, 0, name)
		}
	}
	marked := 0
	for _, k := range w.Top(10) {
		if k.Long {
			require.Equal(t, long, k.Name)
			marked++
		}
	}
	require.Equal(t, 2, marked)
	require.Len(t, w.Top(10), 4)
	require.Len(t, w.Top(1), 1)
}

// TestTable: keys come and go, and each that is watched is found, no other.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 1))
	s := New(50, *seed)
	for range 200_000 {
		hash := uint64(r.IntN(300)) << 3 // neighbours collide on purpose
		s.Add(hash, 0, 0, nil)
	}
	found := 0
	for i := range s.keys {
		k := s.find(s.keys[i].hash)
		require.Same(t, &s.keys[i], k)
	}
	for _, slot := range s.table {
		if slot != 0 {
			found++
			require.True(t, slot.is(s.keys[slot.index()].hash))
		}
	}
	require.Equal(t, len(s.keys), found)
	least := s.least()
	sum := uint64(0)
	for _, e := range s.heap {
		require.GreaterOrEqual(t, s.keys[e.index].count, s.keys[least].count)
		require.LessOrEqual(t, e.low, s.keys[e.index].count)
		sum += s.keys[e.index].count
	}
	require.Equal(t, s.Sum(), sum)
}

func BenchmarkAdd(b *testing.B) {
	const keys = 100_000
	r := rand.New(rand.NewPCG(1, 2))
	next := zipf(r, keys)
	for _, load := range []struct {
		name string
		draw func() int
	}{{"one key", func() int { return 0 }}, {"zipf", next}, {"uniform", func() int { return r.IntN(keys) }}} {
		hashes := make([]uint64, 1<<16)
		for i := range hashes {
			hashes[i] = hashOf(fmt.Appendf(nil, "%d", load.draw()))
		}
		b.Run(load.name, func(b *testing.B) {
			s, name := New(512, 1), []byte("a key of 24 bytes, about")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Add(hashes[i&(len(hashes)-1)], 0, 0, name)
			}
		})
	}
}
