package gateways

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// place is where a gateway listens, and what it knows of.
type place struct{ listen, checks, redis, behind string }

// try runs a gateway before a headgate, and then without one, when requests pass or not.
func try(t *testing.T, passWithoutAnswer bool, start func(t *testing.T, at place), paths ...string) {
	behind, reached := upstream(t)
	at := place{listen: address(t), behind: behind}
	at.checks, at.redis = server(t)
	start(t, at)
	for _, path := range paths {
		drive(t, "http://"+at.listen+path, reached)
	}

	at = place{listen: address(t), checks: address(t), redis: address(t), behind: behind}
	start(t, at)
	answer, err := http.Get("http://" + at.listen + paths[0])
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, passWithoutAnswer, answer.StatusCode == http.StatusOK, "without an answer the status is %d", answer.StatusCode)
	require.True(t, passWithoutAnswer || answer.StatusCode >= 500, "without an answer the status is %d", answer.StatusCode)
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

func TestNginx(t *testing.T) {
	nginx := program(t, "nginx")
	site := func(at place) string {
		return configuration(t, "nginx.conf", "127.0.0.1:8080", at.listen, "127.0.0.1:9122", at.checks, "127.0.0.1:8000", at.behind)
	}
	try(t, false, func(t *testing.T, at place) { startNginx(t, nginx, at.listen, "", site(at)) }, "/hello")
	// And as docs/gateways.md says to let requests pass without an answer.
	try(t, true, func(t *testing.T, at place) {
		startNginx(t, nginx, at.listen, "", strings.Replace(site(at), "return 503;", "proxy_pass http://"+at.behind+";", 1))
	}, "/hello")
}

// TestNginxLua: nginx's Lua module asks in Redis's protocol, with lua-resty-redis.
func TestNginxLua(t *testing.T) {
	const lua, keys = "/usr/lib/nginx/modules/ngx_http_lua_module.so", "/usr/lib/nginx/modules/ndk_http_module.so"
	nginx := program(t, "nginx", keys, lua, "/usr/share/lua/5.1/nginx/redis.lua")
	try(t, true, func(t *testing.T, at place) {
		_, port := split(t, at.redis)
		site := configuration(t, "nginx-lua.conf", "127.0.0.1:8080", at.listen, `"127.0.0.1", 6379`, `"127.0.0.1", `+port, "127.0.0.1:8000", at.behind)
		startNginx(t, nginx, at.listen, "load_module "+keys+";\nload_module "+lua+";", site)
	}, "/hello", "/login")
}

func TestCaddy(t *testing.T) {
	caddy := program(t, "caddy")
	try(t, false, func(t *testing.T, at place) {
		site := configuration(t, "Caddyfile", "127.0.0.1:8080", at.listen, "127.0.0.1:9122", at.checks, "127.0.0.1:8000", at.behind)
		path := write(t, t.TempDir(), "Caddyfile", "{\n\tadmin off\n}\n"+site)
		run(t, at.listen, caddy, "run", "--adapter", "caddyfile", "--config", path)
	}, "/hello")
}

func TestHAProxy(t *testing.T) {
	haproxy := program(t, "haproxy")
	try(t, true, func(t *testing.T, at place) {
		dir := t.TempDir()
		lua := write(t, dir, "haproxy.lua", configuration(t, "haproxy.lua", "127.0.0.1:9122", at.checks))
		path := write(t, dir, "haproxy.cfg", configuration(t, "haproxy.cfg", "127.0.0.1:8080", at.listen, "/etc/haproxy/haproxy.lua", lua, "127.0.0.1:8000", at.behind))
		run(t, at.listen, haproxy, "-db", "-f", path)
	}, "/hello")
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
