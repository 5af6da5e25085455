package mathlib

import "math"

// On x86-64 an invalid operation makes a NaN whose sign is set, and Lua prints
// it: -nan. Go's functions return one whose sign is not set, which is what some
// of the C library's return too.
// The bits of Go's own are others.
var invalid = math.Float64frombits(0xfff8 << 48)

// orInvalid returns result, or for a NaN the one that C returns for x.
func orInvalid(result, x float64) float64 {
	if math.IsNaN(result) {
		if math.IsNaN(x) {
			return x
		}
		return invalid
	}
	return result
}

func isSpecial(x float64) bool { return x == 0 || math.IsInf(x, 0) || math.IsNaN(x) }

func squareRoot(x float64) float64 { return orInvalid(math.Sqrt(x), x) }

func sine(x float64) float64 {
	if isSpecial(x) {
		return orInvalid(math.Sin(x), x)
	}
	sin, _ := sinCos(x)
	return sin.float()
}

func cosine(x float64) float64 {
	if isSpecial(x) {
		return orInvalid(math.Cos(x), x)
	}
	_, cos := sinCos(x)
	return cos.float()
}

func tangent(x float64) float64 {
	if isSpecial(x) {
		return orInvalid(math.Tan(x), x)
	}
	sin, cos := sinCos(x)
	return sin.div(cos).float()
}

// tiny is where a function that is x + O(x³) is x.
const tiny = 0x1p-30

func arcSine(x float64) float64 {
	guess := math.Asin(x)
	if isSpecial(x) || math.IsNaN(guess) || math.Abs(x) < tiny {
		return propagated(guess, x)
	}
	return angle(double{x, 0}, cathetus(x), guess)
}

func arcCosine(x float64) float64 {
	guess := math.Acos(x)
	if isSpecial(x) || math.IsNaN(guess) || guess == 0 {
		return propagated(guess, x)
	}
	return angle(cathetus(x), double{x, 0}, guess)
}

// cathetus returns the root of 1 - x².
func cathetus(x float64) double { return sum(1, -x).mul(sum(1, x)).sqrt() }

// propagated is orInvalid for functions whose own NaN has no sign.
func propagated(result, x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case math.IsNaN(result):
		return math.Abs(invalid)
	}
	return result
}

// Where the angle is next to a half or a whole of π, this is what that is larger than its float64.
const (
	halfPiLow = 6.123233995736766e-17
	piLow     = 2 * halfPiLow
)

func arcTangent(x float64) float64 {
	guess := math.Atan(x)
	switch {
	case isSpecial(x) || math.Abs(x) < tiny:
		return propagated(guess, x)
	case math.Abs(x) > 1/tiny:
		return math.Copysign(math.Pi/2-(1/math.Abs(x)-halfPiLow), x)
	}
	return angle(double{x, 0}, double{1, 0}, guess)
}

func arcTangent2(y, x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case math.IsNaN(y):
		return y
	}
	guess := math.Atan2(y, x)
	ratio := math.Abs(y / x)
	switch {
	case isSpecial(x) || isSpecial(y) || ratio < tiny && x > 0:
		return guess
	case ratio < tiny:
		return math.Copysign(math.Pi-(ratio-piLow), y)
	case ratio > 1/tiny:
		return math.Copysign(math.Pi/2-(x/math.Abs(y)-halfPiLow), y)
	}
	_, exponent := math.Frexp(x) // near 1, nothing overflows
	return angle(double{math.Ldexp(y, -exponent), 0}, double{math.Ldexp(x, -exponent), 0}, guess)
}

// remainder is C's fmod: what x leaves when it is divided by y, with the sign of
// x.
func remainder(x, y float64) float64 {
	if math.IsNaN(x) || math.IsNaN(y) {
		return x + y
	}
	if isSpecial(x) || isSpecial(y) {
		return orInvalid(math.Mod(x, y), x)
	}
	return math.Copysign(remainderOf(math.Abs(x), math.Abs(y)), x)
}

// remainderOf is remainder for finite positive numbers. math.Mod takes
// 100 µs where they are far apart: as many rounds as their exponents differ by.
func remainderOf(x, y float64) float64 {
	const atOnce = 11 // bits that a mantissa leaves free in 64
	if x < y {
		return x
	}
	rest, power := parts(x)
	divisor, least := parts(y)
	for rest %= divisor; power > least; {
		n := min(atOnce, power-least)
		rest = rest << n % divisor
		power -= n
	}
	return math.Ldexp(float64(rest), least)
}

