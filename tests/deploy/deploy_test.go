// Package deploy checks what deploy/ and the Dockerfile say, as far as a machine without a container engine can.
package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"headgate/tests/internal/harness"
)

func read(t testing.TB, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{harness.Root(t)}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// tool is the path of a program, without which the test is skipped.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// measured starts a server with an HTTP port, lets it count something of each kind, and returns the port's address.
func measured(t testing.TB) (addr string) {
	t.Helper()
	port := harness.FreePort(t)
	rates := filepath.Join(t.TempDir(), "rates.yaml")
	require.NoError(t, os.WriteFile(rates, []byte("domain: shop"), 0o600))
	server := harness.Start(t, "--metrics-port", fmt.Sprint(port), "--metrics-bind", "127.0.0.1",
		"--rls-port", fmt.Sprint(harness.FreePort(t)), "--rls-config", rates, "--http-port", fmt.Sprint(harness.FreePort(t)))
	c := harness.Dial(t, server.Addr)
	for _, command := range []string{"RL.POLICY SET user GCRA 10 5 1s", "RL.TAKE 1 user u", "RL.GCRA w 1 1 20ms", "RL.GCRA w 1 1 20ms WAIT 5s", "CL.THROTTLE k 0 1 60", "CL.THROTTLE k 0 1 60", "SET a b PX 100000", "GET", "PING"} {
		c.Do(strings.Fields(command)...)
	}
	harness.Start(t, "--replicaof", "127.0.0.1", fmt.Sprint(server.Port)) // some figures are of replicas
	require.Eventually(t, func() bool { return c.Ask("WAIT", "1", "1000").Text == "1" }, 20*time.Second, 10*time.Millisecond, "a replica follows")
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// measuredGateway is measured for a gateway.
func measuredGateway(t testing.TB) (addr string) {
	t.Helper()
	port := harness.FreePort(t)
	harness.Start(t, "--upstream", "redis://"+harness.Start(t).Addr, "--metrics-port", fmt.Sprint(port), "--metrics-bind", "127.0.0.1")
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func get(t testing.TB, url string) string {
	t.Helper()
	reply, err := http.Get(url)
	require.NoError(t, err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, reply.StatusCode, string(body))
	return string(body)
}

// expressions are all queries of the alert rules and the dashboard.
func expressions(t testing.TB) (rules, dashboard []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "headgate.rules.yaml")), &file))
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules = append(rules, rule.Expr)
		}
	}
	var board struct {
		Panels []struct {
			ID      int
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy", "grafana", "headgate.json")), &board))
	for _, panel := range board.Panels {
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, "panel %d", panel.ID)
		for _, target := range panel.Targets {
			dashboard = append(dashboard, strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m").Replace(target.Expr))
			require.NotRegexp(t, `\[\d+[smh]\]`, target.Expr, "a period that does not follow the width of the graph")
		}
	}
	require.NotEmpty(t, rules)
	require.NotEmpty(t, dashboard)
	return rules, dashboard
}

// TestMetricsExist: each metric and label that rules, dashboard and documents name is one that the server has.
func TestMetricsExist(t *testing.T) {
	metrics := get(t, "http://"+measured(t)+"/metrics") + get(t, "http://"+measuredGateway(t)+"/metrics")
	exists := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		exists[found[1]] = true
		if found[2] == "histogram" {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				exists[found[1]+part] = true
			}
		}
	}
	labels := map[string]bool{"instance": true, "job": true}
	for _, found := range regexp.MustCompile(`[{,]([a-z_]+)="`).FindAllStringSubmatch(metrics, -1) {
		labels[found[1]] = true
	}
	rules, dashboard := expressions(t)
	text := strings.Join(append(rules, dashboard...), "\n")
	for _, name := range regexp.MustCompile(`\b(?:headgate|redis)_[a-z_]+`).FindAllString(text+read(t, "docs", "operations.md"), -1) {
		require.True(t, exists[name], "there is no metric %s", name)
	}
	for _, found := range regexp.MustCompile(`by \(([a-z, ]+)\)|[{,]([a-z]+)=~?"`).FindAllStringSubmatch(text, -1) {
		for label := range strings.SplitSeq(found[1]+found[2], ",") {
			require.True(t, labels[strings.TrimSpace(label)], "no metric has the label %s", label)
		}
	}
}

// TestChartHasTheRules: a chart holds its own copy, since it is installed without the rest of the repository.
func TestChartHasTheRules(t *testing.T) {
	require.Equal(t, read(t, "deploy", "prometheus", "headgate.rules.yaml"), read(t, "deploy", "helm", "headgate", "files", "headgate.rules.yaml"))
}

// socketDir is where containers have a directory that they share, which this machine has not.
const socketDir = "/run/headgate"

// checkConfig has the program look at words and variables as it would take them, with another directory for socketDir.
func checkConfig(t *testing.T, args []string, env map[string]string) {
	t.Helper()
	inOther := strings.NewReplacer(socketDir, t.TempDir())
	cmd := exec.Command(harness.Binary(t), "--check-config")
	for _, arg := range args {
		cmd.Args = append(cmd.Args, inOther.Replace(arg))
	}
	cmd.Env = harness.Environment()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+inOther.Replace(value))
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `\Athe configuration is valid\n(a start loads .*\n)?\z`, string(out), "no word of what has no effect")
}

