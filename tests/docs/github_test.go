package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"headgate/tests/internal/harness"
)

// workflow is a file of .github/workflows, as far as this test looks.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Strategy struct {
			Matrix struct{ Command []string }
		}
		Steps []struct{ Uses, Run string }
	}
}

// TestWorkflows: the workflows run what .ci/run does, by commands that exist, and name the version of each action.
func TestWorkflows(t *testing.T) {
	root := harness.Root(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.Len(t, paths, 3)
	pinned := regexp.MustCompile(`@(v\d+|[0-9a-f]{40})$`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var w workflow
		require.NoError(t, yaml.Unmarshal(text, &w), path)
		require.NotEmpty(t, w.Permissions, "%s: without this a workflow may do everything", path)
		var commands []string
		for _, job := range w.Jobs {
			commands = append(commands, job.Strategy.Matrix.Command...)
			for _, step := range job.Steps {
				if step.Uses != "" {
					require.Regexp(t, pinned, step.Uses, path)
				}
				commands = append(commands, step.Run)
			}
		}
		for _, command := range commands {
			if words := strings.Fields(command); len(words) > 1 && words[0] == "make" {
				require.Regexp(t, `(?m)^`+regexp.QuoteMeta(words[1])+`:`, string(makefile), "%s runs %q", path, command)
			}
		}
		if filepath.Base(path) != "nightly.yml" {
			require.Contains(t, commands, "./.ci/run", path)
		}
	}
	for _, template := range []string{"bug.yml", "feature.yml", "config.yml"} {
		text, err := os.ReadFile(filepath.Join(root, ".github", "ISSUE_TEMPLATE", template))
		require.NoError(t, err)
		var form map[string]any
		require.NoError(t, yaml.Unmarshal(text, &form), template)
	}
}

// TestCheckRunsTheTestsOfREADME: what must pass before a change is taken includes the command that README.md gives for the tests.
func TestCheckRunsTheTestsOfREADME(t *testing.T) {
	root := harness.Root(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	check, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	require.NoError(t, err)
	const command = "make test"
	require.Contains(t, string(readme), "```sh\n"+command+"\n```")
	require.Contains(t, strings.Split(string(check), "\n"), command)
}
