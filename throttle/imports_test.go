package throttle

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports keeps the package pure: what is not on this list could read a clock, do I/O or keep state.
func TestImports(t *testing.T) {
	allowed := []string{"errors", "math", "math/bits", "slices", "sort"}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if name == "calendar.go" && path == "time" {
				continue // for what it knows of zones; TestNoClock looks after the rest
			}
			require.Contains(t, allowed, path, "imported by %s", name)
		}
		checked++
	}
	require.NotZero(t, checked)
}

// TestNoClock: of package time only what takes the instant as an argument may be used.
func TestNoClock(t *testing.T) {
	text, err := os.ReadFile("calendar.go")
	require.NoError(t, err)
	for _, word := range []string{"Now(", "Since(", "Until(", "After(", "Tick", "NewTimer", "Sleep", "LoadLocation", "time.Local"} {
		require.NotContains(t, string(text), word)
	}
}
