package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestOneVersion: the images and the chart of deploy/ are those of the version that is built.
func TestOneVersion(t *testing.T) {
	version := regexp.MustCompile(`(?m)^const Version = "(.+)"$`).FindStringSubmatch(read(t, "server", "command", "core.go"))
	require.NotNil(t, version)
	named := regexp.MustCompile(`(?m)^ *(?:image: headgate:|version: |appVersion: )([0-9]\S*)$`)
	places := 0
	deploy := os.DirFS(filepath.Join(harness.Root(t), "deploy"))
	require.NoError(t, fs.WalkDir(deploy, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(deploy, path)
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			require.Equal(t, version[1], found[1], path)
			places++
		}
		return err
	}))
	require.GreaterOrEqual(t, places, 8, "places that name a version")
}
