package gateways

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestRspamd: rspamd's rate limits, which are scripts, let as many mails of a sender pass as they say. One client sends them, since rspamd looks at a
// bucket first and fills it when a mail has been scanned.
func TestRspamd(t *testing.T) {
	slow(t)
	rspamd := program(t, "rspamd", "/usr/share/rspamd/plugins/ratelimit.lua")
	redis := harness.Start(t).Addr
	dir, listen := t.TempDir(), address(t)
	write(t, dir, "redis.conf", configuration(t, "rspamd-redis.conf", "127.0.0.1:6379", redis))
	write(t, dir, "ratelimit.conf", configuration(t, "rspamd-ratelimit.conf"))
	write(t, dir, "tld", "com\norg\nnet\n") // what Debian has takes seconds to read
	path := write(t, dir, "rspamd.conf", fmt.Sprintf(`
options { url_tld = "%[1]s/tld"; disable_hyperscan = true; dns { nameserver = ["%[2]s"]; timeout = 0.1s; retransmits = 1; } }
logging { type = "console"; level = "warning"; }
lua = "/usr/share/rspamd/rules/rspamd.lua";
modules { path = "/usr/share/rspamd/plugins/ratelimit.lua"; }
worker "normal" { bind_socket = "%[3]s"; count = 1; }
redis { .include "%[1]s/redis.conf" }
ratelimit { .include "%[1]s/ratelimit.conf" }
`, dir, address(t), listen))
	run(t, listen, rspamd, "-f", "-i", "-c", path, "--var=DBDIR="+dir, "--var=RUNDIR="+dir, "--var=LOGDIR="+dir)

	client := http.Client{Timeout: waitLimit}
	defer client.CloseIdleConnections()
	actions := map[string]int{}
	for range limit + limit/2 {
		actions[scan(t, &client, listen)]++
	}
	require.Equal(t, map[string]int{"no action": limit, "soft reject": limit / 2}, actions)
}

// scan has rspamd look at a mail, and returns what it would have the mail server do.
func scan(t *testing.T, client *http.Client, addr string) (action string) {
	request, err := http.NewRequest(http.MethodPost, "http://"+addr+"/checkv2", strings.NewReader("From: a@example.org\r\nTo: b@example.net\r\nSubject: hello\r\n\r\nhello\r\n"))
	require.NoError(t, err)
	for name, value := range map[string]string{"From": "a@example.org", "Rcpt": "b@example.net", "IP": "192.0.2.1"} {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	var got struct{ Action string }
	require.NoError(t, json.Unmarshal(body, &got), string(body))
	return got.Action
}
