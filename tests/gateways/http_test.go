package gateways

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// place is where a gateway listens, and what it knows of.
type place struct{ listen, checks, redis, behind, patience string }

// try runs a gateway before a headgate, which limits as many requests as it should; and before one that does not answer, and then is gone, when
// requests pass or not.
func try(t *testing.T, passWithoutAnswer bool, start func(t *testing.T, at place), paths ...string) {
	behind, reached := upstream(t)
	headgate, checks := server(t, limit)
	at := place{listen: address(t), behind: behind, checks: checks, redis: headgate.Addr, patience: patience}
	start(t, at)
	for _, path := range paths {
		drive(t, reached, "http://"+at.listen+path)
	}

	at.listen, at.patience = address(t), ""
	start(t, at)
	requireWithoutAnswer := func(when string) {
		client := http.Client{Timeout: waitLimit}
		began := time.Now()
		answer, err := client.Post("http://"+at.listen+paths[0], "text/plain", strings.NewReader("body"))
		require.NoError(t, err, when)
		t.Logf("%s the answer takes %v", when, time.Since(began).Round(time.Millisecond))
		require.NoError(t, answer.Body.Close())
		require.Equal(t, passWithoutAnswer, answer.StatusCode == http.StatusOK, "%s the status is %d", when, answer.StatusCode)
		require.True(t, passWithoutAnswer || answer.StatusCode >= 500, "%s the status is %d", when, answer.StatusCode)
	}
	require.NoError(t, headgate.Stall())
	requireWithoutAnswer("while headgate hangs")
	headgate.Kill()
	requireWithoutAnswer("when headgate is gone")
}

// patience takes the place of the time limits of a configuration where no check may be too late: the machine may be slow.
const patience = "20s"

// patient is a configuration with these time limits.
func (at place) patient(configuration string) string {
	if at.patience == "" {
		return configuration
	}
	return strings.ReplaceAll(configuration, "50ms", at.patience)
}

// startNginx runs nginx with a file of conf.d.
func startNginx(t *testing.T, nginx, listen, modules, site string) {
	dir := t.TempDir()
	write(t, dir, "site.conf", site)
	path := write(t, dir, "nginx.conf", fmt.Sprintf(`
%[2]s
pid %[1]s/pid;
error_log stderr warn;
events {}
http {
    access_log off;
    client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
    include %[1]s/site.conf;
}`, dir, modules))
	run(t, listen, nginx, "-p", dir, "-c", path, "-e", "stderr", "-g", "daemon off;")
}

// startNginxSite runs nginx with the file for the HTTP check.
func startNginxSite(t *testing.T, nginx string, at place, replace ...string) {
	startNginx(t, nginx, at.listen, "", at.patient(configuration(t, "nginx.conf", append([]string{"127.0.0.1:8080", at.listen, "127.0.0.1:9122", at.checks,
		"127.0.0.1:8000", at.behind}, replace...)...)))
}

func TestNginx(t *testing.T) {
	nginx := program(t, "nginx")
	try(t, true, func(t *testing.T, at place) { startNginxSite(t, nginx, at) }, "/hello")
	// And as docs/gateways.md says to refuse requests without an answer.
	try(t, false, func(t *testing.T, at place) {
		const passes = "       # without an answer requests pass"
		startNginxSite(t, nginx, at, "proxy_pass http://"+at.behind+";"+passes, "return 503;"+passes)
	}, "/hello")
}

