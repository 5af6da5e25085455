package simulate

import "bytes"

const (
	nsPerSecond   = 1_000_000_000
	nsPerMs       = 1_000_000
	secondsPerDay = 86_400
	maxYear       = 2200 // beyond, nanoseconds would leave 64 bits
)

// parseTime reads an instant in any of the forms that logs have, as nanoseconds since the Unix epoch: 10/Oct/2000:13:55:36 -0700, with or
// without milliseconds and zone; 2000-10-10T13:55:36.123+02:00, also with a space; and seconds or milliseconds since the epoch. What has no
// zone is of UTC.
func parseTime(b []byte) (ns int64, ok bool) {
	switch {
	case len(b) >= 20 && b[2] == '/':
		return parseCommonTime(b)
	case len(b) >= 19 && b[4] == '-':
		return parseISOTime(b)
	}
	return parseUnixTime(b)
}

// digits reads a number of nothing but digits, at most 18 of them.
func digits(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

const monthNames = "JanFebMarAprMayJunJulAugSepOctNovDec"

// parseCommonTime reads 10/Oct/2000:13:55:36, which has 20 bytes, and what may follow.
func parseCommonTime(b []byte) (ns int64, ok bool) {
	month := bytes.Index([]byte(monthNames), b[3:6])
	day, ok1 := digits(b[:2])
	year, ok2 := digits(b[7:11])
	if !ok1 || !ok2 || month < 0 || month%3 != 0 || b[6] != '/' || b[11] != ':' {
		return 0, false
	}
	return parseClock(b[12:], year, int64(month/3+1), day)
}

func parseISOTime(b []byte) (ns int64, ok bool) {
	year, ok1 := digits(b[:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	if !ok1 || !ok2 || !ok3 || b[7] != '-' || b[10] != 'T' && b[10] != ' ' || month < 1 || month > 12 {
		return 0, false
	}
	return parseClock(b[11:], year, month, day)
}

// parseClock reads the time of a day, a fraction and a zone if they are there, and adds the date.
func parseClock(b []byte, year, month, day int64) (ns int64, ok bool) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, false
	}
	hour, ok1 := digits(b[:2])
	minute, ok2 := digits(b[3:5])
	second, ok3 := digits(b[6:8])
	if !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 60 || day < 1 || day > 31 || year < 1970 || year > maxYear {
		return 0, false
	}
	rest := b[8:]
	var fraction int64
	if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		fraction, rest = parseFraction(rest[1:n]), rest[n:]
	}
	offset, ok := parseZone(bytes.TrimLeft(rest, " "))
	seconds := daysSinceEpoch(year, month, day)*secondsPerDay + hour*3600 + minute*60 + second - offset
	return seconds*nsPerSecond + fraction, ok && seconds >= 0
}

// parseZone reads Z, +0200 or -07:00 as seconds; nothing is UTC.
func parseZone(b []byte) (seconds int64, ok bool) {
	if len(b) == 0 || len(b) == 1 && b[0] == 'Z' {
		return 0, true
	}
	if len(b) == 6 && b[3] == ':' {
		b = []byte{b[0], b[1], b[2], b[4], b[5]}
	}
	if len(b) != 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	n, ok := digits(b[1:])
	seconds = n/100*3600 + n%100*60
	if b[0] == '-' {
		seconds = -seconds
	}
	return seconds, ok
}

// parseFraction reads the digits behind a point as nanoseconds, and leaves out those beyond.
func parseFraction(b []byte) (ns int64) {
	unit := int64(nsPerSecond / 10)
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		ns += int64(c-'0') * unit
		unit /= 10
	}
	return ns
}

// leastMs is the first whole number that is taken for milliseconds since the epoch, and not for seconds: as seconds it would be of the year
// 5138.
const leastMs = 100_000_000_000

func parseUnixTime(b []byte) (ns int64, ok bool) {
	whole, fraction, _ := bytes.Cut(b, []byte("."))
	n, ok := digits(whole)
	if len(fraction) > 0 && ok {
		_, ok = digits(fraction[:min(len(fraction), 18)])
	}
	if !ok {
		return 0, false
	}
	ns = parseFraction(fraction)
	const most = (maxYear - 1970) * 366 * secondsPerDay
	if n >= leastMs {
		return n*nsPerMs + ns/1000, n <= most*1000
	}
	return n*nsPerSecond + ns, n <= most
}

// daysSinceEpoch counts the days from 1970 to a date of the Gregorian calendar. Years begin in March, so that the leap day comes last.
func daysSinceEpoch(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468
}
