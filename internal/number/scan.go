package number

// floatText is what C's strtod finds at the start of a text: where the parts
// of the number stand. Positions count from the start of the text.
type floatText struct {
	length   int // bytes that belong to the number, 0 when there is none
	negative bool
	infinite bool
	hex      bool

	// The digits stand in [first, last), with the decimal point at point; there
	// is none when point == last.
	first, point, last int
	zero               bool // all digits are 0

	hasExponent bool
	exponent    int // of ten, or of two behind hexadecimal digits; saturates
}

// exponentMax is where an exponent saturates: far outside of any format, and
// small enough to add the length of a text to it.
const exponentMax = 1 << 40

// scanFloat finds the number at the start of s, which must not start with a
// space. It takes what strtod takes in the C locale: decimal and hexadecimal
// digits with an optional point and exponent, and the infinities. NaN is none:
// Redis accepts it nowhere.
func scanFloat(s []byte) (f floatText) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		f.negative = s[i] == '-'
		i++
	}
	if n := infinity(s[i:]); n > 0 {
		f.infinite, f.length = true, i+n
		return f
	}
	if i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' {
		f.hex = true
		if f.digits(s, i+2) {
			f.readExponent(s, 'p')
			return f
		}
		// A prefix without digits is the number 0 and two bytes of other text.
		f.hex = false
	}
	if f.digits(s, i) {
		f.readExponent(s, 'e')
	}
	return f
}

// infinity returns the length of the infinity's name at the start of s, or 0.
func infinity(s []byte) int {
	const name = "infinity"
	n := 0
	for n < len(name) && n < len(s) && s[n]|0x20 == name[n] {
		n++
	}
	switch {
	case n == len(name):
		return n
	case n >= len("inf"):
		return len("inf")
	}
	return 0
}

// digits takes in the digits from s[i] on, and reports whether there are any.
func (f *floatText) digits(s []byte, i int) bool {
	f.first, f.point, f.zero = i, -1, true
	count := 0
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && f.point < 0 {
			f.point = i
			continue
		}
		if c-'0' > 9 && !(f.hex && c|0x20 >= 'a' && c|0x20 <= 'f') {
			break
		}
		count++
		f.zero = f.zero && c == '0'
	}
	f.last = i
	if f.point < 0 {
		f.point = i
	}
	if count == 0 {
		return false
	}
	f.length = i
	return true
}

// readExponent takes in the exponent behind the digits, if a whole one stands
// there.
func (f *floatText) readExponent(s []byte, mark byte) {
	i := f.last
	if i >= len(s) || s[i]|0x20 != mark {
		return
	}
	i++
	negative := false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		negative = s[i] == '-'
		i++
	}
	if i >= len(s) || s[i]-'0' > 9 {
		return
	}
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		f.exponent = min(f.exponent*10+int(s[i]-'0'), exponentMax)
	}
	if negative {
		f.exponent = -f.exponent
	}
	f.hasExponent, f.length = true, i
}

// isSpace is C's isspace, which Redis rejects at the start of a number.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
