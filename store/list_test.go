package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func openList(t testing.TB, db *DB, k Key) List {
	t.Helper()
	l, _, err := db.List(k, 0)
	require.NoError(t, err)
	return l
}

// contents reads a list upward.
func (l *List) contents() []string {
	list := []string{}
	l.Walk(0, l.Len(), false, func(i int, v []byte) bool {
		if i != len(list) {
			panic(fmt.Sprintf("element %d is shown as %d", len(list), i))
		}
		list = append(list, string(v))
		return true
	})
	return list
}

// requireList compares a list with what it should hold, read in every way, and checks its invariants.
func requireList(t testing.TB, want []string, db *DB, k Key) {
	t.Helper()
	l := openList(t, db, k)
	require.Equal(t, len(want), l.Len())
	require.Equal(t, len(want) > 0, l.exists)
	require.True(t, slices.Equal(want, l.contents()), "want %q, got %q", want, l.contents())
	if len(want) == 0 {
		return
	}
	back := len(want)
	l.Walk(back-1, back, true, func(i int, v []byte) bool {
		back--
		require.Equal(t, back, i)
		require.Equal(t, want[i], string(v))
		return true
	})
	require.Zero(t, back)
	require.Equal(t, want[0], string(l.End(true)))
	require.Equal(t, want[len(want)-1], string(l.End(false)))
	if l.big != nil {
		checkChunks(t, l.big, l.room())
	}
}

func checkChunks(t testing.TB, l *chunkedList, room listRoom) {
	t.Helper()
	var before *listChunk
	count, chunks := 0, 0
	for c := l.first; c != nil; before, c = c, c.after {
		require.Same(t, before, c.before)
		require.Positive(t, c.count)
		require.True(t, c.count == 1 || room.holds(c.size(), c.count))
		held := 0
		for at := 0; at < c.size(); held++ {
			_, at = c.packed().next(at)
		}
		require.Equal(t, c.count, held)
		count += held
		chunks++
	}
	require.Same(t, before, l.last)
	require.Equal(t, l.count, count)
	require.Equal(t, l.chunks, chunks)
}

// TestListModel compares a list with a Go slice under random operations, in every encoding.
func TestListModel(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			rnd := newRand(t)
			ks, db := typesKeyspace(t, limits)
			k := testKey(ks, "list")
			var want []string
			for i := range *opsFlag / 20 {
				changeList(t, rnd, db, k, &want, string(randomName(rnd, 30)))
				if i%100 == 0 || len(want) < 5 {
					requireList(t, want, db, k)
				}
				if rnd.IntN(2000) == 0 {
					db.Flush()
					want = nil
				}
			}
			requireList(t, want, db, k)
			checkDB(t, db, 0)
		})
	}
}

// changeList runs one operation on the list at k and on want. Now and then it is one on many elements, or on long ones.
func changeList(t testing.TB, rnd *rand.Rand, db *DB, k Key, want *[]string, value string) {
	l, list, v := openList(t, db, k), *want, []byte(value)
	size := len(list)
	switch op := rnd.IntN(16); {
	case size == 0 || op < 3:
		l.Push(true, v)
		list = slices.Insert(list, 0, value)
	case op < 6:
		l.Push(false, v)
		list = append(list, value)
	case op < 8:
		i := rnd.IntN(size + 1)
		l.Insert(i, v)
		list = slices.Insert(list, i, value)
	case op < 10:
		i := rnd.IntN(size)
		require.Equal(t, list[i], string(l.At(i)))
		l.Set(i, v)
		list[i] = value
	case op < 13:
		i := rnd.IntN(size)
		if rnd.IntN(3) == 0 {
			i = []int{0, size - 1}[rnd.IntN(2)]
		}
		n := min(rnd.IntN(3), size-i)
		if rnd.IntN(30) == 0 {
			n = rnd.IntN(size - i + 1)
		}
		l.Cut(i, n)
		list = slices.Delete(list, i, i+n)
	case op < 14:
		removed := list[rnd.IntN(size)]
		limit, front := 1+rnd.IntN(3), rnd.IntN(2) == 0
		var n int
		list, n = modelRemove(list, removed, limit, front)
		require.Equal(t, n, l.Remove([]byte(removed), limit, front))
		require.Zero(t, l.Remove([]byte("no such"), limit, front))
	case op < 15:
		i, reverse := rnd.IntN(size), rnd.IntN(2) == 0
		step, n := 1, rnd.IntN(size-i)
		if reverse {
			step, n = -1, rnd.IntN(i+1)
		}
		l.Walk(i, n, reverse, func(at int, v []byte) bool {
			require.Equal(t, i, at)
			require.Equal(t, list[i], string(v))
			i += step
			return rnd.IntN(50) > 0
		})
	default:
		for range rnd.IntN(50) {
			long := strings.Repeat(value+"-", rnd.IntN(200))
			front := rnd.IntN(2) == 0
			l.Push(front, []byte(long))
			if front {
				list = slices.Insert(list, 0, long)
			} else {
				list = append(list, long)
			}
		}
	}
	if len(list) > 500 {
		l.Cut(100, len(list)-200)
		list = slices.Delete(list, 100, len(list)-100)
	}
	*want = list
}

