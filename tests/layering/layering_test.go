// Package layering checks the shape of the source: who may import whom, and what no file may do.
package layering

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

const (
	module   = "headgate"
	maxLines = 900
)

// pure are the layers that import nothing but the standard library.
var pure = []string{"throttle"}

// forbidden are packages of the standard library that a layer may not use: store and throttle know nothing of the
// network, of logging or of other processes.
var forbidden = map[string][]string{
	"store":    {"net", "net/http", "log", "log/slog", "os/exec"},
	"throttle": {"net", "net/http", "log", "log/slog", "os", "os/exec", "math/rand", "math/rand/v2"},
}

// sources visits every Go file of the module.
func sources(t *testing.T, visit func(path string)) {
	t.Helper()
	root := harness.Root(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			visit(relative)
		}
		return nil
	})
	require.NoError(t, err)
}

// fromOutside reports whether a file is of a test that sees a package as others do. It may import what stands above that package.
func fromOutside(t *testing.T, path string) bool {
	return strings.HasSuffix(parse(t, path).Name.Name, "_test")
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(harness.Root(t), path), nil, parser.ImportsOnly)
	require.NoError(t, err)
	return file
}

func layerOf(path string) string {
	layer, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	return layer
}

// imports are the paths that a file imports, whatever its build tags.
func imports(t *testing.T, path string) []string {
	t.Helper()
	file := parse(t, path)
	var paths []string
	for _, spec := range file.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != module
}

// TestStandardLibraryOnly: what is pure imports nothing else, and nothing that would make it know of the world.
func TestStandardLibraryOnly(t *testing.T) {
	sources(t, func(path string) {
		layer := layerOf(path)
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, imported := range imports(t, path) {
			assert.False(t, slices.Contains(pure, layer) && !isStandard(imported), "%s imports %s: %s stays with the standard library", path, imported, layer)
			assert.NotContains(t, forbidden[layer], imported, path)
		}
	})
}

// TestEveryPackageBuilds: a folder holds one package, and the build knows it.
func TestEveryPackageBuilds(t *testing.T) {
	folders := make(map[string]bool)
	sources(t, func(path string) { folders[filepath.Dir(path)] = true })
	root := harness.Root(t)
	for folder := range folders {
		_, err := build.ImportDir(filepath.Join(root, folder), 0)
		assert.NoError(t, err, folder)
	}
}

// TestFileLength: a file has one job.
func TestFileLength(t *testing.T) {
	root := harness.Root(t)
	sources(t, func(path string) {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		assert.LessOrEqual(t, bytes.Count(text, []byte("\n")), maxLines, path)
	})
}

// TestNoPrinting: only cmd writes to the standard output; everything below returns errors or is given a writer.
func TestNoPrinting(t *testing.T) {
	root := harness.Root(t)
	sources(t, func(path string) {
		if layerOf(path) == "cmd" || strings.HasSuffix(path, "_test.go") {
			return
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(root, path), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			if name := printing(node); name != "" {
				assert.Fail(t, "printing outside cmd", "%s calls %s", files.Position(node.Pos()), name)
			}
			return true
		})
	})
}

// printing is the name of the function when node is a call that writes to the standard output or error.
func printing(node ast.Node) string {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch called := call.Fun.(type) {
	case *ast.SelectorExpr:
		if pkg, ok := called.X.(*ast.Ident); ok && pkg.Name == "fmt" && strings.HasPrefix(called.Sel.Name, "Print") {
			return "fmt." + called.Sel.Name
		}
	case *ast.Ident:
		if called.Name == "print" || called.Name == "println" {
			return called.Name
		}
	}
	return ""
}
