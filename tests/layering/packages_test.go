package layering

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// Who may import whom is written in ARCHITECTURE.md, in the table whose head is tableHead: a row for each package, or for a folder and all
// packages in it (`folder/...`), with the rows that it may import. A row imports only what stands below it, so that there is no cycle.
const (
	tableHead = "| package | job | may import |"
	testsOnly = "for tests:" // how the job of a row begins that only tests import
)

// row is a row of the table.
type row struct {
	name      string   // of its first package
	packages  []string // folders; one that ends with all stands for those below it too
	forTests  bool
	mayImport []string // names of rows
	place     int      // of its row, from the top
	has       map[string]bool
	imports   map[string]bool // names of rows that it imports, but for its tests
}

type importTable []*row

var quoted = regexp.MustCompile("`([^`]+)`")

func words(cell string) (list []string) {
	for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
		list = append(list, match[1])
	}
	return list
}

const all = "/..." // behind the name of a folder: and what is below it

// readTable reads it.
func readTable(t *testing.T) (tab importTable) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(t), "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), tableHead+"\n")
	require.True(t, found, "ARCHITECTURE.md has no table with the head %s", tableHead)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		require.Len(t, cells, 3, line)
		packages := words(cells[0])
		require.NotEmpty(t, packages, line)
		tab = append(tab, &row{
			name: packages[0], packages: packages, mayImport: words(cells[2]), place: len(tab),
			forTests: strings.HasPrefix(strings.TrimSpace(cells[1]), testsOnly),
			has:      map[string]bool{}, imports: map[string]bool{},
		})
	}
	require.NotEmpty(t, tab)
	return tab
}

// of returns the row of a folder, and the name in the table that stands for it; nil if there is none.
func (tab importTable) of(folder string) (found *row, name string) {
	for _, r := range tab {
		for _, p := range r.packages {
			above, whole := strings.CutSuffix(p, all)
			if (folder == above || whole && strings.HasPrefix(folder, above+"/")) && len(above) > len(name) {
				found, name = r, above
			}
		}
	}
	return found, name
}

// named returns the row that has a package.
func (tab importTable) named(name string) *row {
	i := slices.IndexFunc(tab, func(r *row) bool {
		return slices.Contains(r.packages, name) || slices.Contains(r.packages, name+all)
	})
	if i < 0 {
		return nil
	}
	return tab[i]
}

// below returns the rows that a row leads to.
func (tab importTable) below(r *row, seen map[string]bool) map[string]bool {
	for _, entry := range r.mayImport {
		if other := tab.named(entry); other != nil && !seen[other.name] {
			seen[other.name] = true
			tab.below(other, seen)
		}
	}
	return seen
}

// TestImports: every import is one that the table allows, and everything that the table says is so. A package's tests may also import what is
// further below, and what is for tests; those in a package of their own import what they like.
func TestImports(t *testing.T) {
	tab := readTable(t)
	tab.checkRows(t)
	sources(t, func(path string) { tab.checkFile(t, filepath.ToSlash(path)) })
	for _, r := range tab {
		for _, entry := range r.packages {
			assert.True(t, r.has[strings.TrimSuffix(entry, all)], "ARCHITECTURE.md has a row for %s, and there is no such package", entry)
		}
		for _, entry := range r.mayImport {
			assert.True(t, r.imports[entry], "ARCHITECTURE.md lets %s import %s, which it does not; the row should say %s", r.name, entry, r.cell())
		}
	}
}

// cell is what the table should say of a row's imports.
func (r *row) cell() string {
	if len(r.imports) == 0 {
		return "–"
	}
	return "`" + strings.Join(slices.Sorted(maps.Keys(r.imports)), "`, `") + "`"
}

func (tab importTable) checkRows(t *testing.T) {
	t.Helper()
	for _, r := range tab {
		for _, entry := range r.mayImport {
			other := tab.named(entry)
			if assert.NotNil(t, other, "ARCHITECTURE.md lets %s import %s, which has no row", r.name, entry) {
				assert.Greater(t, other.place, r.place, "ARCHITECTURE.md lets %s import %s, whose row stands above", r.name, entry)
			}
		}
	}
}

func (tab importTable) checkFile(t *testing.T, path string) {
	t.Helper()
	test := strings.HasSuffix(path, "_test.go")
	r, name := tab.of(filepath.ToSlash(filepath.Dir(path)))
	if !assert.NotNil(t, r, "ARCHITECTURE.md has no row for the package of %s", path) {
		return
	}
	r.has[name] = true
	for _, imported := range imports(t, path) {
		inside, ours := strings.CutPrefix(imported, module+"/")
		other, name := tab.of(inside)
		switch {
		case !ours || other == nil || other == r:
		case test && fromOutside(t, path):
		case test:
			assert.True(t, other.forTests || tab.below(r, map[string]bool{})[other.name], "%s imports %s, which is not below it", path, imported)
		default:
			r.imports[name] = true
			assert.Contains(t, r.mayImport, name, "%s imports %s; the row should say %s", path, imported, r.cell())
			assert.True(t, !other.forTests || r.forTests, "%s imports %s, which is for tests", path, imported)
		}
	}
}

// TestContributingNamesFiles: what CONTRIBUTING.md says one touches is there. A name in angle brackets stands for any.
func TestContributingNamesFiles(t *testing.T) {
	root := harness.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## What one touches\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	placeholder := regexp.MustCompile(`<[^>]+>`)
	named := 0
	for _, word := range words(section) {
		if strings.Contains(word, "/") && filepath.Ext(word) != "" && !strings.HasPrefix(word, "/") {
			found, err := filepath.Glob(filepath.Join(root, placeholder.ReplaceAllString(word, "*")))
			require.NoError(t, err)
			assert.NotEmpty(t, found, word)
			named++
		}
	}
	require.Greater(t, named, 5)
}
