package httpcheck

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server/local"
)

// FuzzRequest: whatever the query and the headers are, a request is read or refused with a problem, and what is read makes one command. Queries are
// read as url.ParseQuery reads them.
func FuzzRequest(f *testing.F) {
	f.Add("policy=user&key=1&cost=3", "192.0.2.1", "x")
	f.Add("policy=user&key={client}&policy=b&key={header:X|path}&peek=1", "::1, 2001:db8::1", "/a?b")
	f.Add("policy=a&key={{x}", ",", "")
	f.Add("policy=a%20b&key=%zz&k+y=c;d&&=&cost", ",", "")
	f.Add(strings.Repeat("&", maxParameters), "", "")
	f.Fuzz(func(t *testing.T, query, forwarded, header string) {
		requireReadAsNetURLDoes(t, query)
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

func requireReadAsNetURLDoes(t *testing.T, text string) {
	want, wantErr := url.ParseQuery(text)
	q, err := readQuery(text)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		return
	}
	require.NoError(t, err)
	for name, given := range map[string][]string{"policy": q.policies, "key": q.keys, "cost": q.costs, "peek": q.peeks, "format": q.formats} {
		require.Equal(t, want[name], given, name)
		delete(want, name)
	}
	_, strange := want[q.unknown]
	require.Equal(t, len(want) > 0, q.strange)
	require.Equal(t, q.strange, strange)
}
