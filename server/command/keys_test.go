package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeyRange(t *testing.T) {
	tests := []struct {
		name              string
		keys              []KeySpec
		first, last, step int
	}{
		{"none", nil, 0, 0, 0},
		{"one", Keys("RO", 1, 1, 1), 1, 1, 1},
		{"to the end", Keys("RO", 1, -1, 2), 1, -1, 2},
		{"two in a row", append(Keys("OW", 1, 1, 1), Keys("RO", 2, 2, 1)...), 1, 2, 1},
		{"one before a counted list", append(Keys("OW", 1, 1, 1), KeySpec{Access: "RO", Begin: 2, Step: 1, KeyNum: true}), 1, 1, 1},
		{"a counted list only", []KeySpec{{Access: "RO", Begin: 1, Step: 1, KeyNum: true}}, 0, 0, 0},
	}
	for _, test := range tests {
		first, last, step := (&Command{Keys: test.keys}).KeyRange()
		require.Equal(t, []int{test.first, test.last, test.step}, []int{first, last, step}, test.name)
	}
}

// TestPlaces: what a worker touches before a command runs is where its handler will look.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		what    string
		keys    []KeySpec
		first   int
		several bool
	}{
		{"no keys", nil, 0, false},
		{"one key", Keys("RW", 1, 1, 1), 1, false},
		{"two keys", Keys("RW", 1, 2, 1), 1, true},
		{"keys to the end", Keys("RO", 1, -1, 1), 1, true},
		{"a number of keys", []KeySpec{{Begin: 2, KeyNum: true, Step: 1}}, 3, true},
		{"pairs", []KeySpec{{Begin: 1, KeyNum: true, Skip: 1, Step: 2}}, 3, true},
		{"keys behind a word", []KeySpec{{Begin: 1, Keyword: "STREAMS", Last: -1, Step: 1}}, 0, false},
		{"keys by other rules", []KeySpec{{Other: func(indexes []int, _ [][]byte) []int { return indexes }}}, 0, false},
	} {
		first, several := (&Command{Keys: c.keys}).places()
		assert.Equal(t, c.first, first, c.what)
		assert.Equal(t, c.several, several, c.what)
	}
}