// parts returns a finite positive number's mantissa as a whole number, and the
// power of 2 that it has to be multiplied by.
func parts(f float64) (mantissa uint64, power int) {
	const mantissaBits, lowest = 52, -1074
	bits := math.Float64bits(f)
	mantissa, power = bits&(1<<mantissaBits-1), int(bits>>mantissaBits)
	if power == 0 {
		return mantissa, lowest
	}
	return mantissa | 1<<mantissaBits, power - 1 + lowest
}

func exponential(x float64) float64 {
	guess := math.Exp(x)
	if isSpecial(x) || isSpecial(guess) {
		return propagated(guess, x)
	}
	result, exponent := double{x, 0}.exp()
	return math.Ldexp(result.float(), exponent)
}

func logarithm(x float64) float64 {
	if isSpecial(x) || x < 0 || x == 1 {
		return orInvalid(math.Log(x), x)
	}
	return log(x).float()
}

// logarithm10 adds up a multiple of log10(2) and the logarithm of the rest, as
// the C library does; its last digit is off more often than those of the other
// functions.
func logarithm10(x float64) float64 {
	if isSpecial(x) || x < 0 {
		return propagated(math.Log10(x), x)
	}
	const (
		log10Of2High = 0x1.34413509f6p-2
		log10Of2Low  = 0x1.9fef311f12b36p-42
		log10OfE     = 0x1.bcb7b1526e50ep-2
	)
	fraction, exponent := math.Frexp(x) // in [1/2, 1)
	if exponent > 0 {
		fraction, exponent = fraction*2, exponent-1
	}
	n := float64(exponent)
	return (n*log10Of2Low + log10OfE*logarithm(fraction)) + n*log10Of2High
}

// hyperbolicMax is where e^-x no longer matters beside e^x.
const hyperbolicMax = 22

// The hyperbolic functions are computed from e^x - 1 by the formulas of Sun's
// fdlibm, as the C library does.

func hyperbolicSine(x float64) float64 {
	half, magnitude := math.Copysign(0.5, x), math.Abs(x)
	switch {
	case isSpecial(x) || magnitude < 0x1p-28:
		return x
	case magnitude < 1:
		t := math.Expm1(magnitude)
		return half * (2*t - t*t/(t+1))
	case magnitude < hyperbolicMax:
		t := math.Expm1(magnitude)
		return half * (t + t/(t+1))
	}
	return 2 * half * halfExponential(magnitude)
}

func hyperbolicCosine(x float64) float64 {
	magnitude := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return x
	case magnitude < math.Ln2/2:
		t := math.Expm1(magnitude)
		return 1 + t*t/(2*(1+t))
	case magnitude < hyperbolicMax:
		t := exponential(magnitude)
		return 0.5*t + 0.5/t
	}
	return halfExponential(magnitude)
}

// halfExponential returns e^x/2, also where e^x is too large.
func halfExponential(x float64) float64 {
	const largest = 709
	if x <= largest {
		return 0.5 * exponential(x)
	}
	root := exponential(x / 2)
	return 0.5 * root * root
}

func hyperbolicTangent(x float64) float64 {
	magnitude := math.Abs(x)
	var result float64
	switch {
	case isSpecial(x) && !math.IsInf(x, 0) || magnitude < 0x1p-55:
		return x
	case magnitude >= hyperbolicMax:
		result = 1
	case magnitude >= 1:
		result = 1 - 2/(math.Expm1(2*magnitude)+2)
	default:
		t := math.Expm1(-2 * magnitude)
		result = -t / (t + 2)
	}
	return math.Copysign(result, x)
}

// Pow is C's pow, which the operator ^ is too.
func Pow(x, y float64) float64 {
	guess := math.Pow(x, y)
	if isSpecial(x) || isSpecial(y) || isSpecial(guess) || math.Abs(x) == 1 || y == 1 {
		switch {
		case !math.IsNaN(guess):
			return guess
		case math.IsNaN(x) && !isSpecial(y) && math.Abs(math.Mod(y, 2)) == 1:
			return math.Abs(x) // its sign is taken for that of a number
		case math.IsNaN(x):
			return x
		case math.IsNaN(y):
			return y
		}
		return invalid
	}
	switch y { // Those of which the result may lie next to the middle of two numbers.
	case 0.5:
		return math.Sqrt(x)
	case -1:
		return 1 / x
	}
	result, exponent := log(math.Abs(x)).mulFloat(y).exp()
	return math.Copysign(math.Ldexp(result.float(), exponent), guess)
}
