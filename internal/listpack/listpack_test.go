package listpack

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/number"
)

// edges are integers and texts on both sides of where an element's form, or that of its size, changes.
func edges() (texts []string) {
	for shift := range 64 {
		for _, d := range []int64{-1, 0, 1} {
			texts = append(texts, strconv.FormatInt(1<<shift+d, 10), strconv.FormatInt(-1<<shift+d, 10))
		}
	}
	for _, n := range []int{0, 1, 62, 63, 64, 65, 124, 125, 126, 127, 4094, 4095, 4096, 4097, 1<<14 - 8, 1<<14 - 7, 1<<14 - 6, 1<<14 - 5, 1<<21 - 8, 1<<21 - 7, 1<<21 - 6, 1<<21 - 5} {
		texts = append(texts, strings.Repeat("x", n))
	}
	return append(texts, "012", "-0", "+1", "9223372036854775808", "-9223372036854775809", "1 ")
}

// TestForms holds elements to the bytes that Redis gives them.
func TestForms(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tc := range []struct{ text, want string }{
		{"0", "\x00\x01"}, {"127", "\x7f\x01"},
		{"128", "\xc0\x80\x02"}, {"-1", "\xdf\xff\x02"}, {"4095", "\xcf\xff\x02"}, {"-4096", "\xd0\x00\x02"},
		{"4096", "\xf1\x00\x10\x03"}, {"-4097", "\xf1\xff\xef\x03"}, {"32767", "\xf1\xff\x7f\x03"}, {"-32768", "\xf1\x00\x80\x03"},
		{"32768", "\xf2\x00\x80\x00\x04"}, {"-32769", "\xf2\xff\x7f\xff\x04"}, {"8388607", "\xf2\xff\xff\x7f\x04"}, {"-8388608", "\xf2\x00\x00\x80\x04"},
		{"8388608", "\xf3\x00\x00\x80\x00\x05"}, {"-8388609", "\xf3\xff\xff\x7f\xff\x05"}, {"2147483647", "\xf3\xff\xff\xff\x7f\x05"}, {"-2147483648", "\xf3\x00\x00\x00\x80\x05"},
		{"2147483648", "\xf4\x00\x00\x00\x80\x00\x00\x00\x00\x09"}, {"-9223372036854775808", "\xf4\x00\x00\x00\x00\x00\x00\x00\x80\x09"},
		{"", "\x80\x01"}, {"a", "\x81a\x02"}, {"-0", "\x82-0\x03"}, {x(63), "\xbf" + x(63) + "\x40"},
		{x(64), "\xe0\x40" + x(64) + "\x42"}, {x(125), "\xe0\x7d" + x(125) + "\x7f"}, {x(126), "\xe0\x7e" + x(126) + "\x01\x80"},
		{x(4095), "\xef\xff" + x(4095) + "\x20\x81"}, {x(4096), "\xf0\x00\x10\x00\x00" + x(4096) + "\x20\x85"},
		{x(1<<14 - 7), "\xf0\xf9\x3f\x00\x00" + x(1<<14-7) + "\x7f\xfe"}, {x(1<<14 - 6), "\xf0\xfa\x3f\x00\x00" + x(1<<14-6) + "\x00\xff\xff"},
	} {
		size := headSize + len(tc.want) + 1
		want := string([]byte{byte(size), byte(size >> 8), 0, 0, 1, 0}) + tc.want + "\xff"
		require.True(t, want == string(New().AppendText([]byte(tc.text))), "%.30q", tc.text)
	}
}

// TestBothWriters: a Pack that grows and a Writer make the same bytes, which a Reader takes and which can be walked through both ways.
func TestBothWriters(t *testing.T) {
	var w Writer
	for range 2 { // in the same memory
		w.Reset()
		p := New()
		require.Equal(t, headSize, p.First())
		require.Equal(t, p.First(), p.End())
		for _, text := range edges() {
			w.Text([]byte(text))
			p = p.AppendText([]byte(text))
		}
		for shift := range 64 {
			w.Int(-1 << shift)
			p = p.AppendInt(-1 << shift)
		}
		require.Equal(t, len(edges())+64, w.Len())
		require.True(t, bytes.Equal(w.Bytes(), p))
		want := edges()
		for shift := range 64 {
			want = append(want, strconv.FormatInt(-1<<shift, 10))
		}
		requireHolds(t, want, p)
	}
}

