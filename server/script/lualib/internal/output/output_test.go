package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// TestString: no string changes when its buffer is used again.
func TestString(t *testing.T) {
	for _, size := range []int{0, 1, keepMax, keepMax + 1, 3 * keepMax} {
		want := strings.Repeat("a", size)
		s, next := String([]byte(want))
		require.Equal(t, size <= keepMax, next != nil, "%d", size)
		next = append(next[:0], strings.Repeat("b", size)...)
		require.Equal(t, lua.LString(want), s, "%d", size)
		require.LessOrEqual(t, cap(Keep(next)), keepMax)
	}
}
