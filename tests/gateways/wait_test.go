package gateways

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var waitingRequests = flag.Int("gateways.waiting", 100, "how many requests nginx holds back at once")

// waitBlock is the location that docs/recipes.md shows, with its addresses and its limit replaced.
func waitBlock(t *testing.T, replace ...string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "recipes.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "<!-- tests/gateways/wait_test.go -->\n```nginx\n")
	require.True(t, found)
	block, _, _ := strings.Cut(rest, "```")
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, block, replace[i])
		block = strings.ReplaceAll(block, replace[i], replace[i+1])
	}
	return block
}

// TestNginxHoldsRequests: nginx, by its Lua module, holds all requests above the limit until their turn has come. Each of them passes, none is
// told to come again, and the server is left without a call that waits.
func TestNginxHoldsRequests(t *testing.T) {
	const (
		kit     = "/usr/lib/nginx/modules/ndk_http_module.so" // which the Lua module needs
		module  = "/usr/lib/nginx/modules/ngx_http_lua_module.so"
		library = "/usr/share/lua/5.1/nginx/redis.lua"
	)
	nginx := program(t, "nginx", kit, module, library)
	// At once pass five; the rest takes two seconds, whatever their number.
	rate := *waitingRequests / 2
	headgate := harness.Start(t)
	host, port, err := net.SplitHostPort(headgate.Addr)
	require.NoError(t, err)
	behind, reached := upstream(t)
	listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(harness.FreePort(t)))
	location := waitBlock(t, `"127.0.0.1", 6379`, fmt.Sprintf("%q, %s", host, port), `5, 10, "1s"`, fmt.Sprintf(`5, %d, "1s"`, rate),
		`"10s"`, `"60s"`, "15000", "90000", "127.0.0.1:8000", behind)
	dir := t.TempDir()
	config := fmt.Sprintf(`
load_module %[6]s;
load_module %[4]s;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections %[5]d; }
http {
    access_log off;
    client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
    server {
        listen %[2]s;
        %[3]s
    }
}`, dir, listen, location, module, 4**waitingRequests+100, kit)
	path := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	run(t, listen, nginx, "-p", dir, "-c", path, "-e", "stderr", "-g", "daemon off;")

	var statuses [600]atomic.Int64
	var group sync.WaitGroup
	transport := &http.Transport{}
	client := http.Client{Timeout: 3 * waitLimit, Transport: transport}
	defer transport.CloseIdleConnections()
	for range *waitingRequests {
		group.Go(func() {
			answer, err := client.Get("http://" + listen + "/orders")
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			statuses[answer.StatusCode].Add(1)
		})
	}
	group.Wait()
	require.EqualValues(t, *waitingRequests, statuses[http.StatusOK].Load(), "requests that pass")
	require.EqualValues(t, *waitingRequests, reached.Load(), "requests that reach the service")

	var waited, waiting int64
	for line := range strings.Lines(harness.Dial(t, headgate.Addr).Ask("INFO", "limiters").Text) {
		_, _ = fmt.Sscanf(line, "limiter_waits_passed:%d", &waited)
		_, _ = fmt.Sscanf(line, "limiter_waiting:%d", &waiting)
	}
	t.Logf("%d of %d requests waited", waited, *waitingRequests)
	require.Zero(t, waiting)
	require.Positive(t, waited, "requests that had to wait")
}
