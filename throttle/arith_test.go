package throttle

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckedArithmetic tries every pair of values near zero, near the ends of int64 and near the roots of the ends.
func TestCheckedArithmetic(t *testing.T) {
	var values []int64
	for _, near := range []int64{0, math.MaxInt64, math.MinInt64, math.MaxInt64 / 2, math.MinInt64 / 2, 3_037_000_499, -3_037_000_499, 1 << 32, -1 << 32} {
		for offset := int64(-3); offset <= 3; offset++ {
			values = append(values, near+offset) // Wrapping here only gives the other end.
		}
	}
	operations := []struct {
		name    string
		checked func(a, b int64) (int64, bool)
		exact   func(z, x, y *big.Int) *big.Int
	}{
		{"add", add, (*big.Int).Add},
		{"sub", sub, (*big.Int).Sub},
		{"mul", mul, (*big.Int).Mul},
	}
	for _, operation := range operations {
		t.Run(operation.name, func(t *testing.T) {
			for _, a := range values {
				for _, b := range values {
					got, ok := operation.checked(a, b)
					want := operation.exact(new(big.Int), big.NewInt(a), big.NewInt(b))
					if ok != want.IsInt64() || ok && got != want.Int64() {
						require.Failf(t, "wrong", "%s(%d, %d) = %d, %t; want %v", operation.name, a, b, got, ok, want)
					}
				}
			}
		})
	}
}
