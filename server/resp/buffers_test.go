package resp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuffersGrowAndGoBack: a buffer keeps what it holds while it grows, and what is put back is not counted any more.
func TestBuffersGrowAndGoBack(t *testing.T) {
	var b Buffers
	want := bytes.Repeat([]byte("0123456789abcdef"), BufferSize/16)
	buf := b.Get(BufferSize)
	copy(buf, want)
	for _, size := range []int{2 * BufferSize, 100_000, largestKept, largestKept + 1, 5 << 20, 64 << 20} {
		buf = b.Grow(buf, size)
		require.GreaterOrEqual(t, len(buf), size)
		require.Equal(t, len(buf), cap(buf))
		require.Equal(t, want, buf[:len(want)])
		require.EqualValues(t, cap(buf), b.Used())
		buf[len(buf)-1] = 1 // it is there
		require.LessOrEqual(t, b.kept, BufferSize, "it was moved, so that no smaller ones are left")
	}
	b.Put(buf[:3])
	require.Zero(t, b.Used())
}

// TestBuffersKeepLittle: a crowd that leaves leaves no more behind than the bound.
func TestBuffersKeepLittle(t *testing.T) {
	var b Buffers
	var crowd [][]byte
	for range 3 * keptMax / BufferSize {
		crowd = append(crowd, b.Get(BufferSize), b.Get(3*BufferSize))
	}
	for _, buf := range crowd {
		b.Put(buf)
	}
	require.LessOrEqual(t, b.kept, keptMax)
	require.Zero(t, b.Used())
	require.Len(t, b.free[0], smallKept)
	require.NotNil(t, b.Get(3*BufferSize))
	require.Less(t, b.kept, keptMax, "a kept one is used again")
}

// TestDrainedPoolKeepsNothing: what a front had for its next connection goes back when there is none.
func TestDrainedPoolKeepsNothing(t *testing.T) {
	b := Buffers{inHeap: heapBuffers} // the others lie outside
	for range 100 {
		p := Pool{Buffers: &b}
		p.Put(p.Get())
		p.Drain()
	}
	require.Len(t, b.free[0], 1, "each took the same")
	require.Equal(t, heapBuffers, b.inHeap)
}

// TestUnusedBuffersGoBack: what nobody has used between two trims is kept no longer, and what is in use now and then stays.
func TestUnusedBuffersGoBack(t *testing.T) {
	var b Buffers
	p := Pool{Buffers: &b}
	take := func(n int) {
		var crowd [][]byte
		for range n {
			crowd = append(crowd, p.Get(), b.Get(3*BufferSize))
		}
		for i, buf := range crowd {
			if i%2 == 0 {
				p.Put(buf)
			} else {
				b.Put(buf)
			}
		}
	}
	trim := func() {
		b.Trim()
		for range 1 + 2*poolMax/trimAtOnce {
			p.Trim()
		}
	}
	const crowd, few = 500, 3
	take(crowd)
	trim()
	require.Len(t, p.free, crowd, "all were in use")
	require.Len(t, b.free[2], min(crowd, keptMax/(4*BufferSize)))
	take(few)
	trim()
	require.Len(t, p.free, few)
	require.Len(t, b.free[2], few)
	take(few)
	trim()
	require.Len(t, p.free, few, "these are in use")
	for range 3 { // a pool's buffers go by way of b
		trim()
	}
	require.Empty(t, p.free)
	require.Zero(t, b.kept)
	require.Zero(t, b.inHeap)
	take(few)
	require.Len(t, p.free, few)
}

// TestBuffersIgnoreOthers: memory of another origin is nobody's to give away.
func TestBuffersIgnoreOthers(t *testing.T) {
	var b Buffers
	b.Put(nil)
	b.Put(make([]byte, 100))
	b.Put(make([]byte, BufferSize+1))
	require.Zero(t, b.kept)
	require.Zero(t, b.Used())
	var none *Buffers
	none.Put(none.Grow(none.Get(1), 3*BufferSize))
}

