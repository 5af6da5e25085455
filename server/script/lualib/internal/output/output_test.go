package output

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"headgate/server/script/limits"
)

// TestString: no string changes when its buffer is used again.
func TestString(t *testing.T) {
	b := limits.NewBudget()
	for _, size := range []int{0, 1, limits.KeptBuffer, limits.KeptBuffer + 1, 3 * limits.KeptBuffer} {
		want := strings.Repeat("a", size)
		s, next := String(nil, b, append(b.Grow(nil, nil, size), want...))
		require.Zero(t, b.HeldBytes, "%d", size)
		require.Equal(t, size <= limits.KeptBuffer, size == 0 || next != nil, "%d", size)
		next = append(next[:0], strings.Repeat("b", size)...)
		require.Equal(t, lua.LString(want), s, "%d", size)
		require.LessOrEqual(t, cap(Keep(b, next)), limits.KeptBuffer)
		b.HeldBytes = 0
	}
}
