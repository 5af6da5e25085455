package resp

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// feed gives a new Reader the input in pieces of the given lengths, the rest
// at once, and returns every command and the error. It stops at an error, as a
// server does.
func feed(t testing.TB, input []byte, lim Limits, pieces ...int) (commands [][]string, err error) {
	t.Helper()
	return feedFrom(t, new(Pool), input, lim, pieces...)
}

// feedFrom is feed with a Pool that several calls share.
func feedFrom(t testing.TB, pool *Pool, input []byte, lim Limits, pieces ...int) (commands [][]string, err error) {
	t.Helper()
	var r Reader
	for len(input) > 0 || len(pieces) > 0 {
		piece := input
		if len(pieces) > 0 {
			piece, pieces = input[:min(pieces[0], len(input))], pieces[1:]
		}
		input = input[len(piece):]
		for len(piece) > 0 {
			n := copy(r.Space(pool), piece)
			r.Received(n)
			requireBounded(t, &r)
			piece = piece[n:]
			more, err := drain(&r, &lim)
			commands = append(commands, more...)
			if err != nil {
				_, again := drain(&r, &lim)
				require.Equal(t, err, again, "the error stays")
				return commands, err
			}
			r.Compact(pool)
			requireBounded(t, &r)
		}
	}
	return commands, nil
}

// drain returns the commands that are complete.
func drain(r *Reader, lim *Limits) (commands [][]string, err error) {
	for {
		args, ok, err := r.Next(nil, lim)
		if err != nil || !ok {
			return commands, err
		}
		command := make([]string, len(args))
		for i, arg := range args {
			command[i] = string(arg)
		}
		commands = append(commands, command)
	}
}

// requireBounded checks the promise that Space makes about memory.
func requireBounded(t testing.TB, r *Reader) {
	if bound := max(BufferSize, spareMax*(r.Buffered()+1)); len(r.buf) > bound {
		t.Helper()
		t.Fatalf("a buffer of %d bytes holds %d, so that at most %d are allowed", len(r.buf), r.Buffered(), bound)
	}
}

// ones returns n pieces of one byte.
func ones(n int) []int {
	pieces := make([]int, n)
	for i := range pieces {
		pieces[i] = 1
	}
	return pieces
}

// smallLimits keep the inputs of the tests short.
func smallLimits() Limits {
	return Limits{Inline: 64, Multibulk: 100, Bulk: 1000, Query: 4000}
}

