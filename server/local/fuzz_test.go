package local

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReply: no bytes break the reader of replies.
func FuzzReply(f *testing.F) {
	f.Add([]byte("*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60000\r\n"))
	f.Add([]byte("-ERR no such policy 'x'\r\n"))
	f.Add([]byte("*-1\r\n$-1\r\n$3\r\nabc\r\n_\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, whole, err := readReply(b, 0)
		if err == nil && whole {
			require.Less(t, len(rest), len(b))
			_, _, _ = verdicts(r, 1)
		}
	})
}

// FuzzTake: whatever policies and keys are, they make one command of which they are words.
func FuzzTake(f *testing.F) {
	f.Add("user", "k", int64(1), true)
	f.Add("a\r\nb", "", int64(-5), false)
	f.Fuzz(func(t *testing.T, policy, key string, cost int64, peek bool) {
		b := appendTake(nil, []Pair{{policy, key, cost}}, peek)
		words, rest, whole, err := readReply(b, 0) // a command has the form of a reply
		require.NoError(t, err)
		require.True(t, whole)
		require.Empty(t, rest)
		require.Equal(t, policy, string(words.list[2].text))
		require.Equal(t, key, string(words.list[3].text))
	})
}

// FuzzVerdicts: the reply of RL.TAKE that is read at once is what reading any reply makes of it.
func FuzzVerdicts(f *testing.F) {
	f.Add([]byte("*3\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60000\r\n"), 1)
	f.Add([]byte("*3\r\n:1\r\n:1\r\n*2\r\n*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60000\r\n*5\r\n:1\r\n:999999999999999999\r\n:0\r\n:5\r\n:1\r\n"), 2)
	f.Add([]byte("*4\r\n:0\r\n:-1\r\n*1\r\n*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60000\r\n*1\r\n$1\r\na\r\n"), 1)
	f.Add([]byte("-ERR no such policy 'x'\r\n"), 1)
	f.Add([]byte("*3\r\n:00\r\n:-0\r\n*1\r\n*5\r\n:0\r\n:3\r\n:2\r\n:-\r\n:60000\r\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > MaxPairs {
			return
		}
		list := make([]Verdict, n)
		limited, plain := readVerdicts(b, list)
		if !plain {
			return
		}
		answers, whole, err := readReplies(b, 1)
		require.NoError(t, err)
		require.True(t, whole)
		wantLimited, want, err := verdicts(answers[0], n)
		require.NoError(t, err)
		require.Equal(t, wantLimited, limited)
		require.ElementsMatch(t, want, list)
	})
}
