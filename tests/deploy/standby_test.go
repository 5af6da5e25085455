package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestStandby: the first start of each pod writes who follows whom, later ones leave that alone, and headgate takes the words and variables.
func TestStandby(t *testing.T) {
	type variable struct{ Name, Value string }
	type container struct {
		Args, Command []string
		Env           []variable
	}
	type manifest struct {
		Kind string
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers []container `yaml:"initContainers"`
					Containers     []container
				}
			}
		}
	}
	var set manifest
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "deploy", "kubernetes", "standby.yaml")))
	for set.Kind != "StatefulSet" {
		set = manifest{}
		require.NoError(t, decoder.Decode(&set))
	}
	pod := set.Spec.Template.Spec
	for name, follows := range map[string]string{"headgate-0": "", "headgate-1": "replicaof headgate-0.headgate-pods 6379\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "headgate.conf")
			start := func() string {
				command := pod.InitContainers[0].Command
				cmd := exec.Command(command[0], command[1], strings.ReplaceAll(command[2], "/data", dir))
				cmd.Env = append(os.Environ(), "POD_NAME="+name)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				return string(text)
			}
			require.Equal(t, follows, start())
			env := map[string]string{}
			for _, v := range pod.Containers[0].Env {
				if strings.HasPrefix(v.Name, "HEADGATE_") {
					env[v.Name] = strings.NewReplacer("$(POD_NAME)", name, "/data", dir).Replace(v.Value)
				}
			}
			require.NotEmpty(t, env)
			checkConfig(t, []string{strings.ReplaceAll(pod.Containers[0].Args[0], "/data", dir)}, env)
			require.NoError(t, os.WriteFile(path, []byte("replicaof elsewhere 1\n"), 0o600))
			require.Equal(t, "replicaof elsewhere 1\n", start())
		})
	}
}

// TestComposeSentinel: headgate takes the variables, and the script of the volumes says who follows whom, once.
func TestComposeSentinel(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Command     []string
			ReadOnly    bool `yaml:"read_only"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy", "compose", "sentinel.yaml")), &file))
	dir := t.TempDir()
	for _, name := range []string{"data-1", "data-2"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	volumes := file.Services["volumes"].Command
	script, _, _ := strings.Cut(strings.ReplaceAll(volumes[2], "/data", dir+"/data"), "chown ")
	out, err := exec.Command(volumes[0], volumes[1], script).CombinedOutput()
	require.NoError(t, err, string(out))
	for name, follows := range map[string]string{"headgate-1": "", "headgate-2": "replicaof headgate-1 6379\n"} {
		service := file.Services[name]
		require.True(t, service.ReadOnly)
		data := filepath.Join(dir, "data-"+name[len(name)-1:])
		text, err := os.ReadFile(filepath.Join(data, "headgate.conf"))
		require.NoError(t, err)
		require.Equal(t, follows, string(text))
		env := map[string]string{}
		for variable, value := range service.Environment {
			env[variable] = given.ReplaceAllString(value, "$1")
		}
		require.Equal(t, name, env["HEADGATE_REPLICA_ANNOUNCE_IP"])
		env["HEADGATE_DIR"] = data
		checkConfig(t, []string{filepath.Join(data, "headgate.conf")}, env)
	}
	require.Len(t, file.Services, 6)
}
