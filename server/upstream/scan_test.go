package upstream

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var wholeReplies = []string{
	"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$0\r\n\r\n", "$-1\r\n", "$5\r\n\r\n$1\r\r\n", "*-1\r\n", "*0\r\n", "*2\r\n:1\r\n$1\r\na\r\n",
	"*2\r\n*1\r\n*0\r\n*2\r\n+a\r\n-b\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123456789012345678901234567890\r\n", "!5\r\nERR x\r\n",
	"=7\r\ntxt:abc\r\n", "~1\r\n:1\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "%0\r\n", "|1\r\n+ttl\r\n:5\r\n$1\r\nv\r\n",
	"*2\r\n|1\r\n+k\r\n*1\r\n:1\r\n:7\r\n:8\r\n", "|0\r\n:1\r\n",
}

// TestRepliesAreFoundWhereverTheyAreCut: each reply ends where it does, however its bytes come.
func TestRepliesAreFoundWhereverTheyAreCut(t *testing.T) {
	all := strings.Join(wholeReplies, "")
	for size := 1; size <= 40; size++ {
		var s scanner
		var held []byte
		var found []string
		for rest := all; rest != ""; {
			taken := min(size, len(rest))
			held = append(held, rest[:taken]...)
			rest = rest[taken:]
			for scanned := 0; ; {
				n, whole, err := s.next(held[scanned:])
				require.NoError(t, err)
				scanned += n
				if !whole {
					// What has been scanned of an unfinished reply need not be shown again.
					found = append(found, string(held[:scanned]))
					held = held[scanned:]
					break
				}
				found = append(found, string(held[:scanned])+"|")
				held, scanned = held[scanned:], 0
			}
		}
		require.Empty(t, held)
		require.Equal(t, strings.Join(wholeReplies, "|")+"|", strings.Join(found, ""), "in pieces of %d", size)
	}
}

// TestLongTexts: a status or an error may be of any length, as a script of a client's may answer it, alone and within an array.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x", 3*lineMax)
	for _, reply := range []string{"+" + long + "\r\n", "-ERR " + long + "\r\n", "*3\r\n:1\r\n+" + long + "\r\n-" + long + "\r\n"} {
		for _, size := range []int{1000, lineMax, lineMax + 2, len(reply) - 1, len(reply)} {
			var s scanner
			var held []byte
			found := 0
			for rest := reply + ":7\r\n"; rest != ""; {
				taken := min(size, len(rest))
				held = append(held, rest[:taken]...)
				rest = rest[taken:]
				for {
					n, whole, err := s.next(held)
					require.NoError(t, err)
					found += n
					held = held[n:]
					if !whole {
						break
					}
					require.Contains(t, []int{len(reply), len(reply) + len(":7\r\n")}, found, "%.10q in pieces of %d", reply, size)
				}
			}
			require.Equal(t, len(reply)+len(":7\r\n"), found)
			require.True(t, s.idle())
		}
	}
}

func TestPushesAreNoReplies(t *testing.T) {
	var s scanner
	n, whole, err := s.next([]byte(">2\r\n+a\r\n:1\r\n+OK\r\n"))
	require.NoError(t, err)
	require.True(t, whole)
	require.True(t, s.outOfBand)
	require.Equal(t, len(">2\r\n+a\r\n:1\r\n"), n)
	_, whole, err = s.next([]byte("+OK\r\n"))
	require.NoError(t, err)
	require.True(t, whole)
	require.False(t, s.outOfBand)
}

func TestBadRepliesAreErrors(t *testing.T) {
	for _, bad := range []string{
		"x\r\n", "\r\n", "+OK\n", "$x\r\n", "$-2\r\n", "$+1\r\n", "$99999999999\r\n", "*99999999999\r\n", "$?\r\n", "*-5\r\n", "HTTP/1.1 400 Bad Request\r\n",
		strings.Repeat("*1\r\n", depthMax+1), ":" + strings.Repeat("1", lineMax+1),
	} {
		var s scanner
		var err error
		for rest := []byte(bad); err == nil; {
			var n int
			var whole bool
			n, whole, err = s.next(rest)
			rest = rest[n:]
			require.False(t, whole, "%.40q", bad)
			if n == 0 {
				break
			}
		}
		require.Error(t, err, "%.40q", bad)
	}
}

