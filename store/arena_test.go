package store

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassFor(t *testing.T) {
	for _, tc := range []struct {
		size, block int
	}{
		{1, 16}, {16, 16}, {17, 24}, {24, 24}, {45, 48}, {48, 48}, {49, 56}, {81, 96}, {1024, 1024}, {1025, 1168},
		{8191, 8192}, {8192, 8192}, {8193, 9360}, {maxBlock, maxBlock},
	} {
		class := classFor(tc.size)
		require.EqualValues(t, tc.block, classSize(class), "size %d", tc.size)
	}
	require.EqualValues(t, hugeClass, classFor(maxBlock+1))
	require.EqualValues(t, hugeClass, classFor(1<<40))
}

// TestClassesAreSound checks that every size gets the smallest class that holds it, and that blocks are aligned.
func TestClassesAreSound(t *testing.T) {
	for size := 1; size <= maxBlock; size++ {
		class := classFor(size)
		require.GreaterOrEqual(t, int(classSize(class)), size)
		require.Zero(t, classSize(class)%unitSize)
		if class > 0 {
			require.Less(t, int(classSize(class-1)), size)
		}
	}
	require.Zero(t, runSize%tableBytes, "buckets are to be whole cache lines")
}

// TestArenaKeepsBlocksApart fills blocks of random classes, frees some at random, and expects the others untouched.
func TestArenaKeepsBlocksApart(t *testing.T) {
	rnd := newRand(t)
	a := arena{check: true}
	defer releaseAll(&a)
	type block struct {
		r     ref
		class uint8
		fill  byte
		size  int
	}
	var blocks []block
	bytesOf := func(b block) []byte { return bytesAt((*record)(a.at(b.r)), b.size) }
	for i := range 30_000 {
		if len(blocks) > 0 && rnd.IntN(100) < 45 {
			j := rnd.IntN(len(blocks))
			b := blocks[j]
			for _, c := range bytesOf(b) {
				if c != b.fill {
					require.Equal(t, b.fill, c, "block %#x was overwritten", b.r)
				}
			}
			a.free(b.r, b.class)
			blocks[j] = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			continue
		}
		size := 1 + rnd.IntN(200)
		switch rnd.IntN(100) {
		case 0:
			size = 1 + rnd.IntN(maxBlock)
		case 1:
			size = maxBlock + 1 + rnd.IntN(2*chunkSize)
		}
		b := block{class: classFor(size), fill: byte(i), size: size}
		if b.class == hugeClass {
			b.r = a.allocHuge(size)
		} else {
			b.r = a.alloc(b.class)
		}
		require.NotZero(t, b.r)
		mem := bytesOf(b)
		for j := range mem {
			mem[j] = b.fill
		}
		blocks = append(blocks, b)
		if i%5000 == 0 {
			checkArena(t, &a)
		}
	}
	checkArena(t, &a)
	for _, b := range blocks {
		a.free(b.r, b.class)
	}
	checkArena(t, &a)
	require.Zero(t, a.used)
	require.LessOrEqual(t, a.resident, uint64(warmRunsLimit)*runSize)
	require.Empty(t, a.huge)
}

// TestArenaReusesMemory expects that memory of one class serves another once it is free.
func TestArenaReusesMemory(t *testing.T) {
	a := arena{check: true}
	defer releaseAll(&a)
	for round := range 20 {
		class := classFor(48 + round*16)
		var refs []ref
		for range 8 * chunkSize / classSize(class) {
			refs = append(refs, a.alloc(class))
		}
		for _, r := range refs {
			a.free(r, class)
		}
	}
	require.LessOrEqual(t, a.next, uint32(11), "chunks mapped")
	require.Zero(t, a.used)
}

func TestArenaFindsWrongFrees(t *testing.T) {
	a := arena{check: true}
	defer releaseAll(&a)
	class := classFor(48)
	keep, r := a.alloc(class), a.alloc(class)
	a.free(r, class)
	require.Panics(t, func() { a.free(r, class) }, "freed twice")
	require.Panics(t, func() { a.free(keep, classFor(64)) }, "freed as another class")
	require.Panics(t, func() { a.free(keep+1, class) }, "address inside a block")
	a.free(keep, class)
	require.Panics(t, func() { a.free(keep, class) }, "freed twice, the run being free")

	huge := a.allocHuge(maxBlock + 1)
	a.free(huge, hugeClass)
	require.Panics(t, func() { a.free(huge, hugeClass) }, "huge block freed twice")
}

// releaseAll unmaps an arena.
func releaseAll(a *arena) {
	var r retired
	r.add(a.release())
	r.unmap(math.MaxInt)
}

