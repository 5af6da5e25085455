package gateways

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// Credentials of a gateway, as the files of deploy/gateways show them.
const (
	loginHeader = "Basic ZWRnZTpzZWNyZXQ="
	otherHeader = "Basic b3RoZXI6Z3Vlc3M="
)

// checkGateway is a gateway that uses the HTTP check, and the change of its file that docs/gateways.md says for a password.
type checkGateway struct {
	name, file   string
	before, with string
	start        func(t *testing.T, program string, at place, replace ...string)
}

var checkGateways = []checkGateway{
	{"nginx", "nginx.conf", `Authorization ""`, `Authorization "` + loginHeader + `"`, startNginxSite},
	{"caddy", "Caddyfile", "header_up -Authorization", `header_up Authorization "` + loginHeader + `"`, startCaddy},
	{"haproxy", "haproxy.cfg", "#http-request set-header Authorization", "http-request set-header Authorization", startHAProxy},
}

// recorded is a service that keeps the Authorization fields of its requests.
func recorded(t *testing.T) (addr string, fields func() []string) {
	var mu sync.Mutex
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, strings.Join(r.Header.Values("Authorization"), ","))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// TestClientsLoginStaysOut: what a client sends as Authorization reaches the service behind the gateway, and never the check: else anybody could guess
// headgate's passwords.
func TestClientsLoginStaysOut(t *testing.T) {
	for _, g := range checkGateways {
		t.Run(g.name, func(t *testing.T) {
			path := program(t, g.name)
			behind, servicesSaw := recorded(t)
			checks, checksSaw := recorded(t)
			at := place{listen: address(t), behind: behind, checks: checks, patience: patience}
			g.start(t, path, at)
			require.Equal(t, http.StatusOK, send(t, one, at.listen, http.Header{"Authorization": {otherHeader}}).StatusCode)
			require.Equal(t, []string{otherHeader}, servicesSaw())
			require.Equal(t, []string{""}, checksSaw())
		})
	}
}

// TestGatewaysLogIn: with a password, the files limit as docs/gateways.md changes them, whatever the client sends; unchanged they let all requests pass, and ask
// no client for a password.
func TestGatewaysLogIn(t *testing.T) {
	for _, g := range checkGateways {
		t.Run(g.name, func(t *testing.T) {
			path := program(t, g.name)
			behind, _ := upstream(t)
			headgate, checks := server(t, 1)
			c := harness.Dial(t, headgate.Addr)
			c.Ask("ACL", "SETUSER", "edge", "on", ">secret", "~*", "+@throttle")
			c.Ask("CONFIG", "SET", "requirepass", "another")
			login := http.Header{"Authorization": {otherHeader}}

			at := place{listen: address(t), behind: behind, checks: checks, patience: patience}
			g.start(t, path, at)
			for range 2 {
				answer := send(t, one, at.listen, login)
				require.Equal(t, http.StatusOK, answer.StatusCode)
				require.Empty(t, answer.Header.Get("WWW-Authenticate"))
			}
			at.listen = address(t)
			g.start(t, path, at, g.before, g.with)
			require.Equal(t, http.StatusOK, send(t, one, at.listen, login).StatusCode)
			require.Equal(t, http.StatusTooManyRequests, send(t, one, at.listen, login).StatusCode)
		})
	}
}

// TestMissingPolicyPasses: while the policy does not exist, requests pass.
func TestMissingPolicyPasses(t *testing.T) {
	for _, g := range checkGateways {
		t.Run(g.name, func(t *testing.T) {
			path := program(t, g.name)
			behind, _ := upstream(t)
			checks := address(t)
			_, port := split(t, checks)
			harness.Start(t, "--http-port", port)
			at := place{listen: address(t), behind: behind, checks: checks, patience: patience}
			g.start(t, path, at)
			for range 2 {
				require.Equal(t, http.StatusOK, send(t, one, at.listen, nil).StatusCode)
			}
		})
	}
}

// TestNginxLuaLogsIn: with a password, the file's commented line logs in.
func TestNginxLuaLogsIn(t *testing.T) {
	nginx := program(t, "nginx", luaModules...)
	behind, _ := upstream(t)
	headgate := harness.Start(t)
	c := harness.Dial(t, headgate.Addr)
	c.Ask("ACL", "SETUSER", "edge", "on", ">secret", "~*", "+@throttle")
	c.Ask("CONFIG", "SET", "requirepass", "another")
	at := place{listen: address(t), behind: behind, redis: headgate.Addr}
	startNginxLua(t, nginx, at, "-- if answer and", "if answer and", "set_timeout(200)", "set_timeout(20000)", `RL.SLIDING", "login:" .. ngx.var.remote_addr, 100`,
		`RL.SLIDING", "login:" .. ngx.var.remote_addr, 1`)
	for n, status := range []int{http.StatusOK, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		answer, err := http.Post("http://"+at.listen+"/login", "text/plain", strings.NewReader("body"))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, status, answer.StatusCode, "request %d", n)
	}
}
