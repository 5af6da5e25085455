package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// slips is a file with a place for each kind of change, and what may come in the place of it.
const slips = `package slips

func comparison(a, b int) bool {
	return a < b // flip a comparison: a < b -> a <= b; return zero: return a < b -> return *new(bool)
}

func statements(a []int) {
	n := len(a)
	a[n] = n // drop a statement: a[n] = n -> nothing
	defer close(nil) // drop a statement: defer close(nil) -> nothing
	for {
		n++ // drop a statement: n++ -> nothing
		break // drop a statement: break -> nothing
	}
	panic(n + 1)
}

func conditions(a, b bool, n int) {
	if a { // negate a condition: a -> !(a)
		return // drop a statement: return -> nothing
	}
	for a && n == 2 { // negate a condition: a -> !(a); negate a condition: a && n == 2 -> !(a && n == 2); flip a comparison: n == 2 -> n != 2; move a bound by one: 2 -> 3
	}
	switch {
	case b: // negate a condition: b -> !(b)
	}
	if n !=
		n { // flip a comparison: n != n -> n == n
	}
}

func bounds(a []int, i, j int) {
	_ = a[0] // drop a statement: _ = a[0] -> nothing; move a bound by one: 0 -> 1
	_ = a[i:j] // drop a statement: _ = a[i:j] -> nothing; move a bound by one: i -> (i)+1; move a bound by one: j -> (j)-1
	_ = a[1:] // drop a statement: _ = a[1:] -> nothing; move a bound by one: 1 -> 2
}

func results() (a, b int, err error) {
	if f := func() string { return "x" }; f() == "" { // flip a comparison: f() == "" -> f() != ""; return zero: return "x" -> return *new(string)
		return 0, 0, nil // move a bound by one: 0 -> 1; move a bound by one: 0 -> 1
	}
	if err != nil { // flip a comparison: err != nil -> err == nil
		return 0, 0, err // return zero: return 0, 0, err -> return *new(int), *new(int), *new(error)
	}
	return results() // return zero: return results() -> return *new(int), *new(int), *new(error)
}
`

// TestMutantsOfAFile finds the changes that the comments of slips tell of, each on its line or on the one before, and no others.
func TestMutantsOfAFile(t *testing.T) {
	found, err := mutantsOf("slips.go", []byte(slips))
	require.NoError(t, err)
	lines := strings.Split(slips, "\n")
	var want, got []string
	for _, line := range lines {
		if _, comment, told := strings.Cut(line, "// "); told {
			want = append(want, strings.Split(comment, "; ")...)
		}
	}
	for _, m := range found {
		got = append(got, fmt.Sprintf("%s: %s -> %s", m.what, oneLine(m.before), oneLine(m.after)))
		require.Contains(t, lines[m.line-1], strings.Fields(m.before)[0])
	}
	require.ElementsMatch(t, want, got)
	for _, m := range found {
		changed := string(m.apply([]byte(slips)))
		require.NotEqual(t, slips, changed)
		require.Equal(t, len(lines), strings.Count(changed, "\n")+1, "the lines below stay where they are")
		requireParses(t, changed, m)
	}
}

// TestUsualFilesAreThere: each pattern names files that are there, and what is drawn from them can be read.
func TestUsualFilesAreThere(t *testing.T) {
	const drawn = 100
	root := harness.Root(t)
	all, err := collect(root, usual)
	require.NoError(t, err)
	require.Greater(t, len(all), 1000)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	shuffle(all, seed)
	for _, m := range all[:drawn] {
		source, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		requireParses(t, string(m.apply(source)), m)
	}
}

func requireParses(t *testing.T, source string, m mutant) {
	t.Helper()
	_, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	require.NoError(t, err, "%s", m)
}

// TestPatternsNameFilesAndLines: a line chooses its mutants alone, and what names nothing is an error.
func TestPatternsNameFilesAndLines(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "slips.go"), []byte(slips), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "slips_test.go"), []byte(slips), 0o644))
	all, err := collect(root, []string{"*.go"})
	require.NoError(t, err)
	twice, err := collect(root, []string{"*.go", "slips.go:4"})
	require.NoError(t, err)
	require.Equal(t, all, twice)
	line, err := collect(root, []string{"slips.go:4"})
	require.NoError(t, err)
	require.Len(t, line, 2)
	for _, pattern := range []string{"other.go", "slips.go:1", "slips.go:x", "slips_test.go"} {
		_, err := collect(root, []string{pattern})
		require.ErrorContains(t, err, pattern)
	}
}
