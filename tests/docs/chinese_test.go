package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
	figures := regexp.MustCompile(`\b\d+(?:[.,]\d+)+\b`)
	require.Equal(t, figures.FindAllString(string(english), -1), figures.FindAllString(string(chinese), -1), "the figures of README.zh-CN.md")
	links := regexp.MustCompile(`\]\(([^)]+)\)`)
	require.Subset(t, targets(links, chinese), targets(links, english), "the links of README.zh-CN.md")
}

// targets are what a document links to, but for its translation.
func targets(links *regexp.Regexp, document []byte) []string {
	var all []string
	for _, found := range links.FindAllSubmatch(document, -1) {
		if target := string(found[1]); !strings.HasPrefix(target, "README") {
			all = append(all, target)
		}
	}
	return all
}
