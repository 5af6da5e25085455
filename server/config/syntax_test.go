package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/internal/quoting"
)

func TestSplitLine(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
		bad  bool
	}{
		{line: ""}, {line: " \t "}, {line: "# hz 10"}, {line: "   # hz"},
		{line: " hz\t 10 \r", want: []string{"hz", "10"}},
		{line: `a "b c" 'd e'`, want: []string{"a", "b c", "d e"}},
		{line: `a ""`, want: []string{"a", ""}},
		{line: `a "\n\r\t\a\b\"\\\q\x4a\xfF"`, want: []string{"a", "\n\r\t\a\b\"\\qJ\xff"}},
		{line: `a "\xg1\x1"`, want: []string{"a", "xg1x1"}},
		{line: `a 'it\'s \n'`, want: []string{"a", `it's \n`}},
		{line: `a 1"0"`, want: []string{"a", "10"}},
		{line: "a b\vc", want: []string{"a", "b\vc"}},
		{line: `a \x41`, want: []string{"a", `\x41`}},
		{line: `a "b`, bad: true}, {line: `a 'b`, bad: true}, {line: `a "b\`, bad: true}, {line: `a "b\"`, bad: true},
		{line: `a "b"c`, bad: true}, {line: `a 'b'"c"`, bad: true}, {line: `a b"`, bad: true},
	} {
		t.Run(tt.line, func(t *testing.T) {
			words, err := splitLine(tt.line)
			if tt.bad {
				require.ErrorIs(t, err, quoting.ErrQuotes)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, words)
		})
	}
}

func TestFormatMemory(t *testing.T) {
	for bytes, want := range map[int]string{0: "0", 1: "1", 1000: "1000", 1024: "1kb", 3 << 20: "3mb", 1 << 30: "1gb", 1<<30 + 1024: "1048577kb"} {
		require.Equal(t, want, formatMemory(bytes))
	}
}

// FuzzWords: what is quoted is read back as it was.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", "a b", "\"\\'", "\x00\xff\n", "# x", "\u00e9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, quoted := range []string{quoting.Quote(s), quoteIfNeeded(s)} {
			words, err := splitLine("x " + quoted)
			require.NoError(t, err)
			require.Equal(t, []string{"x", s}, words, quoted)
		}
	})
}

// FuzzFile: no file makes the loader panic, its error is one line, and a file that was taken can be rewritten to the defaults and
// back without a change of meaning.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"port 7000\n", "# c\r\nsave \"\"\r\nbind * -::*", "requirepass \"\\x00\\n\"\n", "client-output-buffer-limit normal 1mb 2 3\n",
		"include x\n", "include /srv/*\n", "hz 0\nhz 9999\n", "maxmemory 0\nloadmodule redis_cell\n", "dir a\ndir ../b\n",
		"unixsocketperm 0777\nhash-max-ziplist-value 1kb\n", "cl-throttle-limit capacity", "\"\" x\n", "\xef\xbb\xbftimeout 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host := memoryHost(map[string]string{"/srv/h.conf": text})
		live, _, err := Load([]string{"h.conf"}, nil, host)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		plain, _, err := Load(nil, nil, host)
		require.NoError(t, err)
		plain.src.path = "/srv/h.conf"
		data, err := plain.rewritten([]byte(text))
		require.NoError(t, err)
		host.ReadFile = func(string) ([]byte, error) { return data, nil }
		again, _, err := Load([]string{"h.conf"}, nil, host)
		require.NoError(t, err)
		require.Empty(t, differing(plain.Get(), again.Get()))

		back, err := live.rewritten(data)
		require.NoError(t, err)
		host.ReadFile = func(string) ([]byte, error) { return back, nil }
		again, _, err = Load([]string{"h.conf"}, nil, host)
		require.NoError(t, err)
		require.Empty(t, differing(live.Get(), again.Get()))
	})
}