// requireHolds looks at a listpack in all ways.
func requireHolds(t *testing.T, want []string, p Pack) {
	t.Helper()
	var digits [number.IntMax]byte
	r, err := Open(p)
	require.NoError(t, err)
	if len(want) < countMany {
		require.Equal(t, len(want), r.Announced())
	} else {
		require.Equal(t, -1, r.Announced())
	}
	at := p.First()
	for i, text := range want {
		require.True(t, r.More())
		e, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, i+1, r.Seen())
		require.True(t, text == string(e.Bytes(&digits)), "%.30q", text)
		require.True(t, text == string(p.Text(at, digits[:])), "%.30q", text)
		n, isInt := number.ParseInt([]byte(text))
		require.Equal(t, isInt, e.IsInt, "%.30q", text)
		if isInt {
			require.Equal(t, n, e.N)
			require.Equal(t, n, p.Int(at))
		}
		at = p.Next(at)
	}
	require.False(t, r.More())
	require.NoError(t, r.Close())
	require.Equal(t, p.End(), at)
	require.Equal(t, at, p.Skip(p.First(), len(want)))
	for i := len(want) - 1; i >= 0; i-- {
		at = p.Previous(at)
		require.True(t, want[i] == string(p.Text(at, digits[:])), "%.30q", want[i])
	}
	require.Equal(t, p.First(), at)
}

func TestReplaceInt(t *testing.T) {
	before := []string{"7", "-5000", "text", strings.Repeat("x", 200), "9223372036854775807"}
	for i := range before {
		for _, n := range []int64{0, 127, 128, -4096, 4096, math.MaxInt16 + 1, 1 << 23, math.MinInt64} {
			p, want := New(), New()
			after := append([]string{}, before...)
			after[i] = strconv.FormatInt(n, 10)
			for j := range before {
				p = p.AppendText([]byte(before[j]))
				want = want.AppendText([]byte(after[j]))
			}
			p = p.ReplaceInt(p.Skip(p.First(), i), n)
			require.Equal(t, want, p)
			requireHolds(t, after, p)
		}
	}
}

// TestManyElements: the head can say 65534 at most, and from then on says that it does not know.
func TestManyElements(t *testing.T) {
	var w Writer
	w.Reset()
	p := New()
	var want []string
	for i := range countMany + 2 {
		if i >= countMany-1 {
			whole := w
			require.True(t, bytes.Equal(whole.Bytes(), p))
			r, err := Open(p)
			require.NoError(t, err)
			require.Equal(t, map[bool]int{true: i, false: -1}[i < countMany], r.Announced())
		}
		w.Text([]byte("x"))
		p = p.AppendText([]byte("x"))
		want = append(want, "x")
	}
	p = p.ReplaceInt(p.First(), 1000)
	want[0] = "1000"
	requireHolds(t, want, p)
}

// framed is a listpack of a number of elements with these bytes.
func framed(count uint16, elements string) []byte {
	b := append([]byte{0, 0, 0, 0, byte(count), byte(count >> 8)}, elements...)
	return finishFrame(append(b, endMark))
}

func finishFrame(b []byte) []byte {
	b[0], b[1], b[2], b[3] = byte(len(b)), byte(len(b)>>8), byte(len(b)>>16), byte(len(b)>>24)
	return b
}

// readAll reads bytes as a listpack and returns the texts of its elements.
func readAll(b []byte) (texts []string, err error) {
	r, err := Open(b)
	if err != nil {
		return nil, err
	}
	var digits [number.IntMax]byte
	for r.More() {
		e, err := r.Next()
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(e.Bytes(&digits)))
	}
	return texts, r.Close()
}

// TestReaderRefuses what is no listpack: what frames it, each form of an element cut short, texts that are longer than what is there,
// and sizes that do not fit.
func TestReaderRefuses(t *testing.T) {
	bad := map[string][]byte{
		"nothing":                    {},
		"a head":                     {6, 0, 0, 0, 0, 0},
		"no end":                     {7, 0, 0, 0, 0, 0, 0xfe},
		"a size too small":           {6, 0, 0, 0, 0, 0, 0xff},
		"a size too large":           {8, 0, 0, 0, 0, 0, 0xff},
		"a size far too large":       {7, 0, 0, 0xff, 0, 0, 0xff},
		"one element too few":        framed(2, "\x01\x01"),
		"one element too many":       framed(1, "\x01\x01\x01\x01"),
		"elements that are not said": framed(0, "\x01\x01"),

		"13 bits cut":             framed(1, "\xc0"),
		"a short text cut":        framed(1, "\x82a"),
		"a text's length cut":     framed(1, "\xe0"),
		"a text cut":              framed(1, "\xe0\x02a"),
		"a long length cut":       framed(1, "\xf0\x01\x00\x00"),
		"a long text cut":         framed(1, "\xf0\x02\x00\x00\x00a"),
		"a text of 4 GiB":         framed(1, "\xf0\xff\xff\xff\xffa\x07"),
		"16 bits cut":             framed(1, "\xf1\x01"),
		"24 bits cut":             framed(1, "\xf2\x01\x01"),
		"32 bits cut":             framed(1, "\xf3\x01\x01\x01"),
		"64 bits cut":             framed(1, "\xf4\x01\x01\x01\x01\x01\x01\x01"),
		"a size that is missing":  framed(1, "\x01"),
		"a wrong size":            framed(1, "\x01\x02"),
		"a size of 0":             framed(1, "\x01\x00"),
		"a size that goes on":     framed(1, "\x01\x81"),
		"a size of two bytes cut": framed(1, "\xe0\x7e"+strings.Repeat("x", 126)+"\x01"),
		"a size that ends early":  framed(1, "\xe0\x7e"+strings.Repeat("x", 126)+"\x01\x00"),
		"a size that never ends":  framed(1, "\xe0\x7e"+strings.Repeat("x", 126)+"\x81\x80"),
		"a wrong size of two":     framed(1, "\xe0\x7e"+strings.Repeat("x", 126)+"\x01\x81"),
	}
	for first := 0xf5; first <= 0xff; first++ {
		bad["first byte "+strconv.Itoa(first)] = framed(1, string([]byte{byte(first)})+"\x01\x01\x01\x01\x01\x01\x01\x01\x09")
	}
	for name, b := range bad {
		_, err := readAll(b)
		require.Equal(t, ErrInvalid, err, name)
	}
	whole := New()
	for _, text := range []string{"1", "-1", "300", "-70000", "8388608", "9223372036854775807", "a", strings.Repeat("x", 64), strings.Repeat("x", 200)} {
		whole = whole.AppendText([]byte(text))
	}
	for n := range whole { // and any text cut anywhere
		_, err := readAll(whole[:n])
		require.Equal(t, ErrInvalid, err)
		if n > headSize {
			_, err = readAll(finishFrame(append(bytes.Clone(whole[:n-1]), endMark)))
			require.Equal(t, ErrInvalid, err, "%d bytes", n)
		}
	}
	r, err := Open(New())
	require.NoError(t, err)
	_, err = r.Next()
	require.Equal(t, ErrInvalid, err, "behind the last element")
}