func TestReaderProtocol(t *testing.T) {
	const ping = "*1\r\n$4\r\nPING\r\n"
	digits := strings.Repeat("1", 100)
	unauthenticated := UnauthenticatedLimits(DefaultLimits())
	for _, tc := range []struct {
		name  string
		input string
		want  string // commands as %q, one after the other
		err   string
		lim   Limits // smallLimits unless set
	}{
		{name: "nothing"},
		{name: "one command", input: ping, want: `["PING"]`},
		{name: "pipeline", input: ping + "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" + ping, want: `["PING"]["GET" "k"]["PING"]`},
		{name: "binary argument", input: "*2\r\n$4\r\nECHO\r\n$5\r\n\x00\r\n\xff*\r\n", want: `["ECHO" "\x00\r\n\xff*"]`},
		{name: "empty argument", input: "*1\r\n$0\r\n\r\n", want: `[""]`},
		{name: "several digits", input: "*12\r\n" + strings.Repeat("$10\r\n0123456789\r\n", 12), want: fmt.Sprintf("%q", strings.Fields(strings.Repeat("0123456789 ", 12)))},
		{name: "bytes behind an argument are not looked at", input: "*1\rX$4\rYPINGZZ" + ping, want: `["PING"]["PING"]`},

		{name: "incomplete count", input: "*1"},
		{name: "incomplete count line", input: "*1\r"},
		{name: "incomplete length", input: ping + "*1\r\n$4", want: `["PING"]`},
		{name: "incomplete length line", input: "*1\r\n$4\r"},
		{name: "incomplete argument", input: "*1\r\n$4\r\nPIN"},
		{name: "incomplete end of argument", input: "*1\r\n$4\r\nPING\r"},
		{name: "argument missing", input: "*2\r\n$4\r\nPING\r\n"},
		{name: "incomplete inline", input: "PING"},

		{name: "count 0 is skipped", input: "*0\r\n" + ping, want: `["PING"]`},
		{name: "negative count is skipped", input: "*-10\r\n" + ping, want: `["PING"]`},
		{name: "least count is skipped", input: "*-9223372036854775808\r\n" + ping, want: `["PING"]`},
		{name: "count below the least", input: "*-9223372036854775809\r\n", err: "invalid multibulk length"},
		{name: "count empty", input: "*\r\n", err: "invalid multibulk length"},
		{name: "count minus", input: "*-\r\n", err: "invalid multibulk length"},
		{name: "count minus zero", input: "*-0\r\n", err: "invalid multibulk length"},
		{name: "count plus", input: "*+1\r\n", err: "invalid multibulk length"},
		{name: "count with leading zero", input: "*01\r\n", err: "invalid multibulk length"},
		{name: "count with space", input: "* 1\r\n", err: "invalid multibulk length"},
		{name: "count no number", input: "*1x\r\n", err: "invalid multibulk length"},
		{name: "count at the limit", input: "*100\r\n" + strings.Repeat("$0\r\n\r\n", 100), want: fmt.Sprintf("%q", make([]string, 100))},
		{name: "count above the limit", input: "*101\r\n", err: "invalid multibulk length"},
		{name: "count of Redis's test suite", input: "*3000000000\r\n", err: "invalid multibulk length"},
		{name: "count largest", input: "*9223372036854775807\r\n", err: "invalid multibulk length"},
		{name: "count of 20 digits", input: "*18446744073709551617\r\n", err: "invalid multibulk length"},
		{name: "count of 65 bytes waits", input: "*" + digits[:63]},
		{name: "count of too many bytes", input: "*" + digits[:64], err: "too big mbulk count string"},
		{name: "NUL hides the end of the count", input: "*1\x00\r\n" + ping},
		{name: "NUL flood behind a count", input: "*\x00" + digits, err: "too big mbulk count string"},

		{name: "no dollar", input: "*1\r\nfoo\r\n", err: "expected '$', got 'f'"},
		{name: "no dollar in the second argument", input: "*2\r\n$1\r\na\r\n:1\r\n", err: "expected '$', got ':'"},
		{name: "no dollar but an empty line", input: "*1\r\n\r\n", err: "expected '$', got '\r'"},
		{name: "no dollar but a line feed", input: "*1\r\n\n\r\n", err: "expected '$', got '\n'"},
		{name: "no dollar but a high byte", input: "*1\r\n\xff\r\n", err: "expected '$', got '\xff'"},
		{name: "no dollar waits for the line", input: "*1\r\nfoo"},
		{name: "length empty", input: "*1\r\n$\r\n", err: "invalid bulk length"},
		{name: "length negative", input: "*1\r\n$-10\r\n", err: "invalid bulk length"},
		{name: "length minus zero", input: "*1\r\n$-0\r\n", err: "invalid bulk length"},
		{name: "length with leading zero", input: "*1\r\n$04\r\nPING\r\n", err: "invalid bulk length"},
		{name: "length no number", input: "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", err: "invalid bulk length"},
		{name: "length at the limit", input: "*1\r\n$1000\r\n" + strings.Repeat("x", 1000) + "\r\n", want: fmt.Sprintf("%q", []string{strings.Repeat("x", 1000)})},
		{name: "length above the limit", input: "*1\r\n$1001\r\n", err: "invalid bulk length"},
		{name: "length of Redis's test suite", input: "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", err: "invalid bulk length"},
		{name: "length largest", input: "*1\r\n$9223372036854775807\r\n", err: "invalid bulk length"},
		{name: "length largest without a limit", input: "*1\r\n$9223372036854775807\r\nx", lim: Limits{Inline: 64, Multibulk: 1, Bulk: math.MaxInt, Query: math.MaxInt}},
		{name: "length of 18 digits without a limit", input: "*1\r\n$999999999999999999\r\nx", lim: Limits{Inline: 64, Multibulk: 1, Bulk: math.MaxInt, Query: math.MaxInt}},
		{name: "length of too many bytes", input: "*1\r\n$" + digits[:64], err: "too big bulk count string"},
		{name: "NUL flood behind a length", input: "*1\r\n$\x00" + digits, err: "too big bulk count string"},
		{name: "NUL for a dollar waits", input: "*1\r\n\x00\r\n"},
		{name: "commands before an error come first", input: ping + "*x\r\n", want: `["PING"]`, err: "invalid multibulk length"},

		{name: "10 arguments unauthenticated", input: "*10\r\n" + strings.Repeat("$1\r\na\r\n", 10), want: fmt.Sprintf("%q", strings.Split("aaaaaaaaaa", "")), lim: unauthenticated},
		{name: "11 arguments unauthenticated", input: "*11\r\n", err: "unauthenticated multibulk length", lim: unauthenticated},
		{name: "invalid count unauthenticated", input: "*9999999\r\n", err: "invalid multibulk length", lim: unauthenticated},
		{name: "empty command unauthenticated", input: "*-3\r\n*0\r\n" + ping, want: `["PING"]`, lim: unauthenticated},
		{name: "16 KiB argument unauthenticated", input: "*1\r\n$16384\r\n" + strings.Repeat("x", 16384) + "\r\n", want: fmt.Sprintf("%q", []string{strings.Repeat("x", 16384)}), lim: unauthenticated},
		{name: "larger argument unauthenticated", input: "*1\r\n$16385\r\n", err: "unauthenticated bulk length", lim: unauthenticated},
		{name: "invalid length unauthenticated", input: "*1\r\n$999999999\r\n", err: "invalid bulk length", lim: unauthenticated},

		{name: "inline", input: "PING\r\n", want: `["PING"]`},
		{name: "inline with a bare line feed", input: "PING\n", want: `["PING"]`},
		{name: "inline words", input: " SET  k\tv \r\n", want: `["SET" "k" "v"]`},
		{name: "inline between multibulk", input: ping + "GET k\n" + ping, want: `["PING"]["GET" "k"]["PING"]`},
		{name: "blank lines are skipped", input: "\r\n\n  \r\n\v\f\r\nPING\n", want: `["PING"]`},
		{name: "vertical tab inside a word", input: "ECHO a\vb\fc\n", want: `["ECHO" "a\vb\fc"]`},
		{name: "carriage return between words", input: "ECHO a\rb\r\r\n", want: `["ECHO" "a" "b"]`},
		{name: "dollar is inline", input: "$4\r\nPING\r\n", want: `["$4"]["PING"]`},
		{name: "double quotes", input: `SET "a b" "" ` + "\n", want: `["SET" "a b" ""]`},
		{name: "escapes", input: `ECHO "\x41\xfF\n\r\t\b\a\q\\\""` + "\n", want: `["ECHO" "A\xff\n\r\t\b\aq\\\""]`},
		{name: "no hexadecimal digits", input: `ECHO "\xzz\x4" "\x"` + "\n", want: `["ECHO" "xzzx4" "x"]`},
		{name: "single quotes", input: `ECHO 'it\'s' '\n' 'a"b' '\'` + "'\n", want: `["ECHO" "it's" "\\n" "a\"b" "'"]`},
		{name: "quotes behind a word", input: `ECHO foo"bar" foo'bar'` + "\n", want: `["ECHO" "foobar" "foobar"]`},
		{name: "double quotes without end", input: "ECHO \"abc\n", err: "unbalanced quotes in request"},
		{name: "double quotes ending in a backslash", input: "ECHO \"abc\\\n", err: "unbalanced quotes in request"},
		{name: "single quotes without end", input: "ECHO 'abc\r\n", err: "unbalanced quotes in request"},
		{name: "single quote escaped without end", input: "ECHO 'abc\\'\n", err: "unbalanced quotes in request"},
		{name: "word behind double quotes", input: "ECHO \"a\"b\n", err: "unbalanced quotes in request"},
		{name: "word behind single quotes", input: "ECHO 'a'b\n", err: "unbalanced quotes in request"},
		{name: "longest inline", input: digits[:64] + "\n", want: fmt.Sprintf("%q", []string{digits[:64]})},
		{name: "inline too long", input: digits[:65] + "\n", err: "too big inline request"},
		{name: "NUL hides the end of the line", input: "PI\x00NG\r\nPING\r\n"},
		{name: "NUL flood", input: "\x00" + digits, err: "too big inline request"},

		{name: "command at the query limit", input: "*4\r\n" + strings.Repeat("$10\r\n0123456789\r\n", 4), want: `["0123456789" "0123456789" "0123456789" "0123456789"]`, lim: Limits{Inline: 64, Multibulk: 9, Bulk: 90, Query: 72}},
		{name: "command above the query limit", input: ping + "*4\r\n" + strings.Repeat("$10\r\n0123456789\r\n", 4), want: `["PING"]`, err: "query buffer", lim: Limits{Inline: 64, Multibulk: 9, Bulk: 90, Query: 71}},
		{name: "error within the query limit", input: "*1\r\n$xy\r\nfoo", err: "invalid bulk length", lim: Limits{Inline: 64, Multibulk: 9, Bulk: 90, Query: 9}},
		{name: "error above the query limit", input: "*1\r\n$xy\r\nfoo", err: "query buffer", lim: Limits{Inline: 64, Multibulk: 9, Bulk: 90, Query: 8}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.lim == (Limits{}) {
				tc.lim = smallLimits()
			}
			input := []byte(tc.input)
			check := func(pieces ...int) {
				t.Helper()
				commands, err := feed(t, input, tc.lim, pieces...)
				got := ""
				for _, command := range commands {
					got += fmt.Sprintf("%q", command)
				}
				require.Equal(t, tc.want, got)
				switch {
				case tc.err == "":
					require.NoError(t, err)
				case tc.err == "query buffer":
					require.ErrorIs(t, err, ErrQueryBuffer)
				default:
					require.IsType(t, (*ProtocolError)(nil), err)
					require.EqualError(t, err, "Protocol error: "+tc.err)
				}
			}
			check()
			check(ones(len(input))...)
			for i := 1; i < min(len(input), 300); i++ {
				check(i)
			}
		})
	}
}

