package deploy

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"headgate/tests/internal/harness"
)

var failover = flag.Bool("sentinel.failover", false, "have the sentinels of deploy/compose promote the standby, which takes a while")

// composeFile is what the tests look at in a compose file.
type composeFile struct {
	Services map[string]struct {
		Environment map[string]string
		Entrypoint  []string
		Command     []string
		Volumes     []string
		Ports       []string
		ReadOnly    bool `yaml:"read_only"`
	}
	Volumes map[string]any
}

func compose(t *testing.T, name string) (file composeFile) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "compose", name)), &file))
	return file
}

// TestComposeMounts: what containers mount is in the repository or a volume, and nothing is published beyond this machine.
func TestComposeMounts(t *testing.T) {
	for _, name := range []string{"compose.yaml", "gateway.yaml", "sentinel.yaml"} {
		file := compose(t, name)
		for service, of := range file.Services {
			for _, mount := range of.Volumes {
				source, _, _ := strings.Cut(mount, ":")
				if strings.HasPrefix(source, ".") {
					require.FileExists(t, filepath.Join(harness.Root(t), "deploy", "compose", source), service)
				} else {
					require.Contains(t, file.Volumes, source, service)
				}
			}
			for _, port := range of.Ports {
				require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s publishes %s", service, port)
			}
		}
	}
}

