package hashslot

import (
	"math/rand/v2"
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

// TestOfAnyLength compares with the definition, bit by bit, for keys of all short lengths.
func TestOfAnyLength(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for length := range 100 {
		key := make([]byte, length)
		for i := range key {
			key[i] = byte(random.Uint32()) | 0x80 // no braces
		}
		var crc uint16
		for _, b := range key {
			crc ^= uint16(b) << 8
			for range 8 {
				carry := crc >> 15
				crc = crc<<1 ^ carry*0x1021
			}
		}
		require.Equal(t, crc%Count, Of(key), "%q", key)
	}
}

func BenchmarkOf(b *testing.B) {
	key := []byte("limiter:000000098151")
	for b.Loop() {
		Of(key)
	}
}
