package mathlib

import (
	"math"
	"math/big"
	"sync"
)

// nearMax is up to where double is precise enough to subtract a multiple of
// π/2 from an argument.
const nearMax = 1 << 29

// halfPi is half of π in three parts.
var halfPi = [3]float64{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}

// reduce returns the quadrant that the finite angle x is in, and how far x is
// from the nearest multiple of π/2.
func reduce(x float64) (quadrant int, rest double) {
	if math.Abs(x) >= nearMax {
		return reduceFar(x)
	}
	k := math.Round(x / halfPi[0])
	rest = double{x, 0}.sub(product(k, halfPi[0])).sub(product(k, halfPi[1])).sub(product(k, halfPi[2]))
	return int(k) & 3, rest
}

// reduceFar is reduce with exact arithmetic.
func reduceFar(x float64) (quadrant int, rest double) {
	half := farHalfPi()
	scaled, _ := new(big.Float).SetMantExp(big.NewFloat(math.Abs(x)), farBits).Int(nil)
	k, remainder := new(big.Int).DivMod(scaled, half, new(big.Int))
	if twice := new(big.Int).Lsh(remainder, 1); twice.Cmp(half) > 0 {
		k.Add(k, big.NewInt(1))
		remainder.Sub(remainder, half)
	}
	quadrant = int(k.Bit(1)<<1 | k.Bit(0))
	f := new(big.Float).SetInt(remainder)
	f.SetMantExp(f, -farBits)
	rest.high, _ = f.Float64()
	rest.low, _ = f.Sub(f, big.NewFloat(rest.high)).Float64()
	if x < 0 {
		return -quadrant & 3, rest.neg()
	}
	return quadrant, rest
}

// farBits is how many bits behind the point a multiple of π/2 as large as the
// largest double needs: its 1024, and 256 for the rest.
const farBits = 1024 + 256

// farHalfPi returns π/2 in units of 2^-farBits, by Machin's formula
// π/4 = 4·arctan(1/5) - arctan(1/239).
var farHalfPi = sync.OnceValue(func() *big.Int {
	const guardBits = 32
	inverseTangent := func(n int64) *big.Int {
		power := new(big.Int).Lsh(big.NewInt(1), farBits+guardBits)
		power.Quo(power, big.NewInt(n))
		square, total := big.NewInt(-n*n), new(big.Int)
		for i := int64(1); power.Sign() != 0; i += 2 {
			total.Add(total, new(big.Int).Quo(power, big.NewInt(i)))
			power.Quo(power, square)
		}
		return total
	}
	quarter := inverseTangent(5)
	quarter.Lsh(quarter, 2).Sub(quarter, inverseTangent(239))
	return quarter.Rsh(quarter, guardBits-1)
})
