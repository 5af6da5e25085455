package mathlib

import "math"

// double is an unevaluated sum of two float64 with some 106 significant bits;
// low is at most half a unit in the last place of high. Results computed with
// it and rounded once are the nearest float64 but in the rarest cases, which
// is what the C library's functions return too.
//
// The elementary operations are those of T. J. Dekker, "A floating-point
// technique for extending the available precision" (1971), and D. E. Knuth.
type double struct{ high, low float64 }

// float returns the nearest float64.
func (a double) float() float64 { return a.high + a.low }

// sum returns a + b exactly.
func sum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// product returns a * b exactly.
func product(a, b float64) double {
	p := a * b
	return double{p, math.FMA(a, b, -p)}
}

func (a double) neg() double { return double{-a.high, -a.low} }

func (a double) add(b double) double {
	s, t := sum(a.high, b.high), sum(a.low, b.low)
	s = sum(s.high, s.low+t.high)
	return sum(s.high, s.low+t.low)
}

func (a double) sub(b double) double { return a.add(b.neg()) }

func (a double) mul(b double) double {
	p := product(a.high, b.high)
	return sum(p.high, p.low+(a.high*b.low+a.low*b.high))
}

func (a double) mulFloat(b float64) double { return a.mul(double{b, 0}) }

func (a double) div(b double) double {
	q := a.high / b.high
	rest := a.sub(b.mulFloat(q))
	r := rest.high / b.high
	rest = rest.sub(b.mulFloat(r))
	return sum(q, r).add(double{rest.high / b.high, 0})
}

// sqrt returns the square root of a, which is not negative.
func (a double) sqrt() double {
	if a.high == 0 {
		return a
	}
	root := math.Sqrt(a.high)
	return sum(root, a.sub(product(root, root)).high/(2*root))
}

// series returns the sum of x^n/n! over every second n from first on, 0 or 1,
// with alternating signs: the cosine or the sine of x, |x| < 1.
func series(x double, first int) double {
	const termsMax = 16
	term := double{1, 0}
	if first == 1 {
		term = x
	}
	square := x.mul(x).neg()
	total := term
	for n := first; n < first+2*termsMax; n += 2 {
		term = term.mul(square).div(double{float64((n + 1) * (n + 2)), 0})
		total = total.add(term)
		if math.Abs(term.high) < math.Abs(total.high)*0x1p-108 {
			break
		}
	}
	return total
}

// ln2 is the natural logarithm of 2.
var ln2 = double{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}

// exp returns e to the power of a, scaled by 2^-exponent. |a| is at most 1100.
func (a double) exp() (result double, exponent int) {
	// e^a = 2^k · (e^(r/2^halvings))^(2^halvings), |r| <= ln2/2. What is squared
	// is e^… - 1, which keeps its precision.
	const halvings = 8
	k := math.Round(a.high / ln2.high)
	r := a.sub(ln2.mulFloat(k))
	scale := math.Ldexp(1, -halvings)
	r = double{r.high * scale, r.low * scale}
	term, s := r, r
	for n := 2.0; n <= 12; n++ {
		term = term.mul(r).div(double{n, 0})
		s = s.add(term)
	}
	for range halvings {
		s = s.add(s).add(s.mul(s))
	}
	return s.add(double{1, 0}), int(k)
}

// log returns the natural logarithm of x, a finite number above 0.
func log(x float64) double {
	const near = 1.0 / 64
	if d := x - 1; math.Abs(d) < near {
		// ln x = 2·artanh((x-1)/(x+1))
		f := double{d, 0}.div(sum(x, 1))
		square := f.mul(f)
		power, total := f, f
		for n := 3.0; n < 25; n += 2 {
			power = power.mul(square)
			total = total.add(power.div(double{n, 0}))
		}
		return total.add(total)
	}
	fraction, exponent := math.Frexp(x)
	guess := math.Log(fraction)
	inverse, k := double{-guess, 0}.exp()
	e := inverse.mulFloat(math.Ldexp(fraction, k)).sub(double{1, 0})
	correction := e.sub(double{e.high * e.high / 2, 0})
	return ln2.mulFloat(float64(exponent)).add(double{guess, 0}).add(correction)
}

// sinCos returns sine and cosine of x, which is finite.
func sinCos(x float64) (sin, cos double) {
	quadrant, rest := reduce(x)
	sin, cos = series(rest, 1), series(rest, 0)
	switch quadrant {
	case 1:
		return cos, sin.neg()
	case 2:
		return sin.neg(), cos.neg()
	case 3:
		return cos.neg(), sin
	}
	return sin, cos
}

// angle returns the angle of the point (x, y), near the angle guess.
func angle(y, x double, guess float64) float64 {
	sin, cos := sinCos(guess)
	correction := y.mul(cos).sub(x.mul(sin)).div(x.mul(cos).add(y.mul(sin)))
	return sum(guess, correction.high).add(double{correction.low, 0}).float()
}
