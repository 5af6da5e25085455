package types

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBitFieldLoadStore compares with arithmetic on the whole string as one big number.
func TestBitFieldLoadStore(t *testing.T) {
	const length = 24
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		text := make([]byte, length)
		for i := range text {
			text[i] = byte(rng.Uint32())
		}
		f := bitField{signed: rng.IntN(2) == 0, bits: 1 + rng.IntN(maxUnsignedBits)}
		if f.signed {
			f.bits += rng.IntN(2)
		}
		f.offset = rng.IntN(length*8 - f.bits + 1)
		below := uint(length*8 - f.offset - f.bits)
		mask := new(big.Int).Lsh(big.NewInt(1), uint(f.bits))
		mask.Sub(mask, big.NewInt(1))

		whole := new(big.Int).SetBytes(text)
		want := new(big.Int).And(new(big.Int).Rsh(whole, below), mask)
		if f.signed && want.Bit(f.bits-1) == 1 {
			want.Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(f.bits)))
		}
		require.Equal(t, want.Int64(), f.load(text), "%+v of %x", f, text)

		value := int64(rng.Uint64())
		low := new(big.Int).And(big.NewInt(value), mask)
		whole.AndNot(whole, new(big.Int).Lsh(mask, below))
		whole.Or(whole, low.Lsh(low, below))
		f.store(text, value)
		require.Equal(t, whole.FillBytes(make([]byte, length)), text, "%+v := %d", f, value)
	}
}

// TestBitFieldLoadBeyondEnd reads fields that the string does not hold, or not all of.
func TestBitFieldLoadBeyondEnd(t *testing.T) {
	text := []byte{0xff, 0xff}
	for _, tc := range []struct {
		field bitField
		want  int64
	}{
		{bitField{bits: 8, offset: 8}, 0xff},
		{bitField{bits: 8, offset: 12}, 0xf0},
		{bitField{bits: 8, offset: 16}, 0},
		{bitField{signed: true, bits: 64, offset: 15}, -1 << 63},
		{bitField{signed: true, bits: 64, offset: 1 << 32}, 0},
	} {
		require.Equal(t, tc.want, tc.field.load(text), "%+v", tc.field)
	}
}

// TestBitFieldSum compares sums of values that the field holds with exact arithmetic.
func TestBitFieldSum(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		f := bitField{signed: rng.IntN(2) == 0, bits: 1 + rng.IntN(maxUnsignedBits)}
		if f.signed {
			f.bits += rng.IntN(2)
		}
		least, greatest := f.bounds()
		value, _ := f.sum(int64(rng.Uint64()>>rng.IntN(64)), 0, overflowWrap)
		delta := int64(rng.Uint64()) >> rng.IntN(64)
		exact := new(big.Int).Add(big.NewInt(value), big.NewInt(delta))
		limit, fits := exact.Int64(), true
		switch {
		case exact.Cmp(big.NewInt(greatest)) > 0:
			limit, fits = greatest, false
		case exact.Cmp(big.NewInt(least)) < 0:
			limit, fits = least, false
		}
		about := fmt.Sprintf("%+v: %d + %d", f, value, delta)
		sum, ok := f.sum(value, delta, overflowFail)
		require.Equal(t, fits, ok, about)
		if fits {
			require.Equal(t, exact.Int64(), sum, about)
		}
		sum, ok = f.sum(value, delta, overflowSat)
		require.True(t, ok)
		require.Equal(t, limit, sum, about)
		sum, ok = f.sum(value, delta, overflowWrap)
		require.True(t, ok)
		apart := new(big.Int).Sub(exact, big.NewInt(sum))
		require.Zero(t, apart.Mod(apart, new(big.Int).Lsh(big.NewInt(1), uint(f.bits))).Sign(), about)
		require.True(t, least <= sum && sum <= greatest, about)
	}
}
