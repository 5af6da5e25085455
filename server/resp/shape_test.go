package resp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// feedShaped is feed by way of a Shape. It also returns how many commands were recognised, and checks that those of one number differ in
// their first argument only.
func feedShaped(t testing.TB, input []byte, lim *Limits, pieces ...int) (commands [][]string, recognised int, err error) {
	t.Helper()
	var pool Pool
	var r Reader
	var s Shape
	args := make([][]byte, 0, 2*shapeArgs)
	same := map[uint64][]string{}
	for len(input) > 0 {
		piece := len(input)
		if len(pieces) > 0 {
			piece, pieces = min(pieces[0], len(input)), pieces[1:]
		}
		n := copy(r.Space(&pool), input[:piece])
		r.Received(n)
		input = input[n:]
		for {
			from := r.Offset()
			out, known := r.Repeat(&s, args, lim)
			if !known {
				var ok bool
				if out, ok, err = r.Next(args, lim); err != nil {
					return commands, recognised, err
				}
				if !ok {
					break
				}
				if r.Learn(&s, from, out, lim) {
					same[s.Number()] = texts(out)
				}
			}
			command := texts(out)
			commands = append(commands, command)
			if known {
				recognised++
				want := slices.Clone(same[s.Number()])
				require.Len(t, command, len(want))
				if len(want) > 1 {
					want[1] = command[1]
				}
				require.Equal(t, want, command, "shape %d", s.Number())
			}
		}
		r.Compact(&pool)
	}
	return commands, recognised, nil
}

func texts(args [][]byte) (list []string) {
	for _, arg := range args {
		list = append(list, string(arg))
	}
	return list
}

// TestShapeRandom reads commands of few kinds, broken ones and inline ones among them, once with a Shape and once without.
func TestShapeRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	kinds := []func() string{
		func() string { return "*1\r\n$4\r\nPING\r\n" },
		func() string { return "PING\r\n" },
		func() string { return "*0\r\n" },
		func() string { return encode("GET", key(rnd)) },
		func() string { return strings.Replace(encode("GET", key(rnd)), "\r\n", "\rx", 1+rnd.IntN(5)) },
		func() string { return encode("SET", key(rnd), strings.Repeat("v", rnd.IntN(3))) },
		func() string { return encode("CL.THROTTLE", key(rnd), "15", "30", "60", "1") },
		func() string { return encode("CL.THROTTLE", key(rnd), "15", "30", "60") },
		func() string {
			return encode("MSET", strings.Repeat("k ", rnd.IntN(30)), strings.Repeat("v", rnd.IntN(600)))
		},
		func() string { return encode(slices.Repeat([]string{"a"}, 15+rnd.IntN(3))...) },
	}
	for range 800 {
		var input strings.Builder
		some := []int{rnd.IntN(len(kinds)), rnd.IntN(len(kinds)), rnd.IntN(len(kinds))}
		for range 100 {
			input.WriteString(kinds[some[rnd.IntN(len(some))]]())
		}
		if rnd.IntN(4) == 0 { // one byte of the last is wrong
			last := []byte(kinds[some[0]]())
			last[rnd.IntN(len(last))] = "$*x0\r\n\x00"[rnd.IntN(7)]
			input.Write(last)
			input.WriteString(kinds[some[1]]())
		}
		var pieces []int
		for range 50 {
			pieces = append(pieces, 1+rnd.IntN(200))
		}
		lim := smallLimits()
		if rnd.IntN(2) == 0 {
			lim = DefaultLimits()
		}
		want, wantErr := feed(t, []byte(input.String()), lim)
		got, _, err := feedShaped(t, []byte(input.String()), &lim, pieces...)
		require.Equal(t, wantErr, err)
		require.Equal(t, want, got)
	}
}

func encode(words ...string) string {
	var w Writer
	w.Array(len(words))
	for _, word := range words {
		w.BulkString(word)
	}
	return string(w.Bytes())
}

func key(rnd *rand.Rand) string {
	return strings.Repeat("k", rnd.IntN(120)) + fmt.Sprint(rnd.IntN(1000))
}

