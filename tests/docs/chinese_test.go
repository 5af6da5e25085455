package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// A translation may leave sections out, if it names those that it has: <!-- sections: A | B -->.
var (
	sectionList = regexp.MustCompile(`<!-- sections: (.*?) -->`)
	codeSpan    = regexp.MustCompile("(?s)``.*?``|`[^`]+`")
	figure      = regexp.MustCompile(`\b\d+(?:[.,]\d+)+\b`)
	tableRow    = regexp.MustCompile(`(?m)^ *\|.*$`)
	listItem    = regexp.MustCompile(`(?m)^ *(?:-|\d+\.) .*$`)
)

// section is what stands below one heading, before the next.
type section struct {
	heading string // with its #
	text    string
}

// sections takes a document apart at its headings. What stands above the first is left out.
func sections(text string) (found []section) {
	inFence := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inFence = !inFence
		}
		if !inFence && heading.MatchString(line) {
			found = append(found, section{heading: strings.TrimSpace(line)})
		} else if len(found) > 0 {
			found[len(found)-1].text += line
		}
	}
	return found
}

// translated are a document's sections that its translation has.
func translated(t *testing.T, original []section, translation string) []section {
	t.Helper()
	list := sectionList.FindStringSubmatch(translation)
	if list == nil {
		return original
	}
	var chosen []section
	for name := range strings.SplitSeq(list[1], " | ") {
		i := slices.IndexFunc(original, func(s section) bool { return strings.TrimLeft(s.heading, "# ") == name })
		require.GreaterOrEqual(t, i, 0, "the original has no section %q", name)
		chosen = append(chosen, original[i])
	}
	return chosen
}

// TestChinese: README.zh-CN.md and docs/zh have the sections, code, figures, table rows, list items, names and links of their originals. The words
// themselves are for people to compare.
func TestChinese(t *testing.T) {
	root := harness.Root(t)
	originals := map[string]string{"README.zh-CN.md": "README.md"}
	paths, err := filepath.Glob(filepath.Join(root, "docs", "zh", "*.md"))
	require.NoError(t, err)
	for _, path := range paths {
		name := filepath.Base(path)
		originals["docs/zh/"+name] = "docs/" + name
	}
	for _, guide := range []string{"recipes.md", "arguments.md", "gateways.md", "http.md", "java.md", "limiters.md", "operations.md", "redis-cell.md"} {
		require.Contains(t, originals, "docs/zh/"+guide)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		return string(text)
	}
	// linked are the files that a text links to, translations counted as their originals.
	linked := func(from, text string) []string {
		files := map[string]bool{}
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, _, _ := strings.Cut(found[1]+found[2], "#")
			if target == "" || strings.HasPrefix(target, "https://") {
				continue
			}
			file := filepath.Join(filepath.Dir(from), target)
			if of, ok := originals[file]; ok {
				file = of
			}
			if file != from && file != originals[from] { // what is left out of a translation stands in the original
				files[file] = true
			}
		}
		return slices.Sorted(maps.Keys(files))
	}
	for name, original := range originals {
		t.Run(name, func(t *testing.T) {
			english, chinese := read(original), read(name)
			partial := sectionList.MatchString(chinese)
			from, to := translated(t, sections(english), chinese), sections(chinese)
			there, err := filepath.Rel(filepath.Dir(original), name)
			require.NoError(t, err)
			require.Contains(t, english, "]("+there+")", "%s does not link to its translation", original)
			require.Len(t, to, len(from), "the headings of %s", name)
			for i, s := range to {
				where := name + ", " + s.heading
				level := func(h string) int { return len(h) - len(strings.TrimLeft(h, "#")) }
				require.Equal(t, level(from[i].heading), level(s.heading), "%s stands for %s", where, from[i].heading)
				require.Equal(t, fence.FindAllString(from[i].text, -1), fence.FindAllString(s.text, -1), "%s: the code", where)
				prose := [2]string{fence.ReplaceAllString(from[i].text, ""), fence.ReplaceAllString(s.text, "")}
				require.Equal(t, set(figure, prose[0]), set(figure, prose[1]), "%s: the figures", where)
				require.Equal(t, set(codeSpan, prose[0]), set(codeSpan, prose[1]), "%s: the names", where)
				require.Len(t, tableRow.FindAllString(prose[1], -1), len(tableRow.FindAllString(prose[0], -1)), "%s: the rows", where)
				require.Len(t, listItem.FindAllString(prose[1], -1), len(listItem.FindAllString(prose[0], -1)), "%s: the items", where)
				if !partial || i > 0 { // above its first chapter, a translation in parts leads to the other ones
					require.Equal(t, linked(original, from[i].text), linked(name, s.text), "%s: the links", where)
				}
			}
			// A link leads to a translation, where there is one: but for those to a document's own original.
			for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(chinese, ""), -1) {
				file, anchor, _ := strings.Cut(found[1]+found[2], "#")
				file = filepath.Join(filepath.Dir(name), file)
				for translation, of := range originals {
					require.False(t, file == of && of != original && (anchor == "" || !sectionList.MatchString(read(translation))),
						"%s links to %s, which is translated: %s", name, found[1], translation)
				}
			}
		})
	}
}

// set is what a pattern finds in a text, each once, wherever its lines end.
func set(pattern *regexp.Regexp, text string) []string {
	found := pattern.FindAllString(strings.Join(strings.Fields(text), " "), -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// TestSections: headings are found outside of code only.
func TestSections(t *testing.T) {
	require.Equal(t, []section{{"# a", "x\n```\n# no\n```\n"}, {"## b", "y\n"}}, sections("above\n# a\nx\n```\n# no\n```\n## b\ny\n"))
}
