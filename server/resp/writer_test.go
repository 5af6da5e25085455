package resp

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

func TestWriter(t *testing.T) {
	for _, tc := range []struct {
		name         string
		write        func(w *Writer)
		resp2, resp3 string
	}{
		{"OK", (*Writer).OK, "+OK\r\n", ""},
		{"pong", (*Writer).Pong, "+PONG\r\n", ""},
		{"queued", (*Writer).Queued, "+QUEUED\r\n", ""},
		{"zero", (*Writer).Zero, ":0\r\n", ""},
		{"one", (*Writer).One, ":1\r\n", ""},
		{"empty bulk", (*Writer).EmptyBulk, "$0\r\n\r\n", ""},
		{"empty array", (*Writer).EmptyArray, "*0\r\n", ""},
		{"null", (*Writer).Null, "$-1\r\n", "_\r\n"},
		{"null array", (*Writer).NullArray, "*-1\r\n", "_\r\n"},
		{"int", func(w *Writer) { w.Int(7); w.Int(-1); w.Int(1234567) }, ":7\r\n:-1\r\n:1234567\r\n", ""},
		{"ints of all lengths", func(w *Writer) {
			for _, n := range []int64{9, 10, 99, 100, 101, 999, 1000, 1010, 9999, 10000, -2, -10} {
				w.Int(n)
			}
		}, ":9\r\n:10\r\n:99\r\n:100\r\n:101\r\n:999\r\n:1000\r\n:1010\r\n:9999\r\n:10000\r\n:-2\r\n:-10\r\n", ""},
		{"ints at once", func(w *Writer) { w.Ints(0, -1, 1234567, math.MinInt64, 42); w.Ints() }, ":0\r\n:-1\r\n:1234567\r\n:-9223372036854775808\r\n:42\r\n", ""},
		{"int extremes", func(w *Writer) { w.Int(math.MinInt64); w.Int(math.MaxInt64) }, ":-9223372036854775808\r\n:9223372036854775807\r\n", ""},
		{"bulk", func(w *Writer) { w.Bulk([]byte("a\r\nb")); w.Bulk(nil) }, "$4\r\na\r\nb\r\n$0\r\n\r\n", ""},
		{"bulk string", func(w *Writer) { w.BulkString("0123456789") }, "$10\r\n0123456789\r\n", ""},
		{"bulk int", func(w *Writer) { w.BulkInt(math.MinInt64); w.BulkInt(0) }, "$20\r\n-9223372036854775808\r\n$1\r\n0\r\n", ""},
		{"simple", func(w *Writer) { w.Simple("a\r\nb") }, "+a  b\r\n", ""},
		{"error", func(w *Writer) { w.Error("ERR a\r\nb") }, "-ERR a  b\r\n", ""},
		{"array", func(w *Writer) { w.Array(0); w.Array(12) }, "*0\r\n*12\r\n", ""},
		{"map", func(w *Writer) { w.Map(0); w.Map(7) }, "*0\r\n*14\r\n", "%0\r\n%7\r\n"},
		{"set", func(w *Writer) { w.Set(0); w.Set(17) }, "*0\r\n*17\r\n", "~0\r\n~17\r\n"},
		{"push", func(w *Writer) { w.Push(3) }, "*3\r\n", ">3\r\n"},
		{"double", func(w *Writer) { w.Double(3); w.Double(0.1); w.Double(-2.5e300) }, "$1\r\n3\r\n$19\r\n0.10000000000000001\r\n$24\r\n-2.5000000000000001e+300\r\n", ",3\r\n,0.10000000000000001\r\n,-2.5000000000000001e+300\r\n"},
		{"infinities", func(w *Writer) { w.Double(math.Inf(1)); w.Double(math.Inf(-1)) }, "$3\r\ninf\r\n$4\r\n-inf\r\n", ",inf\r\n,-inf\r\n"},
		{"negative zero", func(w *Writer) { w.Double(math.Copysign(0, -1)) }, "$2\r\n-0\r\n", ",-0\r\n"},
		{"not a number", func(w *Writer) { w.Double(math.Copysign(math.NaN(), 1)); w.Double(math.Copysign(math.NaN(), -1)) }, "$3\r\nnan\r\n$4\r\n-nan\r\n", ",nan\r\n,-nan\r\n"},
		{"bool", func(w *Writer) { w.Bool(true); w.Bool(false) }, ":1\r\n:0\r\n", "#t\r\n#f\r\n"},
		{"verbatim", func(w *Writer) { w.Verbatim("txt", "hello") }, "$5\r\nhello\r\n", "=9\r\ntxt:hello\r\n"},
		{"verbatim formats", func(w *Writer) { w.Verbatim("a", "x"); w.Verbatim("long", "") }, "$1\r\nx\r\n$0\r\n\r\n", "=5\r\na  :x\r\n=4\r\nlon:\r\n"},
		{"big number", func(w *Writer) { w.BigNumber("123456789012345678901234567890") }, "$30\r\n123456789012345678901234567890\r\n", "(123456789012345678901234567890\r\n"},
		{"raw", func(w *Writer) { w.Raw([]byte(":1\r\n")) }, ":1\r\n", ""},
		{"deferred array", func(w *Writer) { m := w.Start(); w.One(); w.EndArray(m, 1) }, "*1\r\n:1\r\n", ""},
		{"deferred empty array", func(w *Writer) { w.EndArray(w.Start(), 0); w.One() }, "*0\r\n:1\r\n", ""},
		{"deferred map", func(w *Writer) { m := w.Start(); w.One(); w.Zero(); w.EndMap(m, 1) }, "*2\r\n:1\r\n:0\r\n", "%1\r\n:1\r\n:0\r\n"},
		{"deferred verbatim", func(w *Writer) {
			m := w.StartVerbatim("txt")
			w.Raw([]byte("hel"))
			w.Raw([]byte("lo"))
			w.EndVerbatim(m)
		}, "$5\r\nhello\r\n", "=9\r\ntxt:hello\r\n"},
		{"deferred verbatim of none", func(w *Writer) { w.EndVerbatim(w.StartVerbatim("txt")) }, "$0\r\n\r\n", "=4\r\ntxt:\r\n"},
		{"deferred set", func(w *Writer) { m := w.Start(); w.One(); w.EndSet(m, 1) }, "*1\r\n:1\r\n", "~1\r\n:1\r\n"},
		{"deferred inside deferred", func(w *Writer) {
			outer := w.Start()
			inner := w.Start()
			w.One()
			w.EndSet(inner, 1)
			w.Zero()
			w.EndArray(outer, 2)
			w.OK()
		}, "*2\r\n*1\r\n:1\r\n:0\r\n+OK\r\n", "*2\r\n~1\r\n:1\r\n:0\r\n+OK\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.resp3 == "" {
				tc.resp3 = tc.resp2
			}
			var w Writer
			require.Equal(t, RESP2, w.Proto())
			tc.write(&w)
			require.Equal(t, tc.resp2, string(w.Bytes()))
			w.Reset()
			w.SetProto(RESP3)
			require.Equal(t, RESP3, w.Proto())
			tc.write(&w)
			require.Equal(t, tc.resp3, string(w.Bytes()))
			w.SetProto(RESP2)
			require.Equal(t, RESP2, w.Proto())
		})
	}
}

