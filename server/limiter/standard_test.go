package limiter

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllAlgorithmsDocumented: Standard names every algorithm that the package declares. New ones come last.
func TestAllAlgorithmsDocumented(t *testing.T) {
	const path = "standard.go"
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(written), "NewTable(")
	require.True(t, found)
	listed, _, found := strings.Cut(rest, ")")
	require.True(t, found)
	names := strings.Split(listed, ", ")
	declared := declaredAlgorithms(t)
	names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(declared, name) })
	for _, name := range declared {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	want := fmt.Sprintf("%sNewTable(%s)\n", head, strings.Join(names, ", "))
	if *writeDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(written), "run: go generate ./server/limiter")
}

// declaredAlgorithms are the names of the package's variables that are Algorithms.
func declaredAlgorithms(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, spec := range variables(file) {
			literal, ok := spec.Values[0].(*ast.CompositeLit)
			if kind, isName := literalType(literal); ok && isName && kind == "Algorithm" {
				names = append(names, spec.Names[0].Name)
			}
		}
	}
	return names
}

// variables are the declarations of a file's variables, each with a value of its own.
func variables(file *ast.File) (specs []*ast.ValueSpec) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.VAR {
			continue
		}
		for _, spec := range general.Specs {
			if one := spec.(*ast.ValueSpec); len(one.Values) == 1 {
				specs = append(specs, one)
			}
		}
	}
	return specs
}

func literalType(literal *ast.CompositeLit) (name string, ok bool) {
	if literal == nil {
		return "", false
	}
	ident, ok := literal.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return ident.Name, true
}