func TestReaderDefaultLimits(t *testing.T) {
	for _, tc := range []struct{ name, input, err string }{
		{"inline", strings.Repeat("A", InlineMax+1), "too big inline request"},
		{"count", "*" + strings.Repeat("1", InlineMax), "too big mbulk count string"},
		{"length", "*1\r\n$" + strings.Repeat("1", InlineMax), "too big bulk count string"},
		{"arguments", "*1048577\r\n", "invalid multibulk length"},
		{"argument", "*1\r\n$536870913\r\n", "invalid bulk length"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := feed(t, []byte(tc.input), DefaultLimits())
			require.EqualError(t, err, "Protocol error: "+tc.err)
			_, err = feed(t, []byte(tc.input), DefaultLimits(), ones(len(tc.input))...)
			require.EqualError(t, err, "Protocol error: "+tc.err)
		})
	}
	require.Equal(t, QueryUnauthMax, UnauthenticatedLimits(DefaultLimits()).Query)
	require.Equal(t, 5, UnauthenticatedLimits(Limits{Query: 5}).Query)
}

// TestReaderErrorOnTheWire guards the wire form of the one error
// that quotes the client.
func TestReaderErrorOnTheWire(t *testing.T) {
	_, err := feed(t, []byte("*1\r\n\r\n"), DefaultLimits())
	var w Writer
	w.Error("ERR " + err.Error())
	require.Equal(t, "-ERR Protocol error: expected '$', got ' '\r\n", string(w.Bytes()))
}