func TestWriterEverySmallNumber(t *testing.T) {
	for n := int64(-1100); n <= 11_000; n++ {
		line := strconv.FormatInt(n, 10) + "\r\n"
		var w Writer
		w.Int(n)
		w.Ints(n, n)
		w.Array(int(max(n, 0)))
		require.True(t, strings.HasPrefix(string(w.Bytes()), ":"+line+":"+line+":"+line+"*"), n)
		if n >= 0 {
			require.True(t, strings.HasSuffix(string(w.Bytes()), "*"+line), n)
		}
	}
}

func TestWriterDeferredOfAnySize(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 99, 100, 999, 1000, 12345, 1_000_000} {
		var want, got Writer
		want.OK()
		want.Array(n)
		got.OK()
		m := got.Start()
		for i := range n {
			want.Int(int64(i))
			got.Int(int64(i))
		}
		got.EndArray(m, n)
		want.Pong()
		got.Pong()
		require.True(t, string(want.Bytes()) == string(got.Bytes()), n)
	}
	var w Writer
	require.Panics(t, func() { w.EndArray(w.Start(), -1) })
	require.Panics(t, func() { w.EndMap(w.Start(), math.MaxInt32) })
}

func TestWriterBuffer(t *testing.T) {
	var w Writer
	w.SetBuffer(make([]byte, 0, 100))
	w.OK()
	length := w.Len()
	w.Error("ERR x")
	w.Truncate(length)
	require.Equal(t, "+OK\r\n", string(w.Bytes()))
	require.Equal(t, 100, w.Cap())
	w.Reset()
	require.Zero(t, w.Len())
	require.Equal(t, 100, cap(w.Bytes()))
	w.SetBuffer([]byte(":5\r\n"))
	w.OK()
	require.Equal(t, ":5\r\n+OK\r\n", string(w.Bytes()))
	w.SetBuffer(nil)
	require.Nil(t, w.Bytes())
}

func TestWriterAllocatesNothing(t *testing.T) {
	value, text := []byte("0123456789abcdef"), strings.Repeat("x", 100)
	for _, proto := range []int{RESP2, RESP3} {
		var w Writer
		w.SetProto(proto)
		w.SetBuffer(make([]byte, 0, 4<<10))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			w.Reset()
			outer := w.Start()
			w.OK()
			w.Int(1234567)
			w.Bulk(value)
			w.BulkString(text)
			w.BulkInt(-1234567890123)
			w.Simple(text)
			w.Error("ERR syntax error")
			w.Map(3)
			w.Double(0.1)
			w.Double(1e300)
			w.Verbatim("txt", text)
			w.Null()
			w.EndArray(outer, 11)
		}), proto)
	}
}

// BenchmarkWriter shows what the replies cost through redcon's functions, and
// why integers in bulk strings do not go through them.
func BenchmarkWriter(b *testing.B) {
	value := []byte("0123456789abcdef")
	var w Writer
	var turn int64
	for _, bench := range []struct {
		name  string
		write func()
	}{
		{"Bulk", func() { w.Bulk(value) }},
		{"CL.THROTTLE", func() {
			turn++
			w.Array(5)
			w.Ints(0, 1001, turn%1001, -1, turn%61)
		}},
		{"CL.THROTTLE by redcon", func() {
			turn++
			buf := redcon.AppendArray(w.Bytes(), 5)
			for _, n := range []int64{0, 1001, turn % 1001, -1, turn % 61} {
				buf = redcon.AppendInt(buf, n)
			}
			w.SetBuffer(buf)
		}},
		{"BulkInt", func() { w.BulkInt(1234567890123) }},
		{"BulkInt by redcon", func() { w.SetBuffer(redcon.AppendBulkInt(w.Bytes(), 1234567890123)) }},
		{"Double", func() { w.Double(1234.5678) }},
		{"Double of a whole number", func() { w.Double(1234567890123) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.Reset()
				bench.write()
			}
		})
	}
}
