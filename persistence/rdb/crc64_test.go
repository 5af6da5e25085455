package rdb

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCRC(t *testing.T) {
	require.Equal(t, uint64(0xe9c6d914c4b8d9ca), UpdateCRC(0, []byte("123456789")))
	require.Equal(t, UpdateCRC(0, []byte("123456789")), UpdateCRC(UpdateCRC(0, []byte("1234")), []byte("56789")))
}

// bitwiseCRC takes the definition at its word.
func bitwiseCRC(crc uint64, p []byte) uint64 {
	for _, b := range p {
		crc ^= uint64(b)
		for range 8 {
			crc = crcTimesX(crc)
		}
	}
	return crc
}

func TestCRCOfAnyLength(t *testing.T) {
	rnd := newRand(t)
	p := make([]byte, 2100)
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	for n := range 2000 {
		begun, at := rnd.Uint64(), rnd.IntN(100)
		want := bitwiseCRC(begun, p[at:at+n])
		require.Equal(t, want, UpdateCRC(begun, p[at:at+n]), "%d bytes at %d", n, at)
		require.Equal(t, want, updateCRC(begun, p[at:at+n]), "%d bytes at %d, by tables", n, at)
	}
}

func BenchmarkCRC(b *testing.B) {
	for _, n := range []int{64, 64 << 10} {
		p := make([]byte, n)
		run := func(name string, update func(uint64, []byte) uint64) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					update(0, p)
				}
			})
		}
		run("Best", UpdateCRC)
		run("ByTables", updateCRC)
	}
}
