package command

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