func TestReaderRewind(t *testing.T) {
	input := "*1\r\n$1\r\na\r\n" + `b "\x41\"q"` + "\r\n" + "*1\r\n$1\r\nc\r\n*2\r\n$1\r\nd\r\n$3\r\nto"
	lim := DefaultLimits()
	var pool Pool
	var r Reader
	r.Received(copy(r.Space(&pool), input))
	args, ok, err := r.Next(nil, &lim)
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, "a", string(args[0]))
	afterFirst := r.Offset()

	rest := [][]string{{"b", `A"q`}, {"c"}}
	for range 3 {
		commands, err := drain(&r, &lim)
		require.NoError(t, err)
		require.Equal(t, rest, commands)
		require.Equal(t, len("*2\r\n$1\r\nd\r\n$3\r\nto"), r.Buffered())
		r.Rewind(afterFirst)
		require.Equal(t, len(input)-afterFirst, r.Buffered())
	}

	// What was taken back survives the next read.
	r.Received(copy(r.Space(&pool), "p\r\n"))
	commands, err := drain(&r, &lim)
	require.NoError(t, err)
	require.Equal(t, append(rest, []string{"d", "top"}), commands)
	require.Panics(t, func() { r.Rewind(r.Offset() + 1) })
	require.Panics(t, func() { r.Rewind(-1) })
}