// TestSampleFile: the program takes the files that come with it.
func TestSampleFile(t *testing.T) {
	for _, path := range []string{"headgate.conf", "deploy/packages/headgate.conf"} {
		checkConfig(t, []string{filepath.Join(harness.Root(t), path), "--dir", t.TempDir()}, nil)
	}
}

// TestSidecar: the manifests' sidecars are native ones, and headgate takes their words.
func TestSidecar(t *testing.T) {
	for _, name := range []string{"sidecar.yaml", "gateway.yaml"} {
		t.Run(name, func(t *testing.T) { checkSidecar(t, name) })
	}
}

func checkSidecar(t *testing.T, name string) {
	var manifest struct {
		Spec struct {
			Template struct {
				Metadata struct{ Annotations map[string]string }
				Spec     struct {
					InitContainers []struct {
						RestartPolicy   string `yaml:"restartPolicy"`
						Args            []string
						Env             []struct{ Name string }
						SecurityContext struct {
							ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
						} `yaml:"securityContext"`
					} `yaml:"initContainers"`
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "kubernetes", name)), &manifest))
	sidecar := manifest.Spec.Template.Spec.InitContainers[0]
	require.Equal(t, "Always", sidecar.RestartPolicy)
	require.True(t, sidecar.SecurityContext.ReadOnlyRootFilesystem)
	secrets := map[string]string{}
	for _, variable := range sidecar.Env {
		secrets[variable.Name] = "secret"
	}
	require.Contains(t, secrets, "HEADGATE_METRICS_PAGE_PASSWORD")
	if manifest.Spec.Template.Metadata.Annotations["prometheus.io/scrape"] == "true" {
		require.NotContains(t, secrets, "HEADGATE_METRICS_PASSWORD", "who scrapes by annotations gives no password")
	}
	checkConfig(t, sidecar.Args, secrets)
}

// TestAddressesOfBothFamilies: "*" has IPv4 alone, and some clusters and networks have none; what is behind - may be missing.
func TestAddressesOfBothFamilies(t *testing.T) {
	one := regexp.MustCompile(`"\*"|0\.0\.0\.0`)
	both := regexp.MustCompile(`"\* -::\*"|"\*"\s+- "-::\*"`)
	found := 0
	for _, dir := range []string{"kubernetes", "compose", "helm"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(harness.Root(t), "deploy", dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			found += len(both.FindAll(text, -1))
			require.NotRegexp(t, one, both.ReplaceAllString(string(text), ""), path)
			return err
		}))
	}
	require.GreaterOrEqual(t, found, 9)
}

// TestCompose: the variables are directives, and their values right.
func TestCompose(t *testing.T) {
	for _, name := range []string{"compose.yaml", "gateway.yaml"} {
		t.Run(name, func(t *testing.T) { checkCompose(t, name) })
	}
}

// given finds what a compose file takes from its caller's environment, with a value for its absence or without one.
var given = regexp.MustCompile(`\$\{\w+:[-?]([^}]*)\}`)

func checkCompose(t *testing.T, name string) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			ReadOnly    bool `yaml:"read_only"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "compose", name)), &file))
	service := file.Services["headgate"]
	require.True(t, service.ReadOnly)
	for variable, value := range service.Environment {
		service.Environment[variable] = given.ReplaceAllString(value, "$1")
	}
	service.Environment["HEADGATE_DIR"] = t.TempDir()
	checkConfig(t, nil, service.Environment)
}

// TestUnits: systemd finds nothing wrong with the units, and few ways out of the service's box.
func TestUnits(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	dir := t.TempDir()
	for _, name := range []string{"headgate.service", "headgate.socket"} {
		text := strings.ReplaceAll(read(t, "deploy", "systemd", name), "/usr/local/bin/headgate", harness.Binary(t))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cmd := exec.Command(analyze, "verify", "./headgate.service", "./headgate.socket")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "headgate.", "a complaint about a unit of ours")
	cmd = exec.Command(analyze, "security", "--offline=true", "--threshold=20", "./headgate.service")
	cmd.Dir = dir
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestRules(t *testing.T) {
	cmd := exec.Command(tool(t, "promtool"), "check", "rules", filepath.Join(harness.Root(t), "deploy", "prometheus", "headgate.rules.yaml"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestAlerts: each alert fires for what it is there for, and for nothing else.
func TestAlerts(t *testing.T) {
	cmd := exec.Command(tool(t, "promtool"), "test", "rules", filepath.Join("testdata", "rules.test.yaml"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "deploy", "prometheus", "headgate.rules.yaml"), -1)
	require.NotEmpty(t, alerts)
	for _, found := range alerts {
		require.Contains(t, read(t, "tests", "deploy", "testdata", "rules.test.yaml"), "name: "+found[1]+"\n", "an alert without a test")
	}
}