// TestCrowdedBuffersRefuseTheLarge: above the limit of all, a reply that is small goes on growing and a large one is cut.
func TestCrowdedBuffersRefuseTheLarge(t *testing.T) {
	var b Buffers
	b.SetLimit(8 << 20)
	hog := b.Get(12 << 20)
	require.True(t, b.Crowded())
	var small, large Writer
	small.SetBuffers(&b)
	large.SetBuffers(&b)
	small.Bulk(make([]byte, 100_000))
	require.False(t, small.Over())
	large.Bulk(make([]byte, 2<<20))
	require.True(t, large.Over())
	b.Put(hog)
	require.False(t, b.Crowded())
}

// TestWriterStopsAtItsLimit: whatever is written, in however many parts, a Writer holds no more than the buffer for its limit, and after it was cut
// it holds nothing and every method is harmless.
func TestWriterStopsAtItsLimit(t *testing.T) {
	const limit = 100_000
	value := make([]byte, 1000)
	for _, tc := range []struct {
		name  string
		write func(w *Writer)
	}{
		{"bulk", func(w *Writer) { w.Bulk(value) }},
		{"one bulk of all", func(w *Writer) { w.Bulk(make([]byte, 2*limit)) }},
		{"bulk string", func(w *Writer) { w.BulkString(string(value)) }},
		{"bulk int", func(w *Writer) { w.BulkInt(12345) }},
		{"int", func(w *Writer) { w.Int(1 << 40) }},
		{"small int", func(w *Writer) { w.Int(1) }},
		{"ints", func(w *Writer) { w.Ints(0, 1<<40, 3) }},
		{"raw", func(w *Writer) { w.Raw(value) }},
		{"OK", func(w *Writer) { w.OK() }},
		{"simple", func(w *Writer) { w.Simple(string(value)) }},
		{"error", func(w *Writer) { w.Error("ERR " + string(value)) }},
		{"array", func(w *Writer) { w.Array(1 << 30) }},
		{"map", func(w *Writer) { w.Map(1 << 20) }},
		{"set", func(w *Writer) { w.Set(1 << 20) }},
		{"push", func(w *Writer) { w.Push(1 << 20) }},
		{"double", func(w *Writer) { w.Double(0.1) }},
		{"long double", func(w *Writer) { w.LongDouble([]byte("0.1")) }},
		{"bool", func(w *Writer) { w.Bool(true) }},
		{"null", func(w *Writer) { w.Null(); w.NullArray() }},
		{"verbatim", func(w *Writer) { w.Verbatim("txt", string(value)) }},
		{"big number", func(w *Writer) { w.BigNumber("123456789012345678901234567890") }},
		{"started", func(w *Writer) { m := w.Start(); w.Bulk(value); w.EndArray(m, 1) }},
		{"started verbatim", func(w *Writer) { m := w.StartVerbatim("txt"); w.Raw(value); w.EndVerbatim(m) }},
		{"started set", func(w *Writer) { m := w.Start(); w.Bulk(value); w.EndSet(m, 12345) }},
	} {
		for _, proto := range []int{RESP2, RESP3} {
			for _, buffers := range []*Buffers{nil, {}} {
				var w Writer
				w.SetBuffers(buffers)
				w.SetProto(proto)
				w.SetLimit(limit)
				m := w.Start()
				for n := 0; n < limit && !w.Over(); n++ {
					tc.write(&w)
					if w.Len() > capacity(limit) {
						t.Fatalf("%s: %d bytes", tc.name, w.Len())
					}
				}
				require.True(t, w.Over(), tc.name)
				tc.write(&w)
				require.Zero(t, w.Cap(), tc.name)
				w.EndMap(m, 3)
				w.Truncate(50_000)
				require.Zero(t, w.Len(), tc.name)
				if buffers != nil {
					require.Zero(t, buffers.Used(), tc.name)
				}
				w.Reset()
				require.False(t, w.Over())
				w.Int(7)
				require.Equal(t, ":7\r\n", string(w.Bytes()))
			}
		}
	}
}
