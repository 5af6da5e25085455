package layering

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// forTests are the modules that the server's module requires for the tests of its packages, and what these require themselves. What only the
// suites import, clients above all, is required by the suites' own module.
var forTests = []string{
	"github.com/stretchr/testify", "go.yaml.in/yaml/v3",
	"github.com/rogpeppe/go-internal", "golang.org/x/tools",
	"pgregory.net/rapid",
	"github.com/kr/text",                // by the tests of a library, for which go mod tidy lists it
	"github.com/planetscale/vtprotobuf", // by files of a library that only a build tag brings, the same
}

// archived are modules that nobody mends any more, each with the one that goes on with it.
var archived = map[string]string{"gopkg.in/yaml.v3": "go.yaml.in/yaml/v3"}

type requirements struct {
	Require []struct{ Path string }
}

func required(t *testing.T, dir string) (file requirements) {
	t.Helper()
	require.NoError(t, json.Unmarshal(goSays(t, dir, "mod", "edit", "-json"), &file))
	require.NotEmpty(t, file.Require)
	return file
}

func goSays(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

// TestTheServersModuleRequiresWhatShips: who builds headgate from its sources, or packages it, downloads no client library.
func TestTheServersModuleRequiresWhatShips(t *testing.T) {
	root := harness.Root(t)
	ships := strings.Fields(string(goSays(t, root, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/headgate")))
	for _, module := range required(t, root).Require {
		assert.True(t, slices.Contains(ships, module.Path) || slices.Contains(forTests, module.Path),
			"go.mod requires %s, which the program does not hold: tests/go.mod may", module.Path)
	}
}

// TestNoArchivedModule: neither we nor a library of others builds upon one.
func TestNoArchivedModule(t *testing.T) {
	root := harness.Root(t)
	for _, dir := range []string{root, filepath.Join(root, "tests")} {
		for _, module := range required(t, dir).Require {
			assert.Empty(t, archived[module.Path], "%s requires %s, which is archived", filepath.Join(dir, "go.mod"), module.Path)
		}
	}
}
