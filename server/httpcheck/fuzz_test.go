package httpcheck

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/local"
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
		require.LessOrEqual(t, len(c.pairs), local.MaxPairs)
	})
}
