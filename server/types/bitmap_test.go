package types_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"headgate/server/servertest"
	"headgate/server/types"

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
		f := types.BitField{Signed: rng.IntN(2) == 0, Bits: 1 + rng.IntN(types.MaxUnsignedBits)}
		if f.Signed {
			f.Bits += rng.IntN(2)
		}
		f.Offset = rng.IntN(length*8 - f.Bits + 1)
		below := uint(length*8 - f.Offset - f.Bits)
		mask := new(big.Int).Lsh(big.NewInt(1), uint(f.Bits))
		mask.Sub(mask, big.NewInt(1))

		whole := new(big.Int).SetBytes(text)
		want := new(big.Int).And(new(big.Int).Rsh(whole, below), mask)
		if f.Signed && want.Bit(f.Bits-1) == 1 {
			want.Sub(want, new(big.Int).Lsh(big.NewInt(1), uint(f.Bits)))
		}
		require.Equal(t, want.Int64(), f.Load(text), "%+v of %x", f, text)

		value := int64(rng.Uint64())
		low := new(big.Int).And(big.NewInt(value), mask)
		whole.AndNot(whole, new(big.Int).Lsh(mask, below))
		whole.Or(whole, low.Lsh(low, below))
		f.Store(text, value)
		require.Equal(t, whole.FillBytes(make([]byte, length)), text, "%+v := %d", f, value)
	}
}

// TestBitFieldLoadBeyondEnd reads fields that the string does not hold, or not all of.
func TestBitFieldLoadBeyondEnd(t *testing.T) {
	text := []byte{0xff, 0xff}
	for _, tc := range []struct {
		field types.BitField
		want  int64
	}{
		{types.BitField{Bits: 8, Offset: 8}, 0xff},
		{types.BitField{Bits: 8, Offset: 12}, 0xf0},
		{types.BitField{Bits: 8, Offset: 16}, 0},
		{types.BitField{Signed: true, Bits: 64, Offset: 15}, -1 << 63},
		{types.BitField{Signed: true, Bits: 64, Offset: 1 << 32}, 0},
	} {
		require.Equal(t, tc.want, tc.field.Load(text), "%+v", tc.field)
	}
}

// TestBitFieldSum compares sums of values that the field holds with exact arithmetic.
func TestBitFieldSum(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		f := types.BitField{Signed: rng.IntN(2) == 0, Bits: 1 + rng.IntN(types.MaxUnsignedBits)}
		if f.Signed {
			f.Bits += rng.IntN(2)
		}
		least, greatest := f.Bounds()
		value, _ := f.Sum(int64(rng.Uint64()>>rng.IntN(64)), 0, types.OverflowWrap)
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
		sum, ok := f.Sum(value, delta, types.OverflowFail)
		require.Equal(t, fits, ok, about)
		if fits {
			require.Equal(t, exact.Int64(), sum, about)
		}
		sum, ok = f.Sum(value, delta, types.OverflowSat)
		require.True(t, ok)
		require.Equal(t, limit, sum, about)
		sum, ok = f.Sum(value, delta, types.OverflowWrap)
		require.True(t, ok)
		apart := new(big.Int).Sub(exact, big.NewInt(sum))
		require.Zero(t, apart.Mod(apart, new(big.Int).Lsh(big.NewInt(1), uint(f.Bits))).Sign(), about)
		require.True(t, least <= sum && sum <= greatest, about)
	}
}

func TestBitsDoNotAllocate(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	w.Run(servertest.EncodeCommand("SETBIT", "bits", "1000", "1"))
	w.Run(servertest.EncodeCommand("SET", "number", "1234567"))
	for _, command := range [][]string{
		{"SETBIT", "bits", "77", "1"},
		{"SETBIT", "bits", "77", "0"},
		{"GETBIT", "bits", "77"},
		{"GETBIT", "number", "7"},
		{"BITCOUNT", "bits"},
		{"BITCOUNT", "number", "1", "-2", "BIT"},
		{"BITPOS", "bits", "1", "3"},
		{"BITFIELD", "bits", "SET", "u8", "#3", "7", "OVERFLOW", "SAT", "INCRBY", "i16", "99", "1000", "GET", "u4", "0"},
		{"BITFIELD_RO", "number", "GET", "u8", "0"},
	} {
		input := servertest.EncodeCommand(command...)
		require.NotContains(t, string(w.Run(input)), "ERR ")
		require.Zero(t, testing.AllocsPerRun(200, func() { w.Run(input) }), "%q", command)
	}
}
