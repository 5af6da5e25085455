package deploy

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"headgate/tests/internal/harness"
)

var allOfChart = flag.Bool("chart.all", false, "render the chart with every combination of its values, instead of some")

// helm renders the chart.
func helm(t testing.TB, args ...string) (rendered string, err error) {
	t.Helper()
	cmd := exec.Command(tool(t, "helm"), append([]string{"template", "headgate", filepath.Join(harness.Root(t), "deploy", "helm", "headgate"), "--kube-version", "1.31.0"}, args...)...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", errors.New(complaints.String())
	}
	return string(out), nil
}

func render(t testing.TB, settings ...string) string {
	t.Helper()
	var args []string
	for _, setting := range settings {
		args = append(args, "--set-json", setting)
	}
	out, err := helm(t, args...)
	require.NoError(t, err, "%v", settings)
	return out
}

// chartValues shows of each value what it changes: with it, and what it needs, the manifests contain a text that they do not contain otherwise.
var chartValues = map[string]struct {
	set, needs, want string
}{
	"image.repository":                {set: `"registry.example/headgate"`, want: `image: "registry.example/headgate:0.1.0"`},
	"image.tag":                       {set: `"edge"`, want: `image: "headgate:edge"`},
	"image.pullPolicy":                {set: `"Always"`, want: "imagePullPolicy: Always"},
	"imagePullSecrets":                {set: `[{"name":"pull"}]`, want: "imagePullSecrets:\n        - name: pull"},
	"nameOverride":                    {set: `"limiter"`, want: "serviceName: limiter"},
	"existingSecret":                  {set: `"passwords"`, want: "name: passwords\n                  key: password"},
	"config":                          {set: `"maxclients 7"`, want: "\n    maxclients 7"},
	"bind":                            {set: `"10.0.0.1"`, want: "- name: HEADGATE_BIND\n              value: \"10.0.0.1\""},
	"tls.enabled":                     {set: `true`, needs: `tls.existingSecret="t"`, want: "HEADGATE_TLS_CERT_FILE"},
	"tls.existingSecret":              {set: `"certificate"`, needs: `tls.enabled=true`, want: "secretName: certificate"},
	"tls.port":                        {set: `7380`, needs: `tls={"enabled":true,"existingSecret":"t"}`, want: "containerPort: 7380"},
	"tls.plaintext":                   {set: `true`, needs: `tls={"enabled":true,"existingSecret":"t"}`, want: "HEADGATE_PORT\n              value: \"6379\""},
	"tls.authClients":                 {set: `"optional"`, needs: `tls={"enabled":true,"existingSecret":"t"}`, want: "HEADGATE_TLS_CA_CERT_FILE"},
	"upstream.url":                    {set: `"redis://10.0.0.1"`, want: "HEADGATE_UPSTREAM\n"},
	"upstream.failure":                {set: `"local"`, needs: `upstream.url="redis://10.0.0.1"`, want: "HEADGATE_UPSTREAM_FAILURE\n              value: \"local\""},
	"upstream.replicas":               {set: `5`, needs: `upstream.url="redis://10.0.0.1"`, want: "replicas: 5"},
	"upstream.existingSecret":         {set: `"redis"`, needs: `upstream.url="redis://10.0.0.1"`, want: "name: redis\n                  key: upstream-password"},
	"persistence.enabled":             {set: `true`, want: "volumeClaimTemplates:"},
	"persistence.size":                {set: `"9Gi"`, needs: `persistence.enabled=true`, want: "storage: 9Gi"},
	"persistence.storageClassName":    {set: `"fast"`, needs: `persistence.enabled=true`, want: "storageClassName: fast"},
	"persistence.appendonly":          {set: `false`, needs: `persistence.enabled=true`, want: "HEADGATE_APPENDONLY\n              value: \"no\""},
	"persistence.appendfsync":         {set: `"always"`, needs: `persistence.enabled=true`, want: "HEADGATE_APPENDFSYNC\n              value: \"always\""},
	"persistence.save":                {set: `"60 1"`, needs: `persistence.enabled=true`, want: "HEADGATE_SAVE\n              value: \"60 1\""},
	"service.type":                    {set: `"LoadBalancer"`, want: "type: LoadBalancer"},
	"service.port":                    {set: `7379`, want: "port: 7379\n      targetPort: redis"},
	"service.annotations":             {set: `{"a":"b"}`, want: "annotations:\n    a: b"},
	"metrics.port":                    {set: `9999`, want: "HEADGATE_METRICS_PORT\n              value: \"9999\""},
	"metrics.existingSecret":          {set: `"scrapers"`, want: "name: scrapers\n                  key: metrics-password"},
	"metrics.serviceMonitor.enabled":  {set: `true`, want: "kind: ServiceMonitor"},
	"metrics.serviceMonitor.interval": {set: `"7s"`, needs: `metrics.serviceMonitor.enabled=true`, want: "interval: 7s"},
	"metrics.serviceMonitor.labels":   {set: `{"release":"prometheus"}`, needs: `metrics.serviceMonitor.enabled=true`, want: "release: prometheus"},
	"metrics.prometheusRule.enabled":  {set: `true`, want: "alert: HeadgateDown"},
	"metrics.prometheusRule.labels":   {set: `{"release":"prometheus"}`, needs: `metrics.prometheusRule.enabled=true`, want: "release: prometheus"},
	"networkPolicy.enabled":           {set: `true`, want: "kind: NetworkPolicy"},
	"networkPolicy.clients":           {set: `[{"ipBlock":{"cidr":"10.0.0.0/8"}}]`, needs: `networkPolicy.enabled=true`, want: "cidr: 10.0.0.0/8\n      ports:\n        - port: redis"},
	"networkPolicy.scrapers":          {set: `[{"ipBlock":{"cidr":"10.0.0.0/8"}}]`, needs: `networkPolicy.enabled=true`, want: "cidr: 10.0.0.0/8\n      ports:\n        - port: metrics"},
	"resources":                       {set: `{"limits":{"memory":"7Gi"}}`, want: "memory: 7Gi"},
	"terminationGracePeriodSeconds":   {set: `7`, want: "terminationGracePeriodSeconds: 7"},
	"podAnnotations":                  {set: `{"a":"b"}`, want: "        a: b"},
	"podLabels":                       {set: `{"a":"b"}`, want: "        a: b"},
	"nodeSelector":                    {set: `{"disk":"ssd"}`, want: "nodeSelector:\n        disk: ssd"},
	"tolerations":                     {set: `[{"operator":"Exists"}]`, want: "tolerations:\n        - operator: Exists"},
	"affinity":                        {set: `{"podAntiAffinity":{}}`, want: "affinity:\n        podAntiAffinity:"},
	"priorityClassName":               {set: `"high"`, want: "priorityClassName: high"},
	"extraEnv":                        {set: `[{"name":"HEADGATE_MAXMEMORY","value":"1gb"}]`, want: "HEADGATE_MAXMEMORY"},
	"extraVolumes":                    {set: `[{"name":"more","emptyDir":{}}]`, want: "- emptyDir: {}\n          name: more"},
	"extraVolumeMounts":               {set: `[{"name":"more","mountPath":"/more"}]`, want: "- mountPath: /more\n              name: more"},
}

