package gateway

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestACallIsSmall: many are under way at a time, and all of them should be in the processor's caches. What only some need is elsewhere.
func TestACallIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(call{}), uintptr(512))
}
