package rdb

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// textSink keeps a string, as the keyspace does.
type textSink struct {
	ValueSink
	text []byte
	owns bool
}

func (s *textSink) Text(v []byte) error {
	s.text = bytes.Clone(v)
	return nil
}

func (s *textSink) OwnText(v []byte) error {
	s.text, s.owns = v, true
	return nil
}

// bomb is a value of n equal bytes, compressed as far as LZF can.
func bomb(n int) []byte {
	packed := []byte{0, 'x'}
	for ; n > lzfMatch; n -= lzfMatch {
		packed = appendReference(packed, 1, lzfMatch)
	}
	return appendLiterals(packed, bytes.Repeat([]byte{'x'}, n-1))
}

// TestABombIsUnpackedOnce: what a few bytes become takes its own size in memory and no more, in all that is allocated for it.
func TestABombIsUnpackedOnce(t *testing.T) {
	const size = 64 << 20
	packed := bomb(size)
	body := []byte{typeString, 3<<6 | specialLZF}
	for _, length := range []int{len(packed), size} {
		body = binary.BigEndian.AppendUint32(append(body, len32), uint32(length))
	}
	body = append(body, packed...)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, CheckValue(body, &textSink{}))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/4), "a look at it")

	var sink textSink
	require.NoError(t, ReadValue(body, &sink))
	runtime.ReadMemStats(&before)
	require.Less(t, before.TotalAlloc-after.TotalAlloc, uint64(size+size/4), "reading it")
	require.True(t, sink.owns)
	require.Equal(t, bytes.Repeat([]byte{'x'}, size), sink.text)

	require.Error(t, CheckValue(body[:len(body)-1], &textSink{}))
}

// TestLZFCheckKnowsWhatCanBeUnpacked: the check and the unpacking agree, whatever the bytes.
func TestLZFCheckKnowsWhatCanBeUnpacked(t *testing.T) {
	r := newRand(t)
	whole := 0
	for range 100_000 {
		src := make([]byte, r.IntN(12))
		for i := range src {
			src[i] = byte(r.UintN(256) >> r.UintN(8))
		}
		n := r.IntN(40)
		out, good := unpackSlowly(src)
		require.Equal(t, good && len(out) == n, lzfCheck(src, n) == nil, "%x to %d bytes", src, n)
		if !good {
			continue
		}
		whole++
		got, err := lzfDecompress([]byte("before"), src, len(out))
		require.NoError(t, err)
		require.Equal(t, "before"+string(out), string(got))
	}
	require.Greater(t, whole, 1000)
}

// TestReferencesIntoWhatTheyMake repeat it: every length at every distance that is shorter than the longest of them.
func TestReferencesIntoWhatTheyMake(t *testing.T) {
	for distance := 1; distance <= lzfMatch; distance++ {
		text := make([]byte, distance)
		for i := range text {
			text[i] = byte(i * 7)
		}
		for length := lzfMinMatch; length <= lzfMatch; length++ {
			src := appendReference(appendLiterals(nil, text), distance, length)
			want, good := unpackSlowly(src)
			require.True(t, good)
			got, err := lzfDecompress(nil, src, distance+length)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), "%d bytes at %d", length, distance)
		}
	}
}

// BenchmarkBomb unpacks a value that has been compressed as far as LZF can.
func BenchmarkBomb(b *testing.B) {
	const size = 16 << 20
	packed := bomb(size)
	b.SetBytes(size)
	var out []byte
	for b.Loop() {
		var err error
		out, err = lzfDecompress(out[:0], packed, size)
		must(err)
	}
}

// unpackSlowly is LZF byte by byte.
func unpackSlowly(src []byte) (out []byte, good bool) {
	for len(src) > 0 {
		control := int(src[0])
		src = src[1:]
		if control < 32 {
			if len(src) <= control {
				return nil, false
			}
			out, src = append(out, src[:control+1]...), src[control+1:]
			continue
		}
		length := control >> 5
		if length == 7 {
			if len(src) == 0 {
				return nil, false
			}
			length, src = length+int(src[0]), src[1:]
		}
		if len(src) == 0 {
			return nil, false
		}
		distance := control%32*256 + int(src[0]) + 1
		src = src[1:]
		for range length + 2 {
			if distance > len(out) {
				return nil, false
			}
			out = append(out, out[len(out)-distance])
		}
	}
	return out, true
}