func TestCountingElements(t *testing.T) {
	p := New().AppendInt(3).AppendInt(-1).AppendInt(1000).AppendText([]byte("three")).AppendInt(5)
	open := func(skip int) *Reader {
		r, err := Open(p)
		require.NoError(t, err)
		require.NoError(t, r.Skip(skip))
		require.Equal(t, skip, r.Seen())
		return &r
	}
	for skip, want := range []int{3, -1, -1, -1, 5} {
		n, err := open(skip).NextCount()
		if want < 0 {
			require.Equal(t, ErrInvalid, err, "element %d", skip)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.Equal(t, ErrInvalid, open(0).Skip(6))
}

func TestListpacksAllocateNothing(t *testing.T) {
	text, long := []byte("a text"), bytes.Repeat([]byte("x"), 300)
	room := make(Pack, 0, 1<<10)
	var w Writer
	var digits [number.IntMax]byte
	run := func() {
		p := append(room, New()...).AppendText(text).AppendInt(1).AppendText(long).AppendInt(math.MinInt64)
		p = p.ReplaceInt(p.Skip(p.First(), 1), 1_700_000_000_000_000_000)
		for at := p.First(); at < p.End(); at = p.Next(at) {
			p.Text(at, digits[:])
		}
		w.Reset()
		w.Text(text)
		w.Int(1)
		r, err := Open(w.Bytes())
		for err == nil && r.More() {
			var e Element
			if e, err = r.Next(); err == nil {
				e.Bytes(&digits)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

// FuzzReader reads anything. What it takes to the end is a Pack: the same elements, forward and backward, without a check.
func FuzzReader(f *testing.F) {
	p := New()
	for _, text := range edges() {
		if len(text) < 200 {
			p = p.AppendText([]byte(text))
			f.Add([]byte(New().AppendText([]byte(text))))
		}
	}
	f.Add([]byte(p))
	f.Add(framed(countMany, "\xc0\x01\x02\x81\x31\x02")) // forms that are longer than they need be
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := readAll(b)
		if err != nil {
			require.Equal(t, ErrInvalid, err)
			return
		}
		var digits [number.IntMax]byte
		p := Pack(b)
		at := p.First()
		for _, text := range texts {
			require.Equal(t, text, string(p.Text(at, digits[:])))
			at = p.Next(at)
		}
		require.Equal(t, p.End(), at)
		for i := len(texts) - 1; i >= 0; i-- {
			at = p.Previous(at)
			require.Equal(t, texts[i], string(p.Text(at, digits[:])))
		}
		require.Equal(t, p.First(), at)
	})
}

// FuzzRoundTrip writes the lines of a text, each repeated as often as its first byte says, and replaces one of them.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("\n12\n-5\n012\nx\n"), uint(1), int64(300))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n9223372036854775807"), uint(0), int64(-1))
	f.Fuzz(func(t *testing.T, b []byte, replaced uint, n int64) {
		var w Writer
		w.Reset()
		p := New()
		var want []string
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if len(line) > 0 {
				line = bytes.Repeat(line, int(line[0]))
			}
			w.Text(line)
			p = p.AppendText(line)
			want = append(want, string(line))
		}
		require.True(t, bytes.Equal(w.Bytes(), p))
		requireHolds(t, want, p)
		i := int(replaced % uint(len(want)))
		p = p.ReplaceInt(p.Skip(p.First(), i), n)
		want[i] = strconv.FormatInt(n, 10)
		requireHolds(t, want, p)
	})
}
