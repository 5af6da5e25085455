package httpcheck_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/httpcheck"
	"headgate/server/local"
	"headgate/server/netpoll"
	"headgate/server/servertest"
)

// sink is a response that is thrown away.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }

// TestAllocations: what a check allocates between the HTTP library and the limits is known.
func TestAllocations(t *testing.T) {
	require.LessOrEqual(t, testing.AllocsPerRun(1000, checkOnce(t)), 7.0)
}

func BenchmarkCheck(b *testing.B) {
	once := checkOnce(b)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

// checkOnce returns what answers one check.
func checkOnce(t testing.TB) func() {
	s := newServer(t, false)
	r := httptest.NewRequest("GET", "/check?policy=user&key=42", nil)
	w := &sink{header: http.Header{}}
	return func() {
		clear(w.header)
		s.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.status)
	}
}

// newServer returns a server that listens nowhere, and has a policy.
func newServer(t testing.TB, needsAuth bool) *httpcheck.Server {
	srv := server.New(config.NewLive(servertest.Unsaved()), server.Options{})
	t.Cleanup(srv.Keys.Close)
	s := httpcheck.New(httpcheck.Options{
		Dial: func() local.Client {
			return netpoll.NewInner(srv.WithoutBackgroundWork(), "127.0.0.1:0", "127.0.0.1:0")
		},
		NeedsAuth: func() bool { return needsAuth },
		Refuses:   func(netip.Addr) string { return "" },
		Log:       slog.New(slog.DiscardHandler),
	}, &httpcheck.Counts{})
	t.Cleanup(s.Close)
	admin := netpoll.NewInner(srv.WithoutBackgroundWork(), "127.0.0.1:0", "127.0.0.1:0")
	defer admin.Close()
	_, err := admin.Do(t.Context(), servertest.EncodeCommand("RL.POLICY", "SET", "user", "FIXED", "1000000000", "1m"), func(b []byte) bool { return string(b) == "+OK\r\n" })
	require.NoError(t, err)
	return s
}
