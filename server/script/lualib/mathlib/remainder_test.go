package mathlib

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRemainderIsExact: it is what math.Mod finds in its many rounds.
func TestRemainderIsExact(t *testing.T) {
	const smallest = math.SmallestNonzeroFloat64
	values := []float64{0, 1, 2, 3, 7, 0.1, 1e15, 1 << 53, 1e300, math.MaxFloat64, smallest, 3 * smallest, 0x1p-1022, 0x1p-1022 - smallest, 0x1p-1021 - smallest, math.Inf(1), math.NaN()}
	for range 20 {
		values = append(values, math.Float64frombits(rand.Uint64()), math.Float64frombits(rand.Uint64()>>rand.IntN(64)), rand.Float64())
	}
	for _, x := range values {
		for _, y := range values {
			for _, pair := range [][2]float64{{x, y}, {-x, y}, {x, -y}, {-x, -y}} {
				want, got := math.Mod(pair[0], pair[1]), remainder(pair[0], pair[1])
				if math.IsNaN(want) {
					require.True(t, math.IsNaN(got))
				} else {
					require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v %% %v", pair[0], pair[1])
				}
			}
		}
	}
}

func BenchmarkRemainder(b *testing.B) {
	for _, pair := range [][2]float64{{1e15, 7}, {math.MaxFloat64, 3 * math.SmallestNonzeroFloat64}} {
		b.Run("", func(b *testing.B) {
			for b.Loop() {
				_ = remainder(pair[0], pair[1])
			}
		})
	}
}

func BenchmarkFarSine(b *testing.B) {
	for b.Loop() {
		_ = sine(1.1e308)
	}
}
