package store

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/number"
)

// setBits lists the numbers of the bits that are set in b, the simple way.
func setBits(b []byte) []int {
	var set []int
	for i := range len(b) * 8 {
		if b[i/8]&(0x80>>(i%8)) != 0 {
			set = append(set, i)
		}
	}
	return set
}

// TestBitRanges compares counting and finding with the simple way, on random strings, most of them with few bits that differ.
func TestBitRanges(t *testing.T) {
	rnd := newRand(t)
	for range 5000 {
		b := make([]byte, 1+rnd.IntN(120))
		for range rnd.IntN(6) {
			b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		}
		if rnd.IntN(2) == 0 {
			FlipBits(b)
		}
		first, last := rnd.IntN(len(b)*8), rnd.IntN(len(b)*8)
		count, found := 0, [2]int{-1, -1}
		is := make([]int, len(b)*8)
		for _, i := range setBits(b) {
			is[i] = 1
		}
		for i := first; i <= last; i++ {
			count += is[i]
			if found[is[i]] < 0 {
				found[is[i]] = i
			}
		}
		require.Equal(t, count, CountBits(b, first, last), "%x %d %d", b, first, last)
		require.Equal(t, found[1], FindBit(b, true, first, last), "%x %d %d", b, first, last)
		require.Equal(t, found[0], FindBit(b, false, first, last), "%x %d %d", b, first, last)
	}
	require.Zero(t, CountBits(nil, 0, -1))
	require.Equal(t, -1, FindBit(nil, false, 0, -1))
}

// TestCombineBits compares with byte by byte, for sources up to the destination's length.
func TestCombineBits(t *testing.T) {
	rnd := newRand(t)
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	for name, op := range map[string]struct {
		fast   func(dst, src []byte)
		simple func(x, y byte) byte
	}{
		"and":  {AndBits, func(x, y byte) byte { return x & y }},
		"or":   {OrBits, func(x, y byte) byte { return x | y }},
		"xor":  {XorBits, func(x, y byte) byte { return x ^ y }},
		"flip": {func(dst, _ []byte) { FlipBits(dst) }, func(x, _ byte) byte { return ^x }},
	} {
		for range 500 {
			dst := random(rnd.IntN(40))
			src := random(rnd.IntN(len(dst) + 1))
			padded := append(bytes.Clone(src), make([]byte, len(dst)-len(src))...)
			want := make([]byte, len(dst))
			for i := range want {
				want[i] = op.simple(dst[i], padded[i])
			}
			op.fast(dst, src)
			require.Equal(t, want, dst, name)
		}
	}
}

// TestGrowString expects the gate to be passed once when the string grows or is made, and else not at all.
func TestGrowString(t *testing.T) {
	for _, tc := range []struct {
		name, old string
		n         int
		want      string
		grows     bool
	}{
		{"missing", "", 3, "\x00\x00\x00", true},
		{"long enough", "abc", 3, "abc", false},
		{"grows", "abc", 5, "abc\x00\x00", true},
		{"an integer that is long enough", "1234", 2, "1234", false},
		{"an integer that grows", "12", 3, "12\x00", true},
		{"leaves the arena", "ab", maxBlock, "ab" + string(make([]byte, maxBlock-2)), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ks := New(Options{})
			defer ks.Close()
			db, k := ks.DB(0), testKey(ks, "key")
			if tc.old != "" {
				db.SetString(k, []byte(tc.old), 77)
			}
			before := ks.Dirty()
			e, err := db.GrowString(k, 0, tc.n)
			require.NoError(t, err)
			var digits [number.IntMax]byte
			require.Equal(t, tc.want, string(e.Bytes(digits[:])))
			require.Equal(t, tc.grows, ks.Dirty() != before)
			e.WritableBytes()[0] = 'X'
			e.WritableBytes()[0] = 'Y'
			require.Equal(t, before+1, ks.Dirty(), "one operation, one change")
			found, ok := db.Find(k, 0)
			require.True(t, ok)
			require.Equal(t, "Y"+tc.want[1:], string(found.Bytes(nil)))
			require.Equal(t, "raw", found.Encoding())
			require.Equal(t, tc.old != "", found.ExpireAt() == 77)
			checkDB(t, db, 0)
		})
	}
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "hash")
	db.create(k, encPackedHash)
	_, err := db.GrowString(k, 0, 1)
	require.ErrorIs(t, err, ErrWrongType)
}

func TestSetBytes(t *testing.T) {
	ks := New(Options{})
	defer ks.Close()
	db, k := ks.DB(0), testKey(ks, "key")
	for _, value := range []string{"12345", "text", "", string(make([]byte, 3*maxBlock)), "7", string(make([]byte, 2*maxBlock)), string(make([]byte, maxBlock/2))} {
		db.SetInt(k, 1, 77)
		before := ks.Dirty()
		for range 2 { // over an integer, and over itself
			db.SetBytes(k, []byte(value))
			e, ok := db.Find(k, 0)
			require.True(t, ok)
			require.Equal(t, value, string(e.Bytes(nil)))
			require.Equal(t, "raw", e.Encoding())
			require.Zero(t, e.ExpireAt())
			checkDB(t, db, 0)
		}
		require.Equal(t, before+2, ks.Dirty())
	}
}

// BenchmarkBits measures the loops over a string of 1 MiB.
func BenchmarkBits(b *testing.B) {
	text, other := make([]byte, 1<<20), make([]byte, 1<<20)
	for _, bench := range []struct {
		name string
		run  func()
	}{
		{"CountBits", func() { CountBits(text, 0, len(text)*8-1) }},
		{"FindBit", func() { FindBit(text, true, 0, len(text)*8-1) }},
		{"AndBits", func() { AndBits(text, other) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				bench.run()
			}
		})
	}
}