func TestReaderAppendsArguments(t *testing.T) {
	lim := DefaultLimits()
	var pool Pool
	var r Reader
	r.Received(copy(r.Space(&pool), "*1\r\n$1\r\na\r\nb c\r\n*1\r\n$1\r\n"))
	args := [][]byte{[]byte("before")}
	args, ok, _ := r.Next(args, &lim)
	require.True(t, ok)
	args, ok, _ = r.Next(args, &lim)
	require.True(t, ok)
	args, ok, _ = r.Next(args, &lim)
	require.False(t, ok)
	require.Equal(t, "before a b c", string(bytes.Join(args, []byte(" "))))
	require.Equal(t, len(args[1]), cap(args[1]), "appending to an argument must not reach the next one")
}

func TestReaderMemory(t *testing.T) {
	lim := DefaultLimits()
	var pool Pool
	var r Reader
	require.Zero(t, r.Buffered())
	r.Compact(&pool)
	require.Empty(t, pool.free, "a Reader without a buffer has none to give back")

	r.Received(copy(r.Space(&pool), "*1\r\n$500000000\r\n"))
	_, ok, err := r.Next(nil, &lim)
	require.NoError(t, err)
	require.False(t, ok)
	require.Len(t, r.buf, BufferSize, "a header alone allocates nothing")
	r.Compact(&pool)
	require.NotNil(t, r.buf, "a partial command keeps its buffer")

	require.Panics(t, func() { r.Received(len(r.buf)) })
	require.Panics(t, func() { r.Received(-1) })
}

// TestReaderShrinks checks that a buffer that grew goes away with what it grew
// for, even when part of the next command is in it already.
func TestReaderShrinks(t *testing.T) {
	lim := DefaultLimits()
	send := func(r *Reader, pool *Pool, size int) string {
		input := fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", size, strings.Repeat("x", size))
		for rest := input; len(rest) > 0; {
			n := copy(r.Space(pool), rest)
			r.Received(n)
			requireBounded(t, r)
			rest = rest[n:]
		}
		return input
	}
	for _, tc := range []struct{ large, small, want int }{
		{large: 100_000, small: 4, want: BufferSize},
		{large: 100_000, small: 12_000, want: BufferSize},
		{large: 100_000, small: 80_000, want: 256 << 10},
		{large: 1_000_000, small: 60_000, want: 64 << 10},
	} {
		var pool Pool
		var r Reader
		send(&r, &pool, tc.large)
		half := len(send(&r, &pool, tc.small)) / 2
		r.end -= half // the end of the second command is still under way
		_, ok, err := r.Next(nil, &lim)
		require.NoError(t, err)
		require.True(t, ok)
		r.Compact(&pool)
		requireBounded(t, &r)
		require.Len(t, r.buf, tc.want)
		for range half {
			r.Space(&pool)[0] = 'x'
			r.Received(1)
		}
		args, ok, err := r.Next(nil, &lim)
		require.NoError(t, err)
		require.True(t, ok)
		require.Len(t, args[0], tc.small)
		r.Compact(&pool)
		require.Nil(t, r.buf)
	}
}

func TestPoolIsBoundedAndLIFO(t *testing.T) {
	var pool Pool
	for range poolMax + 10 {
		pool.Put(make([]byte, BufferSize))
	}
	pool.Put(make([]byte, 2*BufferSize))
	require.Len(t, pool.free, poolMax)
	pool = Pool{}
	first, second := pool.Get(), pool.Get()
	pool.Put(first)
	pool.Put(second)
	require.Same(t, &second[0], &pool.Get()[0])
	require.Same(t, &first[0], &pool.Get()[0])
}

