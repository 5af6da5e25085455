package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestPrometheus: a real Prometheus, with the settings of the compose file's, scrapes the server, evaluates the alert rules without an error, and answers each of the
// dashboard's queries.
func TestPrometheus(t *testing.T) {
	program := tool(t, "prometheus")
	target := measured(t)
	dir := t.TempDir()
	settings := strings.NewReplacer("15s", "200ms", "headgate:9121", target, "/etc/prometheus", filepath.Join(harness.Root(t), "deploy", "prometheus")).
		Replace(read(t, "deploy", "compose", "prometheus.yml"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(settings), 0o644))
	addr := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	cmd := exec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+addr, "--log.level=warn")
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	ask := func(path string, into any) bool {
		reply, err := http.Get("http://" + addr + path)
		if err != nil {
			return false
		}
		defer reply.Body.Close()
		return reply.StatusCode == http.StatusOK && json.NewDecoder(reply.Body).Decode(into) == nil
	}
	type answer struct {
		Status string
		Data   struct{ Result []any }
	}
	const enough = "/api/v1/query?query=" // two scrapes, so that there are rates
	require.Eventually(t, func() bool {
		var a answer
		return ask(enough+url.QueryEscape(`rate(redis_commands_processed_total[1m])`), &a) && len(a.Data.Result) == 1
	}, time.Minute, 50*time.Millisecond, "Prometheus has no samples of %s", target)
	rules, dashboard := expressions(t)
	for _, expr := range append(rules, dashboard...) {
		var a answer
		require.True(t, ask("/api/v1/query?query="+url.QueryEscape(expr), &a), expr)
		require.Equal(t, "success", a.Status, expr)
	}
	for _, expr := range []string{"headgate_ready", "sum by (result) (rate(headgate_limiter_calls_total[1m]))", "redis_memory_used_rss_bytes", `up{job="headgate"} == 1`} {
		var a answer
		require.True(t, ask("/api/v1/query?query="+url.QueryEscape(expr), &a))
		require.NotEmpty(t, a.Data.Result, expr)
	}
	var evaluated struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
	}
	require.Eventually(t, func() bool {
		if !ask("/api/v1/rules", &evaluated) || len(evaluated.Data.Groups) == 0 {
			return false
		}
		for _, rule := range evaluated.Data.Groups[0].Rules {
			if rule.Health == "unknown" {
				return false
			}
		}
		return true
	}, time.Minute, 50*time.Millisecond, "the rules are not evaluated")
	for _, rule := range evaluated.Data.Groups[0].Rules {
		require.Equal(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
		require.NotEqual(t, "firing", rule.State, rule.Name)
	}
}