// TestComposeMonitoring: Grafana finds Prometheus and the dashboard by what is mounted, and Prometheus finds headgate.
func TestComposeMonitoring(t *testing.T) {
	file := compose(t, "compose.yaml")
	var sources struct {
		Datasources []struct {
			Type, URL string
			IsDefault bool `yaml:"isDefault"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "compose", "grafana", "datasources.yaml")), &sources))
	require.Equal(t, "prometheus", sources.Datasources[0].Type)
	require.Equal(t, "http://prometheus:9090", sources.Datasources[0].URL)
	require.True(t, sources.Datasources[0].IsDefault)
	require.Contains(t, file.Services["prometheus"].Ports, "127.0.0.1:9090:9090")
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "compose", "grafana", "dashboards.yaml")), &boards))
	board := boards.Providers[0].Options.Path + "/headgate.json"
	require.Contains(t, file.Services["grafana"].Volumes, "../grafana/headgate.json:"+board+":ro")
	require.Equal(t, board, file.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
	require.Contains(t, file.Services, "headgate")
	require.Contains(t, read(t, "deploy", "compose", "prometheus.yml"), `targets: ["headgate:`+file.Services["headgate"].Environment["HEADGATE_METRICS_PORT"]+`"]`)
	if promtool, err := exec.LookPath("promtool"); err == nil {
		settings := filepath.Join(t.TempDir(), "prometheus.yml")
		text := strings.ReplaceAll(read(t, "deploy", "compose", "prometheus.yml"), "/etc/prometheus", filepath.Join(harness.Root(t), "deploy", "prometheus"))
		require.NoError(t, os.WriteFile(settings, []byte(text), 0o600))
		out, err := exec.Command(promtool, "check", "config", settings).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// TestComposeServes starts headgate with the variables of the compose file: it asks clients for a password and browsers for another one, and Prometheus for none.
func TestComposeServes(t *testing.T) {
	dir, metrics := t.TempDir(), harness.FreePort(t)
	var variables []string
	for name, value := range compose(t, "compose.yaml").Services["headgate"].Environment {
		value = given.ReplaceAllString(value, "secret")
		value = strings.NewReplacer("/run/headgate", dir, "/data", dir, "9121", fmt.Sprint(metrics), "*", "127.0.0.1").Replace(value)
		variables = append(variables, name+"="+value)
	}
	server := harness.StartOther(t, harness.Binary(t), func(port int) []string {
		return append(variables, fmt.Sprintf("HEADGATE_PORT=%d", port))
	})
	c := harness.Dial(t, server.Addr)
	require.Equal(t, "NOAUTH Authentication required.", c.Ask("RL.GCRA", "k", "1", "1", "1s").Text)
	require.Equal(t, "OK", c.Ask("AUTH", "secret").Text)
	url := fmt.Sprintf("http://127.0.0.1:%d", metrics)
	require.Contains(t, get(t, url+"/metrics"), "headgate_ready 1")
	reply, err := http.Get(url + "/")
	require.NoError(t, err)
	reply.Body.Close()
	require.Equal(t, http.StatusUnauthorized, reply.StatusCode)
}

// TestComposeSentinels runs what the containers of the compose file run, on this machine's addresses in place of their names: the sentinels find each other,
// the primary and its standby, with the password, and agree that they could decide.
func TestComposeSentinels(t *testing.T) {
	t.Parallel()
	redis := harness.Reference(t)
	file := compose(t, "sentinel.yaml")
	ports := map[string]int{}
	for name := range file.Services {
		ports[name] = harness.FreePort(t)
	}
	dir := t.TempDir()
	// here is a text of the file as it holds on this machine.
	here := strings.NewReplacer("$$(hostname)", "127.0.0.1", "$$", "$", "/sentinel/", dir+"/", "redis-server", redis,
		"headgate-1 6379", fmt.Sprintf("127.0.0.1 %d", ports["headgate-1"]), "5000", "1000", "/data-", dir+"/data-", "/data", dir+"/data")
	variables := func(service string) []string {
		list := harness.Environment()
		for name, value := range file.Services[service].Environment {
			value = strings.NewReplacer("headgate-1", "127.0.0.1", "headgate-2", "127.0.0.1", "*", "127.0.0.1",
				"/data", filepath.Join(dir, strings.Replace(service, "headgate", "data", 1))).Replace(given.ReplaceAllString(value, "secret"))
			list = append(list, name+"="+value)
		}
		return list
	}
	run := func(service string, words ...string) *exec.Cmd {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env, cmd.Dir = variables(service), dir
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		return cmd
	}
	for _, name := range []string{"data-1", "data-2"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	script, _, _ := strings.Cut(here.Replace(file.Services["volumes"].Command[2]), "chown ")
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	require.NoError(t, err, string(out))
	servers := map[string]*exec.Cmd{}
	for name, data := range map[string]string{"headgate-1": "data-1", "headgate-2": "data-2"} {
		servers[name] = run(name, harness.Binary(t), filepath.Join(dir, data, "headgate.conf"), "--port", fmt.Sprint(ports[name]))
	}
	for _, name := range []string{"sentinel-1", "sentinel-2", "sentinel-3"} {
		service := file.Services[name]
		// Each has its own file, and a port of its own.
		script := strings.ReplaceAll(here.Replace(service.Command[0]), "sentinel.conf", name+".conf") + fmt.Sprintf(" --bind 127.0.0.1 --port %d", ports[name])
		script = strings.Replace(script, " --sentinel --bind", " --sentinel --dir "+dir+" --bind", 1)
		run(name, append(slices.Clone(service.Entrypoint), strings.ReplaceAll(script, "\n --", " --"))...)
	}
	ask := func(service string, words ...string) string {
		client, err := harness.TryDial(t, fmt.Sprintf("127.0.0.1:%d", ports[service]))
		if err != nil {
			return err.Error()
		}
		defer client.Close()
		reply := client.Ask(words...)
		return reply.Text + strings.Join(reply.Flat(), " ")
	}
	await := func(limit time.Duration, what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(limit); !holds(); time.Sleep(100 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), what)
		}
	}
	for _, name := range []string{"sentinel-1", "sentinel-2", "sentinel-3"} {
		await(time.Minute, name+" knows the others, the primary and its standby", func() bool {
			return strings.HasPrefix(ask(name, "SENTINEL", "CKQUORUM", "mymaster"), "OK 3 usable Sentinels") &&
				strings.Contains(ask(name, "SENTINEL", "REPLICAS", "mymaster"), " master-link-status ok ")
		})
	}
	if !*failover {
		return
	}
	require.NoError(t, servers["headgate-1"].Process.Kill())
	want := fmt.Sprintf("127.0.0.1 %d", ports["headgate-2"])
	await(2*time.Minute, "the standby is promoted", func() bool {
		return ask("sentinel-3", "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster") == want
	})
}
