package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// hllTest drives HyperLogLogs beside models that are their registers and nothing else.
type hllTest struct {
	t     *testing.T
	rnd   *rand.Rand
	ks    *Keyspace
	db    *DB
	model map[string]*[hllRegisters]uint8
}

func newHLLTest(t *testing.T, sparseMax int) *hllTest {
	limits := DefaultLimits()
	limits.HLLSparseMaxBytes = sparseMax
	ks, db := typesKeyspace(t, limits)
	return &hllTest{t: t, rnd: newRand(t), ks: ks, db: db, model: map[string]*[hllRegisters]uint8{}}
}

func (h *hllTest) key(name string) Key { return h.ks.Key([]byte(name)) }

func (h *hllTest) step() {
	t := h.t
	name := string('a' + rune(h.rnd.IntN(5)))
	dirty := h.ks.Dirty()
	switch h.rnd.IntN(10) {
	case 0:
		other := string('a' + rune(h.rnd.IntN(5)))
		union := &HLLUnion{}
		for _, n := range []string{name, other} {
			if e, ok := h.db.Find(h.key(n), 0); ok {
				require.NoError(t, union.Add(&e))
			}
		}
		require.NoError(t, h.db.MergeHLL(h.key(name), 0, union))
		h.merge(name, other)
		require.Greater(t, h.ks.Dirty(), dirty)
	case 1:
		if e, ok := h.db.Find(h.key(name), 0); ok && h.rnd.IntN(20) == 0 {
			e.Delete()
			delete(h.model, name)
		}
	default:
		elements := make([][]byte, h.rnd.IntN(30))
		for i := range elements {
			elements[i] = fmt.Append(nil, h.rnd.IntN(3000))
		}
		want := h.add(name, elements)
		changed, err := h.db.AddToHLL(h.key(name), 0, elements)
		require.NoError(t, err)
		require.Equal(t, want, changed)
		require.Equal(t, want, h.ks.Dirty() > dirty, "the gate is passed when something changes")
	}
}

func (h *hllTest) add(name string, elements [][]byte) (changed bool) {
	registers := h.model[name]
	if registers == nil {
		registers, changed = &[hllRegisters]uint8{}, true
		h.model[name] = registers
	}
	for _, element := range elements {
		if i, rank := hllPlace(element); rank > registers[i] {
			registers[i], changed = rank, true
		}
	}
	return changed
}

func (h *hllTest) merge(name, other string) {
	h.add(name, nil)
	from := h.model[other]
	if from == nil {
		return
	}
	for i, rank := range from {
		h.model[name][i] = max(h.model[name][i], rank)
	}
}

func (h *hllTest) verify() {
	for name, want := range h.model {
		e, ok := h.db.Find(h.key(name), 0)
		require.True(h.t, ok)
		union := &HLLUnion{}
		require.NoError(h.t, union.Add(&e))
		require.True(h.t, *want == union.registers, name)
		n, err := e.CountHLL()
		require.NoError(h.t, err)
		require.Equal(h.t, union.Count(), n)
		require.Equal(h.t, "raw", e.Encoding())
	}
}

func TestHLLModel(t *testing.T) {
	for name, sparseMax := range map[string]int{"never sparse": 0, "conversion": 600, "always sparse": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			h := newHLLTest(t, sparseMax)
			for i := range 600 {
				h.step()
				if i%30 == 0 {
					h.verify()
				}
			}
			h.verify()
		})
	}
}

// The estimate's standard error is 0.81 %: for fixed elements it must stay within four of those, whatever the form.
func TestHLLEstimates(t *testing.T) {
	ks, db := typesKeyspace(t, DefaultLimits())
	k := ks.Key([]byte("h"))
	counted := 0
	for _, n := range []int{1, 10, 100, 1000, 5000, 40_000, 200_000} {
		for ; counted < n; counted++ {
			_, err := db.AddToHLL(k, 0, [][]byte{fmt.Append(nil, "element ", counted)})
			require.NoError(t, err)
		}
		e, _ := db.Find(k, 0)
		got, err := e.CountHLL()
		require.NoError(t, err)
		require.InDelta(t, n, float64(got), math.Ceil(float64(n)*4*0.0081), "of %d", n)
		dirty := ks.Dirty()
		again, err := e.CountHLL()
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.Equal(t, dirty, ks.Dirty(), "a kept estimate is read only")
	}
}

func TestMurmur64A(t *testing.T) {
	// The reference implementation's verification value: the hashes of all prefixes of 0, 1, 2 … 254, each with a seed of
	// 256 less its length, hashed together.
	var data, hashes []byte
	for i := range 256 {
		hashes = binary.LittleEndian.AppendUint64(hashes, murmur64A(data, uint64(256-i)))
		data = append(data, byte(i))
	}
	require.EqualValues(t, 0x1f0d3804, uint32(murmur64A(hashes, 0)))
}

func TestHLLKeepsTTL(t *testing.T) {
	ks, db := typesKeyspace(t, DefaultLimits())
	k := ks.Key([]byte("h"))
	for range 3000 {
		_, err := db.AddToHLL(k, 0, [][]byte{fmt.Append(nil, ks.Dirty())})
		require.NoError(t, err)
		e, _ := db.Find(k, 0)
		if e.ExpireAt() == 0 {
			require.EqualValues(t, 1, ks.Dirty(), "lost")
			e.SetExpireAt(1000)
		}
	}
}

// FuzzHLL takes any string for a HyperLogLog: what is done with it ends in an error or in a value that can be counted.
func FuzzHLL(f *testing.F) {
	valid := newHLL()
	f.Add([]byte(valid), []byte("a"), 3000)
	f.Add(append(slices.Clone([]byte(valid)), 0x80), []byte("b"), 0)
	f.Add(append([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"), 0x7f), []byte("c"), 20)
	dense := make([]byte, hllDenseSize)
	copy(dense, valid[:hllHeader])
	dense[hllEncoding] = hllDense
	f.Add(dense, []byte("d"), 3000)
	f.Fuzz(func(t *testing.T, value, element []byte, sparseMax int) {
		limits := DefaultLimits()
		limits.HLLSparseMaxBytes = min(max(sparseMax, 0), 3000)
		if len(value) > hllDenseSize {
			t.Skip("longer than any")
		}
		ks, db := typesKeyspace(t, limits)
		k, other := ks.Key([]byte("h")), ks.Key([]byte("other"))
		db.SetText(k, value, 0)
		_, err := db.AddToHLL(other, 0, [][]byte{element, value})
		require.NoError(t, err)
		e, _ := db.Find(k, 0)
		n, countErr := e.CountHLL()
		union := &HLLUnion{}
		err = union.Add(&e)
		require.Equal(t, countErr == nil && value[hllHeader-1]&hllStale != 0, err == nil && value[hllHeader-1]&hllStale != 0)
		if err == nil && value[hllHeader-1]&hllStale != 0 {
			require.Equal(t, union.Count(), n)
		}
		_, addErr := db.AddToHLL(k, 0, [][]byte{element})
		mergeErr := db.MergeHLL(k, 0, union)
		if err == nil {
			require.NoError(t, addErr)
			require.NoError(t, mergeErr)
			e, _ = db.Find(k, 0)
			_, err = e.CountHLL()
			require.NoError(t, err)
			require.True(t, bytes.HasPrefix(e.Bytes(nil), []byte(hllMagic)))
		}
	})
}
