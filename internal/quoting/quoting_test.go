package quoting

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"": nil, " \t\r\n\v\f ": nil, "a": {"a"}, " a\tb \r\nc ": {"a", "b", "c"},
		`a "b c" 'd e'`: {"a", "b c", "d e"}, `a ""  ''`: {"a", "", ""}, `a 1"0" 'x'`: {"a", "10", "x"}, `a\x41\`: {`a\x41\`},
		`"\n\r\t\a\b\"\\\q\x4a\xfF\xg1\x1"`: {"\n\r\t\a\b\"\\qJ\xffxg1x1"}, `'it\'s \n'`: {`it's \n`},
		"\"a\"\v'b'\f\"c\"": {"a", "b", "c"}, "\x00 \xff": {"\x00", "\xff"},
	} {
		words, err := Split(line)
		require.NoError(t, err, "%q", line)
		require.Equal(t, want, words, "%q", line)
	}
	for _, line := range []string{`"a`, `'a`, `"a\`, `"a\"`, `'a\'`, `"a"b`, `'a'b`, `'a'"b"`, `a"`, `a b'`, "'"} {
		words, err := Split(line)
		require.Equal(t, ErrQuotes, err, "%q", line)
		require.Nil(t, words)
		kept := [][]byte{[]byte("before")}
		out, ok := AppendWords(kept, []byte("word "+line))
		require.False(t, ok)
		require.Equal(t, kept, out)
	}
}

// TestSplitFew: a text of more words is not looked at any further.
func TestSplitFew(t *testing.T) {
	for line, want := range map[string]error{"": nil, `a "b c"`: nil, "a b  ": nil, "a b c": ErrManyWords, `a b c "`: ErrManyWords, `a b "`: ErrQuotes} {
		words, err := SplitFew(line, 2)
		require.Equal(t, want, err, "%q", line)
		require.LessOrEqual(t, len(words), 2)
	}
}

// TestAVerticalTabEndsNoWord: what redis-server takes for space before a word is not all of what ends one.
func TestAVerticalTabEndsNoWord(t *testing.T) {
	words, err := Split("\v\fa\vb\fc\vd \v e")
	require.NoError(t, err)
	require.Equal(t, []string{"a\vb\fc\vd", "e"}, words)
}

// TestWordsAreNotCopied: words without quotes are memory of the line, and appending to one does not reach the next.
func TestWordsAreNotCopied(t *testing.T) {
	line := []byte(`get  key "quoted"`)
	out, ok := AppendWords(make([][]byte, 0, 3), line)
	require.True(t, ok)
	require.Len(t, out, 3)
	require.Same(t, &line[0], &out[0][0])
	require.Same(t, &line[5], &out[1][0])
	require.Len(t, out[1], cap(out[1]))
	out[2][0] = 'Q'
	require.Equal(t, `get  key "quoted"`, string(line))
	room := make([][]byte, 0, 3)
	require.Zero(t, testing.AllocsPerRun(100, func() { AppendWords(room, line[:8]) }))
}

// FuzzSplit splits anything, which is then as it was, and quotes the words in a way that gives them back.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"", `a "b\x00" 'c\'d'`, "\x00\xff\n", "a\vb", `"`, `"\x4`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := Split(Quote(s))
		require.NoError(t, err)
		require.Equal(t, []string{s}, words)
		line := []byte(s)
		out, ok := AppendWords(nil, line)
		require.Equal(t, s, string(line))
		if !ok {
			require.Nil(t, out)
			return
		}
		again := ""
		for _, word := range out {
			again += Quote(string(word)) + " "
		}
		words, err = Split(again)
		require.NoError(t, err)
		require.Len(t, words, len(out))
		for i := range words {
			require.Equal(t, string(out[i]), words[i])
		}
	})
}