func modelRemove(list []string, v string, limit int, front bool) (rest []string, removed int) {
	if !front {
		slices.Reverse(list)
	}
	for _, held := range list {
		if held == v && removed < limit {
			removed++
			continue
		}
		rest = append(rest, held)
	}
	if !front {
		slices.Reverse(rest)
	}
	return rest, removed
}

// TestListElementSizes puts elements of each length around where a length takes another byte into a list.
func TestListElementSizes(t *testing.T) {
	for name, limits := range encodings {
		t.Run(name, func(t *testing.T) {
			ks, db := typesKeyspace(t, limits)
			k := testKey(ks, "list")
			var want []string
			for _, n := range []int{0, 1, 126, 127, 128, 129, 16382, 16383, 16384, 16385, maxBlock, 1 << 20, 1<<21 + 1} {
				v := bytes.Repeat([]byte{byte(n), 0x80, 0}, n/3+1)[:n]
				l := openList(t, db, k)
				l.Push(n%2 == 0, v)
				if n%2 == 0 {
					want = slices.Insert(want, 0, string(v))
				} else {
					want = append(want, string(v))
				}
				requireList(t, want, db, k)
			}
			l := openList(t, db, k)
			for i := range want {
				l.Set(i, []byte("short"))
				want[i] = "short"
				requireList(t, want, db, k)
			}
		})
	}
}

func TestListLimits(t *testing.T) {
	for size, want := range map[int]listRoom{
		-1: {4096, 1 << 62}, -2: {8192, 1 << 62}, -5: {65536, 1 << 62}, -6: {65536, 1 << 62}, -1 << 31: {65536, 1 << 62},
		0: {8192, 1}, 1: {8192, 1}, 128: {8192, 128},
	} {
		limits := Limits{ListMaxListpackSize: size}
		room := limits.room()
		room.count = min(room.count, 1<<62)
		require.Equal(t, want, room, size)
	}
}

// TestListMemory: a long list takes up little more than its elements' bytes, wherever they are added.
func TestListMemory(t *testing.T) {
	for _, front := range []bool{false, true} {
		ks, db := typesKeyspace(t, DefaultLimits())
		k := testKey(ks, "list")
		l := openList(t, db, k)
		const n = 100_000
		for i := range n {
			l.Push(front, strconv.AppendInt(nil, int64(1_700_000_000_000+i), 10))
		}
		perElement := float64(l.Entry().MemoryUsage()) / n
		t.Logf("%.1f bytes for an element of 13", perElement)
		require.Less(t, perElement, 15.5)
		// What is left of a list after most of it was removed does not keep the memory.
		for i := range 500 {
			l.Cut(i, 190)
		}
		require.Equal(t, n-500*190, l.Len())
		require.Less(t, float64(l.Entry().MemoryUsage())/float64(l.Len()), 60.0)
	}
}

func TestListEncodingAndKind(t *testing.T) {
	ks, db := typesKeyspace(t, DefaultLimits())
	k := testKey(ks, "list")
	l := openList(t, db, k)
	l.Push(true, []byte("x"))
	require.Equal(t, "quicklist", l.Entry().Encoding())
	require.Equal(t, "list", l.Entry().Kind().String())
	l.Push(true, make([]byte, 9000))
	require.NotNil(t, l.big)
	require.Equal(t, "quicklist", l.Entry().Encoding())
	_, _, err := db.Hash(k, 0)
	require.ErrorIs(t, err, ErrWrongType)
	_, _, err = db.Set(k, 0)
	require.ErrorIs(t, err, ErrWrongType)
	db.SetInt(testKey(ks, "n"), 1, 0)
	_, _, err = db.List(testKey(ks, "n"), 0)
	require.ErrorIs(t, err, ErrWrongType)
	l.Cut(0, 2)
	require.Equal(t, 1, db.Len())
	l.Push(false, []byte("again"))
	requireList(t, []string{"again"}, db, k)
}
