package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyRange(t *testing.T) {
	tests := []struct {
		name              string
		keys              []KeySpec
		first, last, step int
	}{
		{"none", nil, 0, 0, 0},
		{"one", keys("RO", 1, 1, 1), 1, 1, 1},
		{"to the end", keys("RO", 1, -1, 2), 1, -1, 2},
		{"two in a row", append(keys("OW", 1, 1, 1), keys("RO", 2, 2, 1)...), 1, 2, 1},
		{"one before a counted list", append(keys("OW", 1, 1, 1), KeySpec{Access: "RO", Begin: 2, Step: 1, KeyNum: true}), 1, 1, 1},
		{"a counted list only", []KeySpec{{Access: "RO", Begin: 1, Step: 1, KeyNum: true}}, 0, 0, 0},
	}
	for _, test := range tests {
		first, last, step := (&Command{Keys: test.keys}).keyRange()
		require.Equal(t, []int{test.first, test.last, test.step}, []int{first, last, step}, test.name)
	}
}
