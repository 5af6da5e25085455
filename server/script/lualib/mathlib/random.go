package mathlib

// Random is the generator behind math.random: that of C's lrand48, 48 bits of
// state that each step multiplies and adds to, modulo 2^48. Redis brings its
// own, so that scripts see the same numbers everywhere. A redis-server has one
// for all scripts and functions; it starts as NewRandom's does, and nothing but
// math.randomseed sets it. It is used by one goroutine at a time.
type Random struct{ state uint64 }

// NewRandom returns a generator that nobody has seeded yet.
func NewRandom() *Random { return &Random{state: randomStart} }

// Parameters of the generator, which are those of POSIX.
const (
	randomFactor = 0x5DEECE66D
	randomAddend = 0xB
	randomStart  = 0x1234ABCD330E // the state before the first seed
	randomLow    = 0x330E         // the lower bits of a state that was just seeded
	randomBits   = 48

	// randomMax is how many numbers Redis's math.random knows: 2^31-1.
	randomMax = 1<<31 - 1
)

// Seed starts the sequence that belongs to seed.
func (r *Random) Seed(seed int32) {
	r.state = uint64(uint32(seed))<<16 | randomLow
}

// next returns a number in [0, 2^31).
func (r *Random) next() int64 {
	r.state = (r.state*randomFactor + randomAddend) & (1<<randomBits - 1)
	return int64(r.state >> (randomBits - 31))
}

// float returns a number in [0, 1).
func (r *Random) float() float64 {
	return float64(r.next()%randomMax) / randomMax
}