func TestShapeRecognises(t *testing.T) {
	repeat := func(n int, command func(i int) string) []byte {
		var b strings.Builder
		for i := range n {
			b.WriteString(command(i))
		}
		return []byte(b.String())
	}
	lim := DefaultLimits()
	for name, tt := range map[string]struct {
		command func(i int) string
		want    int // of 100
	}{
		"no argument":        {func(int) string { return encode("PING") }, 100 - learnAfter},
		"keys of any length": {func(i int) string { return encode("GET", strings.Repeat("k", i)) }, 100 - learnAfter},
		"a limiter":          {func(i int) string { return encode("CL.THROTTLE", fmt.Sprint(i), "15", "30", "60", "1") }, 100 - learnAfter},
		"values that differ": {func(i int) string { return encode("SET", "k", fmt.Sprint(1000+i)) }, 0},
		"two kinds in turn":  {func(i int) string { return encode([]string{"GET", "INCR"}[i%2], "k") }, 49},
		"another kind later": {func(i int) string { return encode([]string{"GET", "INCR"}[i/50], "k") }, 100 - 2*learnAfter},
		"too many arguments": {func(i int) string { return encode(slices.Repeat([]string{"a"}, shapeArgs+1)...) }, 0},
		"too long":           {func(i int) string { return encode("SET", "k", strings.Repeat("v", shapeBytes)) }, 0},
		"inline":             {func(i int) string { return "PING\r\n" }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			input := repeat(100, tt.command)
			want, err := feed(t, input, lim)
			require.NoError(t, err)
			got, recognised, err := feedShaped(t, input, &lim)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, tt.want, recognised)
		})
	}
}

// TestShapeKeepsToLimits: what was learned under some limits is no shape under others, and before authentication there is none.
func TestShapeKeepsToLimits(t *testing.T) {
	var pool Pool
	var r Reader
	var s Shape
	wide, narrow := DefaultLimits(), DefaultLimits()
	narrow.Bulk = 2
	before := UnauthenticatedLimits(wide)
	args := make([][]byte, 0, 8)
	next := func(lim *Limits) bool {
		r.Received(copy(r.Space(&pool), encode("GET", "key")))
		out, known := r.Repeat(&s, args, lim)
		if !known {
			from := r.Offset()
			var ok bool
			var err error
			if out, ok, err = r.Next(args, lim); err != nil {
				return false
			}
			require.True(t, ok)
			r.Learn(&s, from, out, lim)
		}
		require.Equal(t, []string{"GET", "key"}, texts(out))
		return known
	}
	require.False(t, next(&before))
	require.False(t, next(&before))
	for range pauseAfter + pauseFor {
		next(&wide)
	}
	require.True(t, next(&wide))
	require.False(t, next(&before))
	require.True(t, next(&wide))
	_, known := r.Repeat(&s, args[:0:2], &wide)
	require.False(t, known, "nothing has come")
	r.Received(copy(r.Space(&pool), encode("GET", "key")))
	_, known = r.Repeat(&s, args[:0:1], &wide)
	require.False(t, known, "there is no room")
	_, known = r.Repeat(&s, args, &narrow)
	require.False(t, known)
	_, _, err := r.Next(args, &narrow)
	require.Error(t, err)
}

func TestShapeAllocatesNothing(t *testing.T) {
	var pool Pool
	var r Reader
	var s Shape
	lim := DefaultLimits()
	args := make([][]byte, 0, 8)
	command := []byte(encode("CL.THROTTLE", "key", "15", "30", "60"))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.Received(copy(r.Space(&pool), command))
		if _, known := r.Repeat(&s, args, &lim); !known {
			from := r.Offset()
			out, _, _ := r.Next(args, &lim)
			r.Learn(&s, from, out, &lim)
		}
		r.Compact(&pool)
	}))
	require.NotZero(t, s.Number())
}

// BenchmarkShape is BenchmarkReader for commands that are recognised.
func BenchmarkShape(b *testing.B) {
	for _, pipeline := range pipelines() {
		b.Run(pipeline.name, func(b *testing.B) {
			lim := DefaultLimits()
			var pool Pool
			var r Reader
			var s Shape
			args := make([][]byte, 0, 1000)
			b.SetBytes(int64(len(pipeline.bytes)))
			b.ReportAllocs()
			for b.Loop() {
				r.Received(copy(r.Space(&pool), pipeline.bytes))
				args = args[:0]
				for ok := true; ok; {
					var known bool
					if args, known = r.Repeat(&s, args, &lim); known {
						continue
					}
					from, begin := r.Offset(), len(args)
					if args, ok, _ = r.Next(args, &lim); ok {
						r.Learn(&s, from, args[begin:], &lim)
					}
				}
				r.Compact(&pool)
			}
		})
	}
}