// TestChartValues: each value of the chart changes what it says, and none does without a test.
func TestChartValues(t *testing.T) {
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "helm", "headgate", "values.yaml")), &values))
	seen := map[string]bool{}
	var look func(prefix string, of map[string]any)
	look = func(prefix string, of map[string]any) {
		for name, value := range of {
			path := prefix + name
			inner, isMap := value.(map[string]any)
			if _, tested := chartValues[path]; tested {
				seen[path] = true
			} else if isMap && len(inner) > 0 {
				look(path+".", inner)
			} else {
				t.Errorf("no test sets the value %s", path)
			}
		}
	}
	look("", values)
	require.Len(t, seen, len(chartValues), "the chart has not all values that are tested")
	for path, value := range chartValues {
		var needs []string
		if value.needs != "" {
			needs = append(needs, value.needs)
		}
		if path != "tls.existingSecret" { // without it nothing is rendered
			require.NotContains(t, render(t, needs...), value.want, path)
		}
		require.Contains(t, render(t, append(needs, path+"="+value.set)...), value.want, path)
	}
}

// pod is what a rendered chart says, as far as the tests look at it.
type pod struct {
	Kind string
	Data map[string]string
	Spec struct {
		Ports []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Ingress []struct {
			Ports []struct{ Port string }
		}
		Endpoints []struct{ Port string }
		Template  struct {
			Spec struct {
				Containers []chartContainer
				Volumes    []struct{ Name string }
			}
		}
		Claims []struct {
			Metadata struct{ Name string }
		} `yaml:"volumeClaimTemplates"`
	}
}

