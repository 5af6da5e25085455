package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// TestChinese: README.zh-CN.md shows the same code and the same figures as README.md. Its words are for people to compare.
func TestChinese(t *testing.T) {
	root := harness.Root(t)
	english, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	chinese, err := os.ReadFile(filepath.Join(root, "README.zh-CN.md"))
	require.NoError(t, err)
	require.Contains(t, string(english), "(README.zh-CN.md)")
	fences := regexp.MustCompile("(?ms)^```.*?^```$")
	require.Equal(t, fences.FindAllString(string(english), -1), fences.FindAllString(string(chinese), -1), "the code of README.zh-CN.md")
	figures := regexp.MustCompile(`(?m)\| (\*\*[\d.]+\*\* \| [\d.]+× \| \*\*[\d.]+\*\* \| [\d.]+×) \|$`)
	require.Equal(t, figures.FindAllString(string(english), -1), figures.FindAllString(string(chinese), -1), "the figures of README.zh-CN.md")
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(chinese), -1) {
		_, err := os.Stat(filepath.Join(root, link[1]))
		require.NoError(t, err)
	}
}
