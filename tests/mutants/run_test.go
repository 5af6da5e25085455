package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// tiny is a module whose tests know one function of three.
var tiny = map[string]string{
	"go.mod": "module tiny\n\ngo 1.26\n",
	"own/own.go": `package own

func Known(a int) int {
	for a < 3 {
		a++
	}
	return a
}

func Elsewhere() bool { return true }

func Unknown() bool { return true }

func unused(a int) {
	b := a
	_ = b
}
`,
	"own/own_test.go": `package own

import "testing"

func TestKnown(t *testing.T) {
	if Known(1) != 3 {
		t.Fail()
	}
}
`,
	"more/more_test.go": `package more

import (
	"testing"

	"tiny/own"
)

func TestElsewhere(t *testing.T) {
	if !own.Elsewhere() {
		t.Fail()
	}
}
`,
}

// TestWhatNoticesAMutant tries mutants of a module that are noticed by the package's own tests, by those after them, by the time that they
// take, by the compiler, or not at all, and leaves the module as it was.
func TestWhatNoticesAMutant(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	writeTiny(t, root)
	all, err := collect(root, []string{"own/*.go"})
	require.NoError(t, err)
	var states []string
	r := &runner{
		root: root, dir: dir, suites: []string{"./more", "./own"}, limit: time.Second, memory: 4096,
		allowed: map[string]time.Duration{}, tell: func(state string) { states = append(states, state) },
	}
	for _, tc := range []struct {
		what, before string
		line         int
		want         outcome
	}{
		{flipped, "a < 3", 4, outcome{compiles: true, by: "./own"}},
		{dropped, "a++", 5, outcome{compiles: true, by: "./own"}}, // it never ends
		{zeroed, "return true", 10, outcome{compiles: true, by: "./more"}},
		{zeroed, "return true", 12, outcome{compiles: true}},
		{dropped, "_ = b", 16, outcome{}},
	} {
		for _, m := range all {
			if m.what == tc.what && m.before == tc.before && m.line == tc.line {
				tc.want.mutant = m
			}
		}
		require.NotZero(t, tc.want.file, tc.before)
		got, err := r.try(context.Background(), tc.want.mutant)
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
	require.Contains(t, states, "./more without a mutant")
	source, err := os.ReadFile(filepath.Join(root, "own", "own.go"))
	require.NoError(t, err)
	require.Equal(t, tiny["own/own.go"], string(source))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "the changed file and the overlay")
}

// TestTestsMustPassWithoutAMutant: tests that fail on the tree as it is judge nothing.
func TestTestsMustPassWithoutAMutant(t *testing.T) {
	root := t.TempDir()
	writeTiny(t, root)
	require.NoError(t, os.WriteFile(filepath.Join(root, "own", "own_test.go"), []byte("package own\n\nvar _ = missing\n"), 0o644))
	all, err := collect(root, []string{"own/*.go"})
	require.NoError(t, err)
	r := &runner{root: root, dir: t.TempDir(), limit: time.Second, memory: 4096, allowed: map[string]time.Duration{}, tell: func(string) {}}
	_, err = r.try(context.Background(), all[0])
	require.ErrorContains(t, err, "./own fails without a mutant")
	require.ErrorContains(t, err, "own_test.go:3:9", "and why")
}

func writeTiny(t *testing.T, root string) {
	for name, text := range tiny {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// TestFailuresOfMutantsAreRemoved: what rapid keeps of a failure goes, and what was there stays.
func TestFailuresOfMutantsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	write := func(words ...string) string {
		path := filepath.Join(append([]string{dir, "testdata"}, words...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		return path
	}
	stays := []string{write("rapid", "TestA", "1.fail"), write("golden.txt")}
	remove := sweep(dir)
	write("rapid", "TestA", "2.fail")
	write("rapid", "TestB", "3.fail")
	remove()
	var left []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && (!entry.IsDir() || entry.Name() == "TestB") {
			left = append(left, path)
		}
		return err
	}))
	require.ElementsMatch(t, stays, left)

	require.NoError(t, os.Remove(stays[0]))
	remove = sweep(dir)
	write("rapid", "TestA", "2.fail")
	remove()
	_, err := os.Stat(filepath.Join(dir, "testdata", "rapid"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.FileExists(t, stays[1])
}

// TestRepositoryIsFoundFromEitherModule: files are named from the server's module, wherever the tool is called.
func TestRepositoryIsFoundFromEitherModule(t *testing.T) {
	root := harness.Root(t)
	for _, dir := range []string{root, filepath.Join(root, "tests"), filepath.Join(root, "server", "acl")} {
		t.Chdir(dir)
		found, err := repositoryRoot()
		require.NoError(t, err)
		require.Equal(t, root, found)
	}
}

// TestReportNamesSurvivors: the table has those that compile and that nothing noticed, in the order of their places.
func TestReportNamesSurvivors(t *testing.T) {
	var out strings.Builder
	report(&out, []outcome{
		{mutant: mutant{file: "b.go", line: 10, what: dropped, before: "x++"}, compiles: true},
		{mutant: mutant{file: "b.go", line: 9, what: flipped, before: "a < b", after: "a <= b"}, compiles: true},
		{mutant: mutant{file: "a.go", line: 9}},
		{mutant: mutant{file: "a.go", line: 8}, compiles: true, by: "./a"},
	})
	require.Equal(t, `1 noticed, 2 survive; 1 more did not compile
     1 by ./a

place    change             before  after
b.go:9   flip a comparison  a < b   a <= b
b.go:10  drop a statement   x++     
`, out.String())
}

// TestOutputIsKeptInPart: a mutant that prints without end takes no memory for it.
func TestOutputIsKeptInPart(t *testing.T) {
	var b beginning
	for range 3 {
		n, err := b.Write(make([]byte, maxOutput/2+1))
		require.NoError(t, err)
		require.Equal(t, maxOutput/2+1, n)
	}
	require.Len(t, b.text, maxOutput)
}