type chartContainer struct {
	Args []string
	Env  []struct {
		Name, Value string
		ValueFrom   any `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
	StartupProbe struct {
		Exec    struct{ Command []string }
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
	} `yaml:"startupProbe"`
}

// rendering is one rendered chart: its container, the words and variables of headgate, with what is mounted in a directory of the test.
type rendering struct {
	container chartContainer
	args      []string
	env       map[string]string
}

// takeApart reads a rendered chart, and checks that its parts fit each other. Passwords are "secret".
func takeApart(t *testing.T, rendered, cert, key string) (r rendering) {
	t.Helper()
	dir := t.TempDir()
	var named, ports, volumes []string
	config := ""
	decoder := yaml.NewDecoder(strings.NewReader(rendered))
	for {
		var document pod
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, rendered)
		spec := document.Spec
		switch document.Kind {
		case "ConfigMap":
			config = document.Data["headgate.conf"]
		case "Service":
			for _, port := range spec.Ports {
				named = append(named, port.TargetPort)
			}
		case "NetworkPolicy":
			for _, rule := range spec.Ingress {
				for _, port := range rule.Ports {
					named = append(named, port.Port)
				}
			}
		case "ServiceMonitor":
			named = append(named, spec.Endpoints[0].Port)
		case "StatefulSet":
			r.container = spec.Template.Spec.Containers[0]
			for _, volume := range spec.Template.Spec.Volumes {
				volumes = append(volumes, volume.Name)
			}
			for _, claim := range spec.Claims {
				volumes = append(volumes, claim.Metadata.Name)
			}
		}
	}
	for _, port := range r.container.Ports {
		ports = append(ports, port.Name)
	}
	require.NotEmpty(t, named)
	for _, name := range named {
		require.Contains(t, ports, name, "a port that no container has")
	}
	for _, name := range ports {
		require.Contains(t, named, name, "a port that no service has")
	}
	for _, mount := range r.container.VolumeMounts {
		require.Contains(t, volumes, mount.Name)
	}
	path := filepath.Join(dir, "headgate.conf")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	require.Equal(t, []string{"/etc/headgate/headgate.conf"}, r.container.Args)
	r.args, r.env = []string{path}, map[string]string{}
	files := strings.NewReplacer("/tls/tls.crt", cert, "/tls/ca.crt", cert, "/tls/tls.key", key, "/data", dir)
	for _, variable := range r.container.Env {
		value := files.Replace(variable.Value)
		if variable.ValueFrom != nil {
			value = "secret"
		}
		require.NotContains(t, r.env, variable.Name, "a variable twice")
		r.env[variable.Name] = value
	}
	return r
}

// TestChartCombinations: however the values are combined, the manifests fit each other and headgate takes its variables and file.
func TestChartCombinations(t *testing.T) {
	tool(t, "helm")
	sets := [][]string{
		{"", `tls={"enabled":true,"existingSecret":"t"}`, `tls={"enabled":true,"existingSecret":"t","plaintext":true}`, `tls={"enabled":true,"existingSecret":"t","authClients":"yes"}`},
		{"", `persistence={"enabled":true,"appendfsync":"always","save":"60 1"}`, `upstream={"url":"redis://gateway@10.0.0.1:6379","failure":"local","existingSecret":"u"}`},
		{`metrics={"serviceMonitor":{"enabled":true},"prometheusRule":{"enabled":true},"existingSecret":"m"}`, "", `metrics.existingSecret="m"`, `metrics.serviceMonitor.enabled=true`},
		{`networkPolicy.enabled=true`, ""},
		{"", `existingSecret=""`},
		{`config="policy login LOG 5 60s\nmaxclients 100\n"`, ""},
	}
	cert, key := harness.Certificate(t)
	combinations := [][]string{nil}
	for _, set := range sets {
		var longer [][]string
		for _, before := range combinations {
			for _, setting := range set {
				longer = append(longer, append(slices.Clip(before), setting))
			}
		}
		combinations = longer
	}
	step := 1
	if !*allOfChart {
		step = len(combinations)/7 | 1 // odd, so that each setting of two comes up
	}
	for i := 0; i < len(combinations); i += step {
		chosen := slices.DeleteFunc(slices.Clone(combinations[i]), func(s string) bool { return s == "" })
		t.Run(strings.Join(chosen, ","), func(t *testing.T) {
			r := takeApart(t, render(t, chosen...), cert, key)
			checkConfig(t, r.args, r.env)
		})
	}
}

// TestChartRefuses: nothing that config says is overruled by a variable, and values that make no sense are errors.
func TestChartRefuses(t *testing.T) {
	everything := []string{`tls={"enabled":true,"existingSecret":"t","authClients":"yes"}`, `persistence.enabled=true`, `metrics.existingSecret="m"`,
		`extraEnv=[{"name":"HEADGATE_MAXMEMORY","value":"1gb"},{"name":"GOMEMLIMIT","value":"1GiB"}]`}
	refused := func(want string, settings ...string) {
		t.Helper()
		var args []string
		for _, setting := range settings {
			args = append(args, "--set-json", setting)
		}
		_, err := helm(t, args...)
		require.Error(t, err, "%v", settings)
		require.Contains(t, err.Error(), want)
	}
	cert, key := harness.Certificate(t)
	r := takeApart(t, render(t, everything...), cert, key)
	require.Greater(t, len(r.env), 10)
	for name := range r.env {
		directive, ours := strings.CutPrefix(name, "HEADGATE_")
		if !ours {
			continue
		}
		directive = strings.ReplaceAll(strings.ToLower(directive), "_", "-")
		want := fmt.Sprintf("config sets %s, which the container's variable %s would overrule", directive, name)
		refused(want, append(everything, fmt.Sprintf(`config="# a comment\n  %s 1\n"`, strings.ToUpper(directive)))...)
	}
	render(t, `config="# bind 10.0.0.1\nmaxclients 7"`)
	refused("a gateway keeps nothing", `upstream.url="redis://h"`, `persistence.enabled=true`)
	refused("tls.enabled needs tls.existingSecret", `tls.enabled=true`)
	refused("additional properties 'prot' not allowed", `metrics.prot=1`)
	refused("/tls/authClients", `tls.authClients=false`)
	refused("/upstream/url", `upstream.url="10.0.0.1"`)
	refused("/service/port", `service.port="redis"`)
	refused("/persistence/appendfsync", `persistence.appendfsync="sometimes"`)
	refused("/networkPolicy/clients", `networkPolicy.clients=[]`)
	refused("/networkPolicy/scrapers", `networkPolicy.scrapers=[]`)
}

// TestChartKeepsConfig: the file is what config says, also if it begins with blanks.
func TestChartKeepsConfig(t *testing.T) {
	tool(t, "helm")
	cert, key := harness.Certificate(t)
	for _, config := range []string{"maxclients 7\n", "  maxclients 7\nhz 20\n", "\n    # a comment\n\tmaxclients 7\n  hz 20\n"} {
		r := takeApart(t, render(t, fmt.Sprintf("config=%q", config)), cert, key)
		text, err := os.ReadFile(r.args[0])
		require.NoError(t, err)
		require.Equal(t, config, string(text))
		checkConfig(t, r.args, r.env)
	}
}

// TestChartLetsNobodyIn: no list of peers is nobody, where Kubernetes would take an empty one for everybody.
func TestChartLetsNobodyIn(t *testing.T) {
	policy := func(settings ...string) string {
		_, found, _ := strings.Cut(render(t, append(settings, `networkPolicy.enabled=true`)...), "kind: NetworkPolicy\n")
		found, _, _ = strings.Cut(found, "\n---")
		return found
	}
	require.Equal(t, 2, strings.Count(policy(), "- from:\n        - podSelector: {}\n"))
	require.NotContains(t, policy(`networkPolicy.clients=null`), "port: redis")
	require.NotContains(t, policy(`networkPolicy.scrapers=null`), "port: metrics")
	nobody := policy(`networkPolicy.clients=null`, `networkPolicy.scrapers=null`)
	require.Contains(t, nobody, "policyTypes: [Ingress]\n  ingress:")
	require.NotContains(t, nobody, "from:")
}

// TestChartServes starts headgate as the chart does, over TLS and with a password: the startup probe succeeds, Prometheus scrapes without a password,
// and the page asks for its own.
func TestChartServes(t *testing.T) {
	tool(t, "helm")
	cert, key := harness.Certificate(t)
	metrics := harness.FreePort(t)
	r := takeApart(t, render(t, `tls={"enabled":true,"existingSecret":"t","authClients":"yes"}`, fmt.Sprintf(`tls.port=%d`, harness.FreePort(t)),
		`bind="127.0.0.1"`, fmt.Sprintf(`metrics.port=%d`, metrics)), cert, key)
	environment := harness.Environment()
	for name, value := range r.env {
		environment = append(environment, name+"="+value)
	}
	server := exec.Command(harness.Binary(t), r.args...)
	server.Env = environment
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	})
	command := r.container.StartupProbe.Exec.Command
	require.Equal(t, "/headgate", command[0])
	require.Eventually(t, func() bool {
		probe := exec.Command(harness.Binary(t), command[1:]...)
		probe.Env = environment
		return probe.Run() == nil
	}, harness.ReplyTimeout, 50*1e6, "the startup probe")
	url := fmt.Sprintf("http://127.0.0.1:%d", metrics)
	require.Equal(t, "ready\n", get(t, url+"/readyz"))
	require.Contains(t, get(t, url+"/metrics"), "headgate_ready 1")
	reply, err := http.Get(url + "/")
	require.NoError(t, err)
	reply.Body.Close()
	require.Equal(t, http.StatusUnauthorized, reply.StatusCode)
}
