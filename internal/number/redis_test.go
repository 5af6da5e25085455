package number

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/reference"
)

// startRedis runs the real redis-server, which is the reference for this
// package.
func startRedis(t *testing.T) *reference.Server {
	t.Helper()
	return reference.Start(t, "--zset-max-listpack-entries", "0")
}

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 chooses one")

// newRand returns a random source whose seed is in the test's log.
func newRand(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomNumber returns a text that is a number more often than not.
func randomNumber(rng *rand.Rand) string {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	digits := func(alphabet string, lengthMax int) string {
		b := make([]byte, rng.IntN(lengthMax+1))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return string(b)
	}
	const decimal, hexadecimal = "0123456789", "0123456789abcdefABCDEF"
	sign := pick("", "", "", "-", "+")
	switch rng.IntN(12) {
	case 0:
		return strconv.FormatFloat(math.Float64frombits(rng.Uint64()), 'g', -1, 64)
	case 1:
		return strconv.FormatInt(int64(rng.Uint64())>>rng.IntN(64), 10)
	case 2:
		return sign + digits(decimal, 30) + "." + digits(decimal, 30)
	case 3:
		return sign + digits(decimal, 20) + pick("", ".") + digits(decimal, 20) + pick("e", "E") + pick("", "+", "-") + digits(decimal, 3)
	case 4:
		return sign + "0x" + digits(hexadecimal, 20) + pick("", ".") + digits(hexadecimal, 20) + pick("", "p1", "P-7", "p+33", "p-1070", "p1023")
	case 5:
		return sign + pick("inf", "Infinity", "INF", "infi", "nan", "NaN", "nan(1)", "infinityx")
	case 6:
		return pick("", " ", "-", "+", ".", "-.", "e1", ".e1", "0x", "0xg", "0x.", "0x1p", "1e", "1e+", "--1", "1_0", "0x1_0", "1 ", " 1", "\t1", "1\n", "1\x00", "1,5", "0b1", "0o7", "1e1.5", "1p3", "1e400", "-1e400", "1e-400", "0e-400", "0e400", "1e4932", "1.2e4932", "-1e4933", "1e-4950", "1e-4951", "1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551617", "0x1p16383", "0x1p16384", "0x1p-16445", "0x1p-16446", "0x.8p-16444", "4.9e-324", "2.5e-324", "2e-324", "1.7976931348623157e308", "1.7976931348623159e308")
	case 7: // half-way between two long doubles, or just beside it
		return "1" + digits("0", 10) + fmt.Sprint(rng.Uint64()) + pick("5", "50", "500", "499999", "500001") + pick("", "e-30", "e-20", "e10")
	case 8:
		return sign + digits(decimal, 3) + "." + digits("0", 17) + digits("59", 3)
	}
	return sign + digits(decimal, 6) + pick("", "."+digits(decimal, 4))
}

// TestAgainstRedisLongDouble compares parsing, addition and formatting with
// INCRBYFLOAT.
func TestAgainstRedisLongDouble(t *testing.T) {
	redis := startRedis(t)
	rng := newRand(t)
	for range 4000 {
		value, increment := randomNumber(rng), randomNumber(rng)
		_, err := redis.Do("SET", "k", value)
		require.NoError(t, err)
		want, err := redis.Text("INCRBYFLOAT", "k", increment)
		if err != nil {
			want = err.Error()
		}
		require.Equal(t, want, increased(value, increment), "%q + %q", value, increment)
	}
}

// increased is INCRBYFLOAT's reply.
func increased(value, increment string) string {
	x, ok := ParseLongDouble([]byte(value))
	y, okY := ParseLongDouble([]byte(increment))
	if !ok || !okY {
		return "ERR value is not a valid float"
	}
	sum, finite := x.Add(y)
	if !finite {
		return "ERR increment would produce NaN or Infinity"
	}
	return sum.String()
}

// TestAgainstRedisDouble compares ParseScore and AppendDouble with ZADD and
// ZSCORE, and ParseScoreBound with ZCOUNT.
func TestAgainstRedisDouble(t *testing.T) {
	redis := startRedis(t)
	rng := newRand(t)
	ask := func(args ...string) (string, error) {
		return redis.Text(append([]string{"EVAL", "return tostring(redis.call(unpack(ARGV)))", "0"}, args...)...)
	}
	for range 4000 {
		text := randomNumber(rng)
		score, ok := ParseScore([]byte(text))
		_, err := ask("DEL", "z") // else 0 would not replace -0, being equal to it
		require.NoError(t, err)
		_, err = ask("ZADD", "z", text, "m")
		require.Equal(t, err == nil, ok, "%q: %v", text, err)
		if ok {
			want, err := ask("ZSCORE", "z", "m")
			require.NoError(t, err)
			require.Equal(t, want, string(AppendDouble(nil, score)), "%q", text)
		}

		bound := text
		if rng.IntN(4) == 0 {
			bound = "(" + bound
		}
		if rng.IntN(8) == 0 {
			bound = " " + bound
		}
		score, exclusive, ok := ParseScoreBound([]byte(bound))
		_, err = ask("ZADD", "b", string(AppendDouble(nil, score)), "m")
		require.NoError(t, err)
		count, err := ask("ZCOUNT", "b", bound, bound)
		require.Equal(t, err == nil, ok, "%q: %v", bound, err)
		if ok {
			want := "1"
			if exclusive {
				want = "0"
			}
			require.Equal(t, want, count, "%q", bound)
		}
	}
}

// TestAgainstRedisMemory compares ParseMemory with what CONFIG SET makes of a
// size, and FormatMemoryHuman with what INFO makes of it.
func TestAgainstRedisMemory(t *testing.T) {
	redis := startRedis(t)
	rng := newRand(t)
	for range 1000 {
		text := randomNumber(rng)
		if rng.IntN(4) > 0 {
			text = fmt.Sprint(rng.Uint64() >> rng.IntN(64))
		}
		units := []string{"", "", "b", "k", "kb", "KB", "m", "mB", "g", "GB", "t", "bk", " kb"}
		text += units[rng.IntN(len(units))]
		size, ok := ParseMemory(text)
		_, err := redis.Do("CONFIG", "SET", "maxmemory", text)
		if err == nil && !ok {
			continue // Redis lets sizes above 64 bits wrap around
		}
		require.Equal(t, err == nil, ok, "%q: %v", text, err)
		if !ok {
			continue
		}
		got, err := redis.Map("CONFIG", "GET", "maxmemory")
		require.NoError(t, err)
		require.Equal(t, got["maxmemory"], fmt.Sprint(size), "%q", text)
		info, err := redis.Text("INFO", "memory")
		require.NoError(t, err)
		_, human, found := strings.Cut(info, "maxmemory_human:")
		require.True(t, found)
		human, _, _ = strings.Cut(human, "\r\n")
		require.Equal(t, human, FormatMemoryHuman(size))
	}
}
