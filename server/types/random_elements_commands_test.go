package types_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// bulks returns the bulk strings of a reply that is an array of them.
func bulks(reply string) []string {
	lines := strings.Split(reply, "\r\n")
	var values []string
	for i := 2; i < len(lines)-1; i += 2 {
		values = append(values, lines[i])
	}
	return values
}

// TestRandomElementsAreDistinct: different elements are different, and all of the collection, whichever way they are found.
func TestRandomElementsAreDistinct(t *testing.T) {
	const big = 2048 // twice the size from which on not every element is looked at
	tests := []struct {
		name        string
		size, count int
	}{
		{"few of a small one", 50, 3},
		{"most of a small one", 50, 49},
		{"all of a small one", 50, 50},
		{"more than there are", 50, 100},
		{"few of a big one", big, 10},
		{"most of a big one", big, big - 1},
		{"all of a big one", big, big},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := servertest.NewWorkerClient(t)
			for i := range test.size {
				name := strconv.Itoa(i)
				w.Ask("HSET", "h", name, "v"+name)
				w.Ask("ZADD", "z", name, name)
			}
			want := min(test.size, test.count)
			for _, command := range []string{"HRANDFIELD", "ZRANDMEMBER"} {
				key := strings.ToLower(command[:1])
				names := bulks(w.Ask(command, key, strconv.Itoa(test.count)))
				require.Len(t, names, want)
				slices.Sort(names)
				require.Len(t, slices.Compact(names), want, "%s repeats an element", command)
			}
			pairs := bulks(w.Ask("HRANDFIELD", "h", strconv.Itoa(test.count), "WITHVALUES"))
			require.Len(t, pairs, 2*want)
			for i := 0; i < len(pairs); i += 2 {
				require.Equal(t, "v"+pairs[i], pairs[i+1])
			}
		})
	}
}

// TestRandomRepeatsAreBounded: with repeats a command draws a million elements at most, and sends 64 MiB at most.
func TestRandomRepeatsAreBounded(t *testing.T) {
	const most = 1 << 20
	w := servertest.NewWorkerClient(t)
	w.Ask("HSET", "h", "f", "v")
	w.Ask("ZADD", "z", "1", "m")
	tooMany := strconv.Itoa(-most - 1)
	require.Equal(t, "-ERR value is out of range\r\n", w.Ask("HRANDFIELD", "h", tooMany))
	require.Equal(t, "-ERR value is out of range\r\n", w.Ask("ZRANDMEMBER", "z", tooMany, "WITHSCORES"))
	require.Equal(t, "*0\r\n", w.Ask("HRANDFIELD", "none", tooMany))
	require.Len(t, bulks(w.Ask("HRANDFIELD", "h", "-1000")), 1000)
	w.Ask("HSET", "h", "f", strings.Repeat("v", 8<<10))
	require.Equal(t, "-ERR value is out of range\r\n", w.Ask("HRANDFIELD", "h", "-10000", "WITHVALUES"))
	require.Equal(t, ":1\r\n", w.Ask("HLEN", "h"))
}