func TestReaderLargeArgument(t *testing.T) {
	const size = 70 << 20
	lim := DefaultLimits()
	var pool Pool
	var r Reader
	send := func(b []byte) {
		for len(b) > 0 {
			n := copy(r.Space(&pool), b)
			r.Received(n)
			b = b[n:]
			if len(b) > 0 {
				_, ok, err := r.Next(nil, &lim)
				require.False(t, ok)
				require.NoError(t, err)
			}
		}
	}
	send(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", size))
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range size >> 20 {
		send(piece)
	}
	send([]byte("\r\n"))
	args, ok, err := r.Next(nil, &lim)
	require.NoError(t, err)
	require.True(t, ok)
	require.Len(t, args[2], size)
	require.Equal(t, size, bytes.Count(args[2], []byte("x")))
}

// TestReaderLooksAtBytesOnce counts the work on a command of a million
// arguments that arrives a little at a time: each call of Next must go on from
// where the last one stopped.
func TestReaderLooksAtBytesOnce(t *testing.T) {
	const count = MultibulkMax
	input := append(fmt.Appendf(nil, "*%d\r\n", count), bytes.Repeat([]byte("$1\r\na\r\n"), count)...)
	lim := DefaultLimits()
	var pool Pool
	var r Reader
	before := 0
	for sent := 0; sent < len(input); {
		room := r.Space(&pool)
		n := copy(room[:min(len(room), 101)], input[sent:])
		r.Received(n)
		sent += n
		args, ok, err := r.Next(nil, &lim)
		require.NoError(t, err)
		require.Equal(t, sent == len(input), ok)
		if ok {
			require.Len(t, args, count)
			break
		}
		require.Greater(t, r.scan, before)
		require.Less(t, sent-r.scan, 10, "everything received has been dealt with")
		before = r.scan
	}
}

// TestReaderRandomSplits feeds random pipelines in random pieces.
func TestReaderRandomSplits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var input []byte
		var want [][]string
		for range rng.IntN(20) {
			command := make([]string, 1+rng.IntN(6))
			input = fmt.Appendf(input, "*%d\r\n", len(command))
			for i := range command {
				command[i] = strings.Repeat("v", rng.IntN(1<<rng.IntN(16)))
				input = fmt.Appendf(input, "$%d\r\n%s\r\n", len(command[i]), command[i])
			}
			want = append(want, command)
		}
		var pieces []int
		for range rng.IntN(30) {
			pieces = append(pieces, rng.IntN(1+rng.IntN(30000)))
		}
		got, err := feed(t, input, DefaultLimits(), pieces...)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	lim := DefaultLimits()
	var pool Pool
	var r Reader
	var args [][]byte
	for _, pipeline := range pipelines() {
		half := len(pipeline.bytes) / 3
		run := func() {
			args = args[:0]
			for _, piece := range [][]byte{pipeline.bytes[:half], pipeline.bytes[half:]} {
				r.Received(copy(r.Space(&pool), piece))
				for ok := true; ok; {
					var err error
					if args, ok, err = r.Next(args, &lim); err != nil {
						t.Fatal(err)
					}
				}
			}
			r.Compact(&pool)
		}
		run()
		require.Zero(t, testing.AllocsPerRun(100, run), pipeline.name)
	}
}

// pipelines are the workloads of the benchmarks.
func pipelines() []struct {
	name  string
	bytes []byte
} {
	repeat := func(args ...string) []byte {
		var w Writer
		for range 16 {
			w.Array(len(args))
			for _, arg := range args {
				w.BulkString(arg)
			}
		}
		return w.Bytes()
	}
	return []struct {
		name  string
		bytes []byte
	}{
		{"GET", repeat("GET", "user:000012345678")},
		{"SET", repeat("SET", "user:000012345678", "0123456789abcdef")},
		{"CL.THROTTLE", repeat("CL.THROTTLE", "user:000012345678", "15", "30", "60")},
	}
}

// BenchmarkReader parses pipelines of 16 commands; an operation is a pipeline.
func BenchmarkReader(b *testing.B) {
	for _, pipeline := range pipelines() {
		b.Run(pipeline.name, func(b *testing.B) {
			lim := DefaultLimits()
			var pool Pool
			var r Reader
			var args [][]byte
			b.SetBytes(int64(len(pipeline.bytes)))
			b.ReportAllocs()
			for b.Loop() {
				r.Received(copy(r.Space(&pool), pipeline.bytes))
				args = args[:0]
				for ok := true; ok; {
					args, ok, _ = r.Next(args, &lim)
				}
				r.Compact(&pool)
			}
		})
	}
}
