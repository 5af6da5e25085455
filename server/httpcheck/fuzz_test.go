package httpcheck

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRequest: whatever the query and the headers are, a request is read or refused with a problem, and what is read makes one command.
func FuzzRequest(f *testing.F) {
	f.Add("policy=user&key=1&cost=3", "192.0.2.1", "x")
	f.Add("policy=user&key={client}&policy=b&key={header:X|path}&peek=1", "::1, 2001:db8::1", "/a?b")
	f.Add("policy=a&key={{x}", ",", "")
	f.Fuzz(func(t *testing.T, query, forwarded, header string) {
		r := httptest.NewRequest("GET", "/check", nil)
		r.URL = &url.URL{Path: "/check", RawQuery: query}
		r.Header["X-Forwarded-For"], r.Header["X"], r.Header["X-Forwarded-Uri"] = []string{forwarded}, []string{header}, []string{header}
		c, err := readCheck(r)
		if err != nil {
			var p *problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, 400, p.Status)
			return
		}
		require.NotEmpty(t, c.pairs)
		require.LessOrEqual(t, len(c.pairs), maxPairs)
		command := c.appendCommand(nil)
		words, rest, whole, err := readReply(command, 0) // a command has the form of a reply
		require.NoError(t, err)
		require.True(t, whole)
		require.Empty(t, rest)
		require.Equal(t, c.pairs[0].key, string(words.list[3].text))
	})
}

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
