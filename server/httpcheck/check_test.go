package httpcheck_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/server"
	"headgate/server/config"
	"headgate/server/httpcheck"
	"headgate/server/netpoll"
	"headgate/server/servertest"
)

// port is a server with an HTTP check on a Unix socket.
type port struct {
	t      *testing.T
	srv    *server.Server
	client http.Client
}

// open starts a server. change may change its configuration.
func open(t *testing.T, change func(*config.Config)) *port {
	cfg := servertest.Unsaved()
	dir := t.TempDir()
	cfg.Port, cfg.UnixSocket, cfg.HTTPUnixSocket = 0, filepath.Join(dir, "s"), filepath.Join(dir, "h")
	if change != nil {
		change(cfg)
	}
	p := &port{t: t, srv: server.New(config.NewLive(cfg), server.Options{})}
	require.NoError(t, p.srv.Listen())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.srv.Run()
	}()
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", cfg.HTTPUnixSocket)
	}}
	p.client = http.Client{Timeout: 10 * time.Second, Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		p.srv.Stop()
		<-ended
	})
	return p
}

// run runs a command as a client within the process.
func (p *port) run(words ...string) string {
	p.t.Helper()
	inner := netpoll.NewInner(p.srv.WithoutBackgroundWork(), "127.0.0.1:0", "127.0.0.1:0")
	defer inner.Close()
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	reply, err := inner.Do(context.Background(), []byte(request), func(b []byte) bool { return strings.HasSuffix(string(b), "\r\n") })
	require.NoError(p.t, err)
	return string(reply)
}

