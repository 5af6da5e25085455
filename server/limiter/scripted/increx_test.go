package scripted_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"headgate/internal/number"
	"headgate/server/limiter"

	"github.com/stretchr/testify/require"
)

// TestIncrex makes random calls of INCREX at both servers.
func TestIncrex(t *testing.T) {
	randomCalls(t, increxCall, func(r *rand.Rand, ms int64) []string {
		value := pick(r, "0", "3", "-4", "007", "x", "1.5", "-7.25", "9223372036854775807", "999999999999999", "1000000000000000", "inf")
		return line("SET k %s PXAT %s", value, strconv.FormatInt(ms+1+r.Int64N(3000), 10))
	})
}

// increxCall draws a call of INCREX.
func increxCall(r *rand.Rand) []string {
	words := line("INCREX k")
	if float := r.IntN(6) == 0; float {
		words = append(words, line("BYFLOAT %s", pick(r, "0.5", "1", "-2.25", "1e3"))...)
	} else if r.IntN(4) > 0 {
		words = append(words, line("BYINT %s", pick(r, "1", "1", "3", "-2", "0", "1000000000000000", "1000000000000001", "9223372036854775807", "-9223372036854775808"))...)
	}
	if r.IntN(2) == 0 {
		words = append(words, "UBOUND", pick(r, "10", "10", "100", "9223372036854775807", "-5"))
	}
	if r.IntN(4) == 0 {
		words = append(words, "LBOUND", pick(r, "-10", "0", "-5", "-9223372036854775808", "5000000000000000000"))
	}
	if r.IntN(3) == 0 {
		words = append(words, "SATURATE")
	}
	now := r.Int64N(2000)
	switch r.IntN(8) {
	case 0:
		words = append(words, "PERSIST")
	case 1, 2, 3:
		words = append(words, line("PX %d", 1+now)...)
	case 4:
		words = append(words, line("EX %d", 1+now/1000)...)
	case 5:
		words = append(words, line("PXAT %d", pick(r, 1, 1_790_000_000_000+now*100, 4_000_000_000_000_000))...)
	}
	if last := words[len(words)-2]; (last == "PX" || last == "EX" || last == "PXAT") && r.IntN(2) == 0 {
		words = append(words, "ENX")
	}
	return words
}

// readIncrex reads a call that is written as it should be.
func readIncrex(t testing.TB, words []string) (x limiter.Increx, err error) {
	x = limiter.Increx{Delta: 1, Low: math.MinInt64, High: math.MaxInt64}
	value := ""
	for i := 2; i < len(words); i++ {
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch words[i] {
		case "BYINT":
			x.Delta = parse(t, value)
		case "BYFLOAT":
			x.Float, x.FloatDelta = true, floatOf(t, value)
			x.FloatLow, x.FloatHigh = longest.Neg(), longest
		case "LBOUND":
			x.Low = parse(t, value)
		case "UBOUND":
			x.High = parse(t, value)
		case "SATURATE":
			x.Saturate = true
			continue
		case "PERSIST":
			x.Persist = true
			continue
		case "ENX":
			x.Absent = true
			continue
		case "PX", "PXAT":
			x.Expires, x.Relative, x.TimeMs = true, words[i] == "PX", parse(t, value)
		case "EX":
			x.Expires, x.Relative, x.TimeMs = true, true, 1000*parse(t, value)
		}
		i++
	}
	if x.Float && slices.Contains(words, "LBOUND") {
		x.FloatLow = number.LongDoubleOf(x.Low)
	}
	if x.Float && slices.Contains(words, "UBOUND") {
		x.FloatHigh = number.LongDoubleOf(x.High)
	}
	if x.Low > x.High {
		return x, limiter.Error("ERR LBOUND can't be greater than UBOUND")
	}
	return x, nil
}

var longest = number.MaxLongDouble()

func floatOf(t testing.TB, word string) number.LongDouble {
	n, ok := number.ParseLongDouble([]byte(word))
	require.True(t, ok, word)
	return n
}

// increx answers INCREX.
func (a *asker) increx(words []string) error {
	x, err := readIncrex(a.t, words)
	if err != nil {
		return err
	}
	if err := a.ask(a.q.AskIncrex(a.buf[:0], []byte(words[1]), &x)); err != nil {
		return err
	}
	a.out.Array(2)
	if answer := &a.q.Increased; x.Float {
		a.out.Bulk(answer.SumText)
		a.out.Bulk(answer.AppliedText)
	} else {
		a.out.Int(answer.Sum)
		a.out.Int(answer.Applied)
	}
	return nil
}

// TestIncrexIsOneCommand: the use that INCREX is made for.
func TestIncrexIsOneCommand(t *testing.T) {
	w := newWorld(t)
	for range 12 {
		w.pass(1e6)
		w.both(line("INCREX k BYINT 1 UBOUND 10 EX 60 ENX")...)
		require.Equal(t, 1, w.trips)
		w.same("it", "k")
	}
}