func TestValues(t *testing.T) {
	v, rest := parseValue([]byte("*4\r\n$1\r\na\r\n|1\r\n+x\r\n:1\r\n:5\r\n$-1\r\n%1\r\n+k\r\n#t\r\n+more\r\n"))
	require.Equal(t, "+more\r\n", string(rest))
	require.Equal(t, value{kind: '*', list: []value{
		{kind: '$', text: "a"}, {kind: ':', text: "5"}, {kind: '$'}, {kind: '%', list: []value{{kind: '+', text: "k"}, {kind: '#', text: "t"}}},
	}}, v)
	require.EqualValues(t, 5, v.list[1].number())
	require.Equal(t, "t", v.list[3].field("k").text)

	values, err := readValues(strings.NewReader("+a\r\n:1\r\n"), 2, 100)
	require.NoError(t, err)
	require.Len(t, values, 2)
	_, err = readValues(strings.NewReader("+a\r\n:1\r\n+b\r\n"), 2, 100)
	require.ErrorIs(t, err, errMalformed)
	_, err = readValues(strings.NewReader(strings.Repeat("x", 200)), 1, 100)
	require.Error(t, err)
	_, err = readValues(strings.NewReader("$100000\r\n"+strings.Repeat("x", 90000)), 1, 100)
	require.ErrorIs(t, err, errTooLong)
}

// FuzzScanner: a reply that is found whole is also found in two pieces, and can be read as a value.
func FuzzScanner(f *testing.F) {
	for _, reply := range wholeReplies {
		f.Add([]byte(reply), 3)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		var s scanner
		n, whole, err := s.next(p)
		if n > len(p) || whole && err != nil {
			t.Fatalf("%d of %d bytes, %v", n, len(p), err)
		}
		if !whole {
			return
		}
		if cut = max(0, min(cut, n)); cut < n {
			var pieces scanner
			first, early, err := pieces.next(p[:cut])
			if early || err != nil {
				t.Fatalf("whole at %d of %d, %v", first, n, err)
			}
			second, late, err := pieces.next(p[first:n])
			if !late || err != nil || first+second != n {
				t.Fatalf("not whole in two pieces: %d+%d of %d, %v", first, second, n, err)
			}
		}
		_, rest := parseValue(p[:n])
		if !bytes.Equal(rest, p[n:n]) {
			t.Fatalf("%q is left", rest)
		}
	})
}

// TestFlatReplies: what flat finds whole is what the scanner finds, wherever the bytes end.
func TestFlatReplies(t *testing.T) {
	found := 0
	for _, reply := range []string{
		"*4\r\n$10\r\n1795817894\r\n$6\r\n178081\r\n:1\r\n$19\r\n1795817896178081000\r\n", "*4\r\n$10\r\n1795817894\r\n$1\r\n0\r\n:3\r\n$-1\r\n",
		"*1\r\n$0\r\n\r\n", "*2\r\n:1\r\n:12\r\n", "*2\r\n$100\r\n" + strings.Repeat("x", 100) + "\r\n:1\r\n", "*2\r\n*1\r\n:1\r\n:2\r\n", "*1\r\n$-2\r\n",
		"*0\r\n", "*-1\r\n", "*10\r\n", "*1\r\n_\r\n", "$5\r\nhello\r\n", "*1\r\n$05\r\nhello\r\n", ">1\r\n:1\r\n",
	} {
		for end := range len(reply) + 1 {
			p := []byte(reply[:end])
			n := flat(p)
			if n == 0 {
				continue
			}
			found++
			s := scanner{line: 0, open: []int64{1}} // within an array, so that flat is not asked
			behind := append(p[:n:n], ":7\r\n"...)
			s.open[0] = 2
			scanned, whole, err := s.next(behind)
			require.NoError(t, err)
			require.True(t, whole)
			require.Equal(t, len(behind), scanned, "%q", p)
		}
	}
	require.Equal(t, 3, found)
}