// ask sends a request and returns its answer with the body read.
func (p *port) ask(method, target string, header ...string) (*http.Response, string) {
	p.t.Helper()
	request, err := http.NewRequest(method, "http://headgate"+target, nil)
	require.NoError(p.t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
		request.Header.Add(header[i], header[i+1])
	}
	answer, err := p.client.Do(request)
	require.NoError(p.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	return answer, string(body)
}

// TestCheck: a check answers as RL.TAKE does, and says so in the words of HTTP.
func TestCheck(t *testing.T) {
	p := open(t, nil)
	require.Equal(t, "+OK\r\n", p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m"))
	require.Equal(t, "+OK\r\n", p.run("RL.POLICY", "SET", "site", "GCRA", "10", "10", "10s"))
	for i := range 3 {
		answer, body := p.ask("GET", "/check?policy=user&key=42&policy=site&key=all")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.Equal(t, "allowed\n", body)
		require.Equal(t, `"user";q=3;w=60, "site";q=10;w=10`, answer.Header.Get("RateLimit-Policy"))
		require.Equal(t, fmt.Sprintf(`"user";r=%d;t=60, "site";r=%d;t=%d`, 2-i, 9-i, i+1), answer.Header.Get("RateLimit"))
		require.Empty(t, answer.Header.Get("Retry-After"))
		require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	}
	answer, body := p.ask("POST", "/check?policy=user&key=42&policy=site&key=all&format=json")
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	require.Equal(t, "60", answer.Header.Get("Retry-After"))
	require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	var got struct {
		Limited bool
		Limits  []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.True(t, got.Limited)
	require.Len(t, got.Limits, 2)
	require.Equal(t, true, got.Limits[0]["limited"])
	require.Equal(t, "42", got.Limits[0]["key"])
	require.Equal(t, false, got.Limits[1]["limited"], "and nothing is charged there")
	require.EqualValues(t, 7, got.Limits[1]["remaining"])

	answer, _ = p.ask("GET", "/check?policy=site&key=all&cost=11")
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	require.Empty(t, answer.Header.Get("Retry-After"), "it never passes")
	answer, _ = p.ask("HEAD", "/check?policy=site&key=all&cost=7&peek=1")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	answer, _ = p.ask("HEAD", "/check?policy=site&key=all&cost=7")
	require.Equal(t, http.StatusOK, answer.StatusCode, "a peek has charged nothing")

	p.ask("GET", "/check?policy=nobody&key=42")
	require.Contains(t, p.run("INFO"), "\r\n# HTTPcheck\r\nhttp_checks_allowed:5\r\nhttp_checks_limited:2\r\nhttp_checks_failed:1\r\n")
	series := servertest.Scrape(t, p.srv)
	require.EqualValues(t, 2, series[`headgate_http_checks_total{result="limited"}`])
	require.NotContains(t, series, "headgate_rls_limits{}", "there is no such port")
}

// TestWindowIsOfTheLimit: the window is told with the limit that it is of, and not with that of a key's override.
func TestWindowIsOfTheLimit(t *testing.T) {
	p := open(t, nil)
	for _, words := range []string{"GCRA 5 10 1m", "BUCKET 10 10 1m", "QUEUE 10 10 1m", "FIXED 10 1m", "SLIDING 10 1m", "LOG 10 1m", "ACQUIRE 10 1m"} {
		name := strings.Fields(words)[0]
		require.Equal(t, "+OK\r\n", p.run(append([]string{"RL.POLICY", "SET", name}, strings.Fields(words)...)...))
		answer, body := p.ask("GET", "/check?policy="+name+"&key="+name)
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.Contains(t, answer.Header.Get("RateLimit-Policy"), ";w=", name)
	}
	require.Equal(t, "+OK\r\n", p.run("RL.POLICY", "OVERRIDE", "SET", "FIXED", "acme", "1000", "1h"))
	for key, want := range map[string]string{"acme": `"FIXED";q=1000`, "other": `"FIXED";q=10;w=60`} {
		answer, _ := p.ask("GET", "/check?policy=FIXED&key="+key)
		require.Equal(t, want, answer.Header.Get("RateLimit-Policy"))
	}
}

// TestLargeIntegers: fields have integers of at most 15 digits, which is what RFC 9651 lets a client read, whatever the limit is.
func TestLargeIntegers(t *testing.T) {
	p := open(t, nil)
	require.Equal(t, "+OK\r\n", p.run("RL.POLICY", "SET", "free", "FIXED", "9000000000000000000", "1m"))
	answer, body := p.ask("GET", "/check?policy=free&key=42&format=json")
	require.Equal(t, `"free";q=999999999999999;w=60`, answer.Header.Get("RateLimit-Policy"))
	require.Equal(t, `"free";r=999999999999999;t=60`, answer.Header.Get("RateLimit"))
	require.Contains(t, body, `"limit":9000000000000000000,"remaining":8999999999999999999,`)
}

// TestLeaseHasId: JSON names the lease that a check has taken, so that it can be released.
func TestLeaseHasId(t *testing.T) {
	p := open(t, nil)
	lease := ""
	p.run("RL.POLICY", "SET", "jobs", "ACQUIRE", "1", "1m")
	p.run("RL.POLICY", "SET", "user", "FIXED", "9", "1m")
	for _, status := range []int{200, 429, 200} {
		answer, body := p.ask("GET", "/check?policy=jobs&key=a&policy=user&key=b&format=json")
		require.Equal(t, status, answer.StatusCode, body)
		var got struct{ Limits []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.NotContains(t, got.Limits[1], "lease")
		if status != http.StatusOK {
			require.NotContains(t, got.Limits[0], "lease")
			require.Equal(t, ":1\r\n", p.run("RL.RELEASE", "a", lease))
			continue
		}
		lease, _ = got.Limits[0]["lease"].(string)
		require.NotEmpty(t, lease)
	}
}

// TestBlockedKey: of a key that is blocked nothing can be had, whatever its limit has left, until the block ends.
func TestBlockedKey(t *testing.T) {
	p := open(t, nil)
	p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m")
	p.run("RL.BLOCK", "user", "42", "10m")
	for _, want := range []string{`"user";r=0;t=600`, `"user";r=0`} {
		answer, _ := p.ask("GET", "/check?policy=user&key=42")
		require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
		require.Equal(t, want, answer.Header.Get("RateLimit"))
		p.run("SET", "rl:block:{42}:user", "ban")
	}
	p.run("RL.UNBLOCK", "user", "42")
	answer, _ := p.ask("GET", "/check?policy=user&key=42")
	require.Equal(t, `"user";r=2;t=60`, answer.Header.Get("RateLimit"))
	answer, _ = p.ask("GET", "/check?policy=user&key=42&cost=3")
	require.Equal(t, `"user";r=2;t=60`, answer.Header.Get("RateLimit"), "not blocked, but too much is asked for")
}

// TestProblems: what cannot be answered is a problem of RFC 9457, whose status says whose mistake it is.
func TestProblems(t *testing.T) {
	p := open(t, nil)
	p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m")
	p.run("LPUSH", "list", "x")
	p.run("SET", "text", "x")
	for _, tt := range []struct {
		method, target string
		status         int
		detail         string
	}{
		{"GET", "/", 404, "the paths are /check and /openapi.json"},
		{"POST", "/openapi.json", 405, "use GET or HEAD"},
		{"PUT", "/check?policy=user&key=1", 405, "use GET, HEAD or POST"},
		{"GET", "/check", 400, "there must be a key for each policy, and at least one of both"},
		{"GET", "/check?policy=user", 400, "there must be a key for each policy, and at least one of both"},
		{"GET", "/check?policy=user&key=1&key=2", 400, "there must be a key for each policy, and at least one of both"},
		{"GET", "/check?policy=user&key=1&cost=x", 400, `cost "x" is not an integer`},
		{"GET", "/check?policy=user&key=1&cost=-20", 400, "cost -20 is below 0; give back with RL.TAKE"},
		{"GET", "/check?policy=user&key=", 400, `the key for policy "user" is empty`},
		{"GET", "/check?policy=user&key", 400, `the key for policy "user" is empty`},
		{"GET", "/check?policy=site&key=all&policy=user&key=", 400, `the key for policy "user" is empty`},
		{"GET", "/check?policy=user&key=1&cost=1&cost=2", 400, "there must be one cost, or one for each policy"},
		{"GET", "/check?policy=user&key=1&peek=yes", 400, "peek must be 0 or 1"},
		{"GET", "/check?policy=user&key=1&format=xml", 400, "format must be text or json"},
		{"GET", "/check?policy=user&key=1&polciy=x", 400, `unknown parameter "polciy", use policy, key, cost, peek or format`},
		{"GET", "/check?policy=user&key={header:X-Key}", 400, "the request has no value for {header:X-Key}"},
		{"GET", "/check?policy=user&key={header:Host}", 400,
			"key has {header:Host}, which names whom the gateway asks, use {host} for the host that its client asks for"},
		{"GET", "/check?policy=user&key={cleint}", 400, "key has {cleint}, use {client}, {client/64}, {header:NAME}, {method}, {host} or {path}, and {{ for a brace"},
		{"GET", "/check?policy=user&key={client", 400, `key "{client" lacks a closing brace`},
		{"GET", "/check?%zz", 400, `the query cannot be read: invalid URL escape "%zz"`},
		{"GET", "/check?policy=nobody&key=1", 404, "ERR no such policy 'nobody'"},
		{"GET", "/check?policy=user&key=1&policy=user&key=1", 400, "ERR duplicate key '1'"},
		{"GET", "/check?policy=user&key=list", 409, "WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"GET", "/check?policy=user&key=text", 409, "ERR the key holds a value that is no limiter's state"},
		{"GET", "/check?" + strings.Repeat("policy=user&key=1&", 33), 400, "a check can have at most 32 policies"},
	} {
		answer, body := p.ask(tt.method, tt.target)
		require.Equal(t, tt.status, answer.StatusCode, tt.target)
		require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"), tt.target)
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"), tt.target)
		var got struct {
			Status        int
			Title, Detail string
		}
		require.NoError(t, json.Unmarshal([]byte(body), &got), tt.target)
		require.Equal(t, tt.status, got.Status, tt.target)
		require.NotEmpty(t, got.Title, tt.target)
		require.Equal(t, tt.detail, got.Detail, tt.target)
	}
}

// TestRights: a check may do what its user may, over the Redis protocol as here.
func TestRights(t *testing.T) {
	p := open(t, nil)
	p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m")
	p.run("ACL", "SETUSER", "edge", "on", ">secret", "~edge:*", "+@throttle")
	answer, _ := p.ask("GET", "/check?policy=user&key=1", "Authorization", "Basic bm9ib2R5Om5vdGhpbmc=")
	require.Equal(t, http.StatusOK, answer.StatusCode, "while no password is needed, a header that is meant for others is not looked at")

	p.run("ACL", "SETUSER", "default", ">other", "resetkeys")
	answer, _ = p.ask("GET", "/check?policy=user&key=1")
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.Contains(t, answer.Header.Get("WWW-Authenticate"), "Basic")
	ask := func(user, password, key string) (int, string) {
		request, err := http.NewRequest("GET", "http://headgate/check?policy=user&key="+key, nil)
		require.NoError(t, err)
		request.SetBasicAuth(user, password)
		answer, err := p.client.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	status, body := ask("edge", "secret", "edge:1")
	require.Equal(t, http.StatusOK, status, body)
	status, _ = ask("edge", "secret", "other:1")
	require.Equal(t, http.StatusForbidden, status)
	status, _ = ask("edge", "wrong", "edge:1")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = ask("edge", "secret", "edge:1")
	require.Equal(t, http.StatusOK, status)

	inner := netpoll.NewInner(p.srv.WithoutBackgroundWork(), "127.0.0.1:0", "127.0.0.1:0")
	defer inner.Close()
	whole := func(b []byte) bool { return strings.Count(string(b), "\r\n") == 1 }
	for i, step := range []struct {
		command, reply string
		password       string // with which is asked then,
		status         int    // and this is the answer
	}{
		{"AUTH other", "+OK", "secret", http.StatusOK},
		{"ACL SETUSER edge off", "+OK", "secret", http.StatusUnauthorized},
		{"ACL SETUSER edge on", "+OK", "secret", http.StatusOK},
		{"ACL SETUSER edge <secret >second", "+OK", "secret", http.StatusUnauthorized},
		{"ACL SETUSER edge <secret", "-ERR Error in ACL SETUSER modifier '<secret': The password you are trying to remove from the user does not exist", "second", http.StatusOK},
		{"ACL SETUSER edge resetpass", "+OK", "second", http.StatusUnauthorized},
		{"ACL SETUSER edge >secret", "+OK", "secret", http.StatusOK},
		{"ACL DELUSER edge", ":1", "secret", http.StatusUnauthorized},
	} {
		reply, err := inner.Do(context.Background(), []byte(step.command+"\r\n"), whole)
		require.NoError(t, err)
		require.Equal(t, step.reply+"\r\n", string(reply))
		status, _ = ask("edge", step.password, "edge:"+strconv.Itoa(i))
		require.Equal(t, step.status, status, step.command)
	}
}

// TestOtherSites: where no password is needed, no page of another site has a browser charge limits. A gateway may, which passes on what its client's browser
// has sent.
func TestOtherSites(t *testing.T) {
	open, closed := newServer(t, false), newServer(t, true)
	const browser = "127.0.0.1:50000"
	password := http.Header{"Authorization": {"Basic ZGVmYXVsdDo="}}
	for _, tt := range []struct {
		server *httpcheck.Server
		peer   string
		site   string
		more   http.Header
		status int
	}{
		{open, browser, "cross-site", nil, http.StatusForbidden},
		{open, browser, "cross-site", password, http.StatusForbidden}, // which is not looked at
		{open, browser, "cross-site", http.Header{"X-Forwarded-For": {"192.0.2.1"}}, http.StatusOK},
		{open, browser, "cross-site", http.Header{"X-Original-Uri": {"/"}}, http.StatusOK},
		{open, "@", "cross-site", nil, http.StatusOK}, // no browser asks on a Unix socket
		{open, browser, "none", nil, http.StatusOK},
		{open, browser, "same-origin", nil, http.StatusOK},
		{open, browser, "", nil, http.StatusOK},
		{closed, browser, "cross-site", nil, http.StatusUnauthorized},
		{closed, browser, "cross-site", password, http.StatusOK},
	} {
		r := httptest.NewRequest("GET", "/check?policy=user&key=42", nil)
		r.RemoteAddr = tt.peer
		maps.Copy(r.Header, tt.more)
		if tt.site != "" {
			r.Header.Set("Sec-Fetch-Site", tt.site)
		}
		w := httptest.NewRecorder()
		tt.server.ServeHTTP(w, r)
		require.Equal(t, tt.status, w.Code, "%v: %s", tt, w.Body)
		if tt.status == http.StatusForbidden {
			require.Contains(t, w.Body.String(), "Sec-Fetch-Site is cross-site")
		}
	}
	r := httptest.NewRequest("OPTIONS", "/check?policy=user&key=42", nil)
	r.Header.Set("Access-Control-Request-Headers", "x-forwarded-for")
	w := httptest.NewRecorder()
	open.ServeHTTP(w, r)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code, "a page may not add a header")
	require.Empty(t, w.Header().Get("Access-Control-Allow-Headers"))
}

// TestPlaces: keys are filled in from what the gateway says of its client's request.
func TestPlaces(t *testing.T) {
	p := open(t, nil)
	p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m")
	for _, tt := range []struct {
		key, want string
		header    []string
	}{
		{"{client}", "203.0.113.9", []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.9"}},
		{"{client}", "203.0.113.9", []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-For", "203.0.113.9:4711"}},
		{"{client/64}", "2001:db8:1:2::/64", []string{"X-Forwarded-For", "2001:db8:1:2:3:4:5:6"}},
		{"{client/64}", "203.0.113.9", []string{"X-Forwarded-For", "::ffff:203.0.113.9"}},
		{"a:{header:X-Key}:b", "a:k1:b", []string{"X-Key", "k1"}},
		{"{header:X-Key|header:Y|client}", "7", []string{"Y", "7"}},
		{"{header:X-Key|client}", "192.0.2.1", []string{"X-Forwarded-For", "192.0.2.1"}},
		{"{method} {host}{path}", "DELETE api.example/v1/x", []string{"X-Forwarded-Method", "DELETE", "X-Forwarded-Host", "api.example", "X-Forwarded-Uri", "/v1/x?y=z"}},
		{"{method}", "PUT", []string{"X-Original-Method", "PUT"}},
		{"{path}", "/a b", []string{"X-Original-URI", "/a%20b?c"}},
		{"{path}", "/login", []string{"X-Original-URI", "/login#1"}},
		{"{path}", "/login", []string{"X-Original-URI", "/login#1?x"}},
		{"{path}", "/login", []string{"X-Original-URI", "/login?x#1"}},
		{"{path}", "/login", []string{"X-Original-URI", "//login"}},
		{"{path}", "/login", []string{"X-Original-URI", "/./login"}},
		{"{path}", "/login", []string{"X-Original-URI", "/a/../login"}},
		{"{path}", "/login", []string{"X-Original-URI", "/%2e%2E//login"}},
		{"{path}", "/login", []string{"X-Original-URI", "http://api.example/a/../login?x"}},
		{"{path}", "/login/", []string{"X-Original-URI", "/login//"}},
		{"{path}", "/login/", []string{"X-Original-URI", "/login/."}},
		{"{path}", "/login/", []string{"X-Original-URI", "/login/a/.."}},
		{"{path}", "/", []string{"X-Original-URI", "/login/.."}},
		{"{path}", "/", []string{"X-Original-URI", "//"}},
		{"{path}", "/a#b", []string{"X-Original-URI", "/a%23b"}},
		{"{path}", "/a/%zz", []string{"X-Original-URI", "//a/%zz#1"}},
		{"{path}", "*", []string{"X-Original-URI", "*"}},
		{"{{tag}:1", "{tag}:1", nil},
	} {
		target := "/check?policy=user&format=json&peek=1&key=" + strings.NewReplacer(" ", "%20").Replace(tt.key)
		answer, body := p.ask("GET", target, tt.header...)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", tt.key, body)
		var got struct{ Limits []struct{ Key string } }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, tt.want, got.Limits[0].Key, tt.key)
	}
}

// TestMissingPlaces: a value that the gateway has not forwarded is a problem, and never that of the check itself, which all clients share.
func TestMissingPlaces(t *testing.T) {
	p := open(t, nil)
	p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m")
	for _, place := range []string{"{client}", "{client/64}", "{method}", "{host}", "{path}", "{header:X-Key|client}"} {
		answer, body := p.ask("GET", "/check?policy=user&key="+place)
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, "%s: %s", place, body)
		require.Contains(t, body, "the request has no value for "+place)
	}
	for _, forwarded := range []string{"", "nonsense", "192.0.2.1, unknown", "unix:", "192.0.2.1,"} {
		for _, place := range []string{"{client}", "{client/64}"} {
			answer, body := p.ask("GET", "/check?policy=user&key="+place, "X-Forwarded-For", forwarded)
			require.Equal(t, http.StatusBadRequest, answer.StatusCode, "%q: %s", forwarded, body)
		}
	}
	answer, body := p.ask("GET", "/check?policy=user&key={client|header:X-Key}", "X-Forwarded-For", "unix:", "X-Key", "k1")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
}

// TestLimitHoldsUnderManyClients: 50 clients together get exactly what the limit allows.
func TestLimitHoldsUnderManyClients(t *testing.T) {
	const limit, clients, each = 500, 50, 40
	p := open(t, nil)
	p.run("RL.POLICY", "SET", "user", "FIXED", fmt.Sprint(limit), "1h")
	var allowed, limited atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for range each {
				answer, err := p.client.Get("http://headgate/check?policy=user&key=all")
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				switch answer.StatusCode {
				case http.StatusOK:
					allowed.Add(1)
				case http.StatusTooManyRequests:
					limited.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.EqualValues(t, limit, allowed.Load())
	require.EqualValues(t, clients*each-limit, limited.Load())
}

// TestOpenAPI: the document describes every parameter and status that there is.
func TestOpenAPI(t *testing.T) {
	p := open(t, nil)
	answer, body := p.ask("GET", "/openapi.json")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
			Responses  map[string]any
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &document))
	check := document.Paths["/check"]["get"]
	var names []string
	for _, parameter := range check.Parameters {
		names = append(names, parameter.Name)
	}
	require.Equal(t, []string{"policy", "key", "cost", "peek", "format"}, names)
	for _, status := range httpcheck.Statuses {
		require.Contains(t, check.Responses, fmt.Sprint(status))
	}
	require.Len(t, check.Responses, len(httpcheck.Statuses))
}

// TestProtectedMode: without a password only this machine may ask.
func TestProtectedMode(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	free := ln.Addr().(*net.TCPAddr)
	require.NoError(t, ln.Close())
	p := open(t, func(cfg *config.Config) { cfg.HTTPBind, cfg.HTTPPort = []string{"127.0.0.1"}, free.Port })
	answer, err := http.Get("http://" + free.String() + "/check?policy=nobody&key=1")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNotFound, answer.StatusCode, "asked, and there is no such policy")
	_ = p
}

var silent = flag.Int("httpcheck.silent", 1500, "connections that say nothing")

// TestSilentConnections: connections that say nothing, or half a request, keep nobody from being answered, and cost no client its connection that has
// asked before.
func TestSilentConnections(t *testing.T) {
	path := ""
	p := open(t, func(cfg *config.Config) { path = cfg.HTTPUnixSocket })
	require.Equal(t, "+OK\r\n", p.run("RL.POLICY", "SET", "user", "FIXED", "3", "1m"))
	own, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer own.Close()
	answers := bufio.NewReader(own)
	ask := func() {
		t.Helper()
		_, err := io.WriteString(own, "GET /check?policy=user&key=own&peek=1 HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		answer, err := http.ReadResponse(answers, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	ask()
	for i := range *silent {
		var conn net.Conn
		require.Eventually(t, func() bool { // until there is room among those that the kernel has waiting
			conn, err = net.Dial("unix", path)
			return err == nil
		}, 20*time.Second, time.Millisecond)
		defer conn.Close()
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "GET /check?policy=user&key=") // it may have been closed
		}
	}
	ask()
	answer, body := p.ask("GET", "/check?policy=user&key=new")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
}