// TestNginxKeys: with the configuration that docs/http.md shows, what a client sends is its key, whatever it is, and nothing else. Limits reach the client.
func TestNginxKeys(t *testing.T) {
	nginx := program(t, "nginx")
	page, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "http.md"))
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(page), "```nginx\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	behind, _ := upstream(t)
	_, checks := server(t, 2)
	at := place{listen: address(t), checks: checks, patience: patience}
	site := configuration(t, "nginx.conf", "127.0.0.1:8080", at.listen, "127.0.0.1:8000", behind)
	before, check, found := strings.Cut(site, "    location = /_check {")
	require.True(t, found)
	_, after, _ := strings.Cut(check, "    }\n")
	require.Contains(t, shown, "127.0.0.1:9122")
	startNginx(t, nginx, at.listen, "", at.patient(before+strings.ReplaceAll(shown, "127.0.0.1:9122", checks)+after))

	get := func(query string, header ...string) *http.Response {
		request, err := http.NewRequest(http.MethodGet, "http://"+at.listen+"/hello"+query, nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer, err := (&http.Client{Timeout: waitLimit}).Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer
	}
	for _, key := range []string{"evil&cost=0", "&cost=-20", "x#", "a b%26c"} {
		for n, status := range []int{200, 200, 429} {
			answer := get("?cost=0", "X-Api-Key", key)
			require.Equal(t, status, answer.StatusCode, "%q, request %d", key, n)
			require.Equal(t, `"user";q=2;w=3600`, answer.Header.Get("RateLimit-Policy"))
			require.Contains(t, answer.Header.Get("RateLimit"), fmt.Sprintf("r=%d;", max(1-n, 0)))
		}
	}
	// Without a key it is the address, of which a client cannot say another.
	for n, status := range []int{200, 200, 429} {
		require.Equal(t, status, get("", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", n)).StatusCode)
	}
}

// TestCaddyOnce: an answer of headgate's that is none lets a request pass, and a service that fails after its check is not asked again.
func TestCaddyOnce(t *testing.T) {
	caddy := program(t, "caddy")
	var asked atomic.Int64
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer broken.Close()
	status := new(atomic.Int64)
	checks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	defer checks.Close()
	at := place{listen: address(t), checks: checks.Listener.Addr().String(), behind: broken.Listener.Addr().String(), patience: patience}
	startCaddy(t, caddy, at)
	for _, code := range []int64{200, 503} {
		status.Store(code)
		asked.Store(0)
		answer, err := http.Post("http://"+at.listen+"/", "text/plain", strings.NewReader("body"))
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusBadGateway, answer.StatusCode)
		require.EqualValues(t, 1, asked.Load(), "after a check that answers %d", code)
	}
}

// luaModules are what nginx needs for nginx-lua.conf.
var luaModules = []string{"/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so", "/usr/share/lua/5.1/nginx/redis.lua"}

// TestNginxLua: nginx's Lua module asks in Redis's protocol, with lua-resty-redis.
func TestNginxLua(t *testing.T) {
	nginx := program(t, "nginx", luaModules...)
	try(t, true, func(t *testing.T, at place) { startNginxLua(t, nginx, at) }, "/hello", "/login")
}

func startNginxLua(t *testing.T, nginx string, at place, replace ...string) {
	_, port := split(t, at.redis)
	site := configuration(t, "nginx-lua.conf", append([]string{"127.0.0.1:8080", at.listen, `"127.0.0.1", 6379`, `"127.0.0.1", ` + port,
		"127.0.0.1:8000", at.behind}, replace...)...)
	startNginx(t, nginx, at.listen, "load_module "+luaModules[0]+";\nload_module "+luaModules[1]+";", site)
}

func TestCaddy(t *testing.T) {
	caddy := program(t, "caddy")
	try(t, true, func(t *testing.T, at place) { startCaddy(t, caddy, at) }, "/hello")
}

func startCaddy(t *testing.T, caddy string, at place, replace ...string) {
	site := at.patient(configuration(t, "Caddyfile", append([]string{"127.0.0.1:8080", at.listen, "127.0.0.1:9122", at.checks, "127.0.0.1:8000", at.behind},
		replace...)...))
	path := write(t, t.TempDir(), "Caddyfile", "{\n\tadmin off\n}\n"+site)
	run(t, at.listen, caddy, "run", "--adapter", "caddyfile", "--config", path)
}

func TestHAProxy(t *testing.T) {
	haproxy := program(t, "haproxy")
	try(t, true, func(t *testing.T, at place) { startHAProxy(t, haproxy, at) }, "/hello")
}

func startHAProxy(t *testing.T, haproxy string, at place, replace ...string) {
	dir := t.TempDir()
	_, port := split(t, at.listen)
	socket := "abns@headgate-" + port // which all of the machine see
	lua := configuration(t, "haproxy.lua", "abns@headgate", socket)
	if at.patience != "" {
		lua = strings.ReplaceAll(lua, "timeout = 500", "timeout = 20000")
	}
	site := at.patient(configuration(t, "haproxy.cfg", append([]string{"127.0.0.1:8080", at.listen, "abns@headgate", socket,
		"/etc/haproxy/haproxy.lua", write(t, dir, "haproxy.lua", lua), "127.0.0.1:9122", at.checks, "127.0.0.1:8000", at.behind}, replace...)...))
	run(t, at.listen, haproxy, "-db", "-f", write(t, dir, "haproxy.cfg", site))
}

// TestHAProxyAsksOnce: a check without an answer is not repeated, since each further attempt would have the client wait as long again.
func TestHAProxyAsksOnce(t *testing.T) {
	haproxy := program(t, "haproxy")
	behind, _ := upstream(t)
	for name, answer := range map[string]func(net.Conn){"hangs": func(net.Conn) {}, "ends": func(c net.Conn) { _ = c.Close() }} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			var asked atomic.Int64
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					asked.Add(1)
					answer(c)
				}
			}()
			at := place{listen: address(t), checks: listener.Addr().String(), behind: behind}
			startHAProxy(t, haproxy, at)
			began := time.Now()
			require.Equal(t, http.StatusOK, send(t, one, at.listen, nil).StatusCode)
			t.Logf("it takes %v", time.Since(began).Round(time.Millisecond))
			require.EqualValues(t, 1, asked.Load())
		})
	}
}

// TestVarnish: Varnish asks in Redis's protocol, with libvmod-redis.
func TestVarnish(t *testing.T) {
	slow(t)
	modules, err := filepath.Glob("/usr/lib/*/varnish/vmods/libvmod_redis.so")
	require.NoError(t, err)
	if len(modules) == 0 {
		t.Skip("libvmod-redis is not installed: `make gateways` brings it")
	}
	varnish := program(t, "varnishd")
	try(t, true, func(t *testing.T, at place) {
		host, port := split(t, at.behind)
		dir := t.TempDir()
		path := write(t, dir, "varnish.vcl", configuration(t, "varnish.vcl", `"127.0.0.1";`, fmt.Sprintf("%q;", host), `"8000"`, fmt.Sprintf("%q", port), "127.0.0.1:6379", at.redis))
		run(t, at.listen, varnish, "-F", "-j", "none", "-n", filepath.Join(dir, "work"), "-a", at.listen, "-T", "none", "-s", "malloc,16m", "-f", path)
	}, "/hello")
}