// TestFlushGivesMemoryBackInPieces expects a flush to leave most of a large database's memory to ExpireSlice.
func TestFlushGivesMemoryBackInPieces(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	value := bytes.Repeat([]byte{'v'}, maxBlock/2)
	for i := range 5000 {
		db.SetString(testKey(ks, "key:%d", i), value, 0)
	}
	full := ks.Stats().ArenaResident
	db.Flush()
	s := ks.Stats()
	require.Zero(t, s.ArenaUsed)
	require.InDelta(t, full-flushUnmapBytes, s.ArenaResident, 2*chunkSize)
	for range full / sliceUnmapBytes {
		ks.ExpireSlice(0, 0, 1)
	}
	require.Zero(t, ks.Stats().ArenaResident)
	require.Empty(t, ks.retired.maps)
}

func TestArenaRunsOut(t *testing.T) {
	a := arena{}
	defer releaseAll(&a)
	require.Equal(t, maxChunks-1, a.left())
	first := a.takeChunkNumber()
	require.EqualValues(t, 1, first)
	require.Equal(t, maxChunks-2, a.left())
	a.next = maxChunks - fullMargin + 1
	require.Equal(t, fullMargin-1, a.left())
	a.spare = append(a.spare, first)
	require.Equal(t, fullMargin, a.left())
	require.Equal(t, first, a.takeChunkNumber())
	a.next = maxChunks
	require.Zero(t, a.left())
	require.PanicsWithValue(t, "store: arena exhausted", func() { a.takeChunkNumber() })
	a.next = 2
}

func TestFullIsOfAnyDatabase(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	require.False(t, ks.Full(0))
	require.False(t, ks.Full(maxChunks-1-fullMargin))
	require.True(t, ks.Full(maxChunks-fullMargin))
	ks.DB(5).TakeAddresses(fullMargin + 10)
	require.False(t, ks.Full(10))
	require.True(t, ks.Full(11))
	ks.DB(5).Flush()
	ks.DB(4).TakeAddresses(fullMargin - 1)
	require.True(t, ks.Full(0))
}

// TestCrowdedIsTold: as soon as few addresses are left, and of databases that are adopted, too.
func TestCrowdedIsTold(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	told := 0
	ks.OnCrowded(func() { told++ })
	long := bytes.Repeat([]byte("k"), maxBlock)
	ks.DB(2).SetInt(ks.Key(long[:1]), 1, 0)
	ks.DB(2).TakeAddresses(crowdedChunks + 1)
	ks.DB(2).SetInt(ks.Key(long), 1, 0)
	require.False(t, ks.Crowded())
	require.Zero(t, told)
	ks.DB(2).SetInt(ks.Key(long[1:]), 1, 0)
	require.True(t, ks.Crowded())
	require.Equal(t, 1, told)
	ks.FlushAll()
	require.False(t, ks.Crowded())

	other := ks.Beside()
	defer other.Close()
	other.DB(3).SetInt(other.Key(long), 1, 0)
	other.DB(3).TakeAddresses(crowdedChunks - 1)
	told = 0
	ks.Adopt(other)
	require.Equal(t, 1, told)
}

// TestDemand is never less than what keys take that have these names and values.
func TestDemand(t *testing.T) {
	for _, size := range []int{0, 1, 10, 100, 5000, 10_900, 11_000, 16_300, maxBlock/2 + 1, maxBlock - recordHeader, maxBlock - recordHeader + 1, 3 * maxBlock} {
		ks := New(Options{})
		db := ks.DB(0)
		var d Demand
		for i := range min(20_000, 200+1_000_000/(size+1)) {
			texts := [][]byte{append(bytes.Repeat([]byte("k"), size), fmt.Sprintf("%07d", i)...), bytes.Repeat([]byte("v"), size)}
			d.Add(texts)
			db.SetText(ks.Key(texts[0]), texts[1], 0)
		}
		require.GreaterOrEqual(t, d.Chunks()+1, maxChunks-1-db.arena.left(), "%d bytes", size)
		ks.Close()
	}
}

// TestShrinkingTakesNoAddress: what becomes smaller stays where it is if another block would cost one of the last chunks.
func TestShrinkingTakesNoAddress(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db := ks.DB(0)
	k := ks.Key([]byte("h"))
	h, _, _ := db.Hash(k, 1)
	field := func(i int) []byte { return fmt.Append(nil, "field:", i) }
	for i := range 500 {
		h.Set(field(i), []byte("value"))
	}
	for len(db.arena.cold)+len(db.arena.warm) > 0 {
		db.arena.takeFreeRun() // for something else
	}
	db.TakeAddresses(1)
	h, _, _ = db.Hash(k, 1)
	for i := range 499 {
		h.Delete(field(i))
	}
	require.Equal(t, 1, db.arena.left())
	require.Equal(t, 1, h.Len())
}
