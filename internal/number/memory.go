package number

import (
	"math/bits"
	"strconv"
	"strings"
)

// memoryUnits are the units of redis.conf in lower case: those with a b count
// in powers of 1024, those without in powers of 1000.
var memoryUnits = [...]struct {
	name  string
	bytes uint64
}{
	{"", 1}, {"b", 1},
	{"k", 1e3}, {"kb", 1 << 10},
	{"m", 1e6}, {"mb", 1 << 20},
	{"g", 1e9}, {"gb", 1 << 30},
}

// ParseMemory reads a size in bytes as redis.conf writes it: a whole number
// and an optional unit in any case, as in "1gb", "5mb" or "10k". A missing
// number is 0, as in Redis. It reports false for anything else and for what
// does not fit 64 bits.
func ParseMemory(s string) (bytes uint64, ok bool) {
	unit := 0
	for unit < len(s) && s[unit]-'0' <= 9 {
		unit++
	}
	var count uint64
	if unit > 0 {
		var err error
		if count, err = strconv.ParseUint(s[:unit], 10, 64); err != nil {
			return 0, false
		}
	}
	for _, u := range memoryUnits {
		if strings.EqualFold(s[unit:], u.name) {
			high, low := bits.Mul64(count, u.bytes)
			return low, high == 0
		}
	}
	return 0, false
}

// FormatMemoryHuman returns a size as INFO shows it to people: "1.50M", and
// "512B" below one KiB.
func FormatMemoryHuman(bytes uint64) string {
	const units = "KMGTP"
	if bytes < 1<<10 || bytes >= 1<<60 {
		return strconv.FormatUint(bytes, 10) + "B"
	}
	power := (bits.Len64(bytes) - 1) / 10
	return strconv.FormatFloat(float64(bytes)/float64(uint64(1)<<(10*power)), 'f', 2, 64) + units[power-1:power]
}
