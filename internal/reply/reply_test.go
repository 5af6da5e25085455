package reply

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(wire string) (Value, error) { return Read(bufio.NewReader(strings.NewReader(wire))) }

func TestPrint(t *testing.T) {
	for _, each := range []struct{ wire, pretty, raw string }{
		{"+OK\r\n", "OK\n", "OK\n"},
		{"-ERR no\r\n", "(error) ERR no\n", "ERR no\n\n"},
		{"!6\r\nERR no\r\n", "(error) ERR no\n", "ERR no\n\n"},
		{":7\r\n", "(integer) 7\n", "7\n"},
		{",1.5\r\n", "(double) 1.5\n", "1.5\n"},
		{"#t\r\n", "(true)\n", "(true)\n"},
		{"$-1\r\n", "(nil)\n", "\n"},
		{"_\r\n", "(nil)\n", "\n"},
		{"*-1\r\n", "(nil)\n", "\n"},
		{"$5\r\na\"\n\x01\\\r\n", `"a\"\n\x01\\"` + "\n", "a\"\n\x01\\\n"},
		{"=7\r\ntxt:a\nb\r\n", "a\nb\n", "a\nb\n"},
		{"*0\r\n", "(empty array)\n", "\n"},
		{"%0\r\n", "(empty hash)\n", "\n"},
		{"~0\r\n", "(empty set)\n", "\n"},
		{"*2\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", "1) (integer) 1\n2) 1) \"a\"\n   2) \"b\"\n", "1\na\nb\n"},
		{"*10\r\n" + strings.Repeat(":1\r\n", 9) + "*2\r\n:2\r\n:3\r\n",
			strings.Join([]string{" 1) (integer) 1", " 2) (integer) 1", " 3) (integer) 1", " 4) (integer) 1", " 5) (integer) 1", " 6) (integer) 1", " 7) (integer) 1", " 8) (integer) 1", " 9) (integer) 1", "10) 1) (integer) 2", "    2) (integer) 3", ""}, "\n"),
			strings.Repeat("1\n", 9) + "2\n3\n"},
		{"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "1# a => (integer) 1\n2# b => 1) (integer) 2\n", "a 1\nb 2\n"},
		{"~1\r\n:1\r\n", "1~ (integer) 1\n", "1\n"},
		{"|1\r\n+ttl\r\n:1\r\n:5\r\n", "(integer) 5\n", "5\n"},
	} {
		v, err := parse(each.wire)
		require.NoError(t, err, "%q", each.wire)
		require.Equal(t, each.pretty, v.Pretty(), "%q", each.wire)
		require.Equal(t, each.raw, v.Raw(), "%q", each.wire)
	}
}

func TestWrongReplies(t *testing.T) {
	for _, wire := range []string{
		"\r\n", "x\r\n", "+OK\n", "$-2\r\n", "$x\r\n", "$1\r\nab\r\n", "$536870913\r\n", "*99999999999\r\n", strings.Repeat("*1\r\n", maxDepth+2), "+" + strings.Repeat("a", 2*maxLine) + "\r\n",
	} {
		_, err := parse(wire)
		require.Error(t, err, "%.40q", wire)
		require.NotErrorIs(t, err, io.EOF, "%.40q", wire)
	}
	for _, wire := range []string{"+O", "$5\r\nab", "*2\r\n:1\r\n", "$536870912\r\n"} {
		_, err := parse(wire)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%.40q", wire)
	}
	_, err := parse("")
	require.ErrorIs(t, err, io.EOF)
}

func FuzzRead(f *testing.F) {
	f.Add("*2\r\n:1\r\n%1\r\n+a\r\n$1\r\nb\r\n")
	f.Fuzz(func(t *testing.T, wire string) {
		if v, err := parse(wire); err == nil {
			_, _ = v.Pretty(), v.Raw()
		}
	})
}
