package observe

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlowCommandsAreTrimmed: of a long command line the slow log keeps what Redis keeps of it.
func TestSlowCommandsAreTrimmed(t *testing.T) {
	line := func(n int) (args [][]byte) {
		for range n {
			args = append(args, []byte("a"))
		}
		return args
	}
	require.Equal(t, line(slowArgs), trimArguments(line(slowArgs)))
	for _, extra := range []int{1, 2, 100} {
		kept := trimArguments(line(slowArgs + extra))
		require.Len(t, kept, slowArgs)
		require.Equal(t, line(slowArgs-1), kept[:slowArgs-1])
		require.Equal(t, map[int]string{1: "... (2 more arguments)", 2: "... (3 more arguments)", 100: "... (101 more arguments)"}[extra], string(kept[slowArgs-1]))
	}

	long := strings.Repeat("x", SlowArgBytes)
	args := [][]byte{[]byte(long), []byte(long + "y"), []byte(long + "yz")}
	kept := trimArguments(args)
	require.Equal(t, long, string(kept[0]))
	require.Equal(t, long+"... (1 more bytes)", string(kept[1]))
	require.Equal(t, long+"... (2 more bytes)", string(kept[2]))
	args[0][0] = 'X'
	require.Equal(t, long, string(kept[0]), "it is a copy")

	many := line(slowArgs + 1)
	many[slowArgs-1] = []byte(long + "y")
	require.Equal(t, "... (2 more arguments)", string(trimArguments(many)[slowArgs-1]), "the last one says only how many are left out")
}

// TestSlowFrom: what is slow follows slowlog-log-slower-than, and nothing is if no entry may be kept.
func TestSlowFrom(t *testing.T) {
	for _, tt := range []struct {
		slowerThan, most int
		from             int64
	}{
		{slowerThan: 10, most: 1, from: 10_000},
		{slowerThan: 0, most: 1, from: 0},
		{slowerThan: -1, most: 1, from: math.MaxInt64},
		{slowerThan: 10, most: 0, from: math.MaxInt64},
		{slowerThan: math.MaxInt64 / 1000, most: 1, from: math.MaxInt64 / 1000 * 1000},
		{slowerThan: math.MaxInt64/1000 + 1, most: 1, from: math.MaxInt64},
	} {
		l := slowLog{}
		l.limit(tt.slowerThan, tt.most)
		require.Equal(t, tt.from, l.From, "%+v", tt)
	}
}
