package hashslot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOf has the slots that redis-server 7.0 answers to CLUSTER KEYSLOT.
func TestOf(t *testing.T) {
	for key, slot := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "{foo}": 12182, "a{foo}b{bar}": 12182, "{}foo": 9500, "foo{": 7673, "foo{}{bar}": 8363, "{{bar}}zap": 4015,
	} {
		require.Equal(t, slot, Of([]byte(key)), key)
	}
}
