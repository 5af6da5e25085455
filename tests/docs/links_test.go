package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// documents are the texts that people read: all Markdown of the repository but what packages of npm bring along.
func documents(t *testing.T) (root string, paths []string) {
	t.Helper()
	root = harness.Root(t)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "dist"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			paths = append(paths, path)
		}
		return nil
	}))
	require.Contains(t, paths, filepath.Join(root, "README.md"))
	return root, paths
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// TestLinks: what a document links to is a file of this repository, and the heading is there. Other hosts are not asked.
func TestLinks(t *testing.T) {
	root, paths := documents(t)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			target := found[1] + found[2]
			if strings.HasPrefix(target, "https://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			inside, err := filepath.Rel(root, to)
			require.NoError(t, err)
			require.False(t, strings.HasPrefix(inside, ".."), "%s links to %s, outside the repository", name, target)
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", name, target)
			} else if anchor != "" && filepath.Ext(to) == ".md" && !slices.Contains(anchors(t, to), anchor) {
				t.Errorf("%s links to %s, which has no such heading", name, target)
			}
		}
	}
}

// anchors are the names of a document's headings in links: lower case, with dashes for spaces and nothing else but letters and digits.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var names []string
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, found[1]))
	}
	return names
}
