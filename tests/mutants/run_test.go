package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// tinyFiles are a module whose tests know some of its functions.
var tinyFiles = map[string]string{
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
	var c [2]int
	_ = len(c)
	b := a
	_ = b
}

func Rest(a [2]uint8) []uint8 { return a[1:] }
`,
	"own/own_test.go": `package own

import "testing"

func TestKnown(t *testing.T) {
	if Known(1) != 3 {
		t.Fail()
	}
}

func TestRest(t *testing.T) {
	if r := Rest([2]uint8{4, 5}); len(r) != 1 || r[0] != 5 {
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
	var out strings.Builder
	tiny := trial{
		runner: &runner{root: root, dir: dir, limit: time.Second, memory: 4096, tell: func(string) {}, warn: func(text string) { t.Log(text) }},
		out:    &out, suites: []string{"./..."}, workers: 2,
	}
	results, broken, err := tiny.try(context.Background(), all, len(all))
	require.NoError(t, err)
	got := map[string]string{}
	for _, o := range results {
		got[fmt.Sprintf("%d %s: %s", o.line, o.what, o.before)] = o.by
	}
	require.Equal(t, map[string]string{
		"4 flip a comparison: a < 3":   "own TestKnown",
		"4 negate a condition: a < 3":  "own TestKnown",
		"4 move a bound by one: 3":     "own TestKnown",
		"5 drop a statement: a++":      "own TestKnown, which did not end",
		"7 return zero: return a":      "own TestKnown",
		"10 return zero: return true":  "more TestElsewhere",
		"12 return zero: return true":  "",
		"21 move a bound by one: 1":    "own TestRest",
		"21 return zero: return a[1:]": "own TestRest",
	}, got)
	require.Equal(t, 3, broken, "two variables would not be used, and the length of an array is not chosen when the program runs")
	require.Contains(t, out.String(), "own/own.go:12\treturn zero\treturn true\treturn *new(bool)\n  noticed by none of these tests\n")
	source, err := os.ReadFile(filepath.Join(root, "own", "own.go"))
	require.NoError(t, err)
	require.Equal(t, tinyFiles["own/own.go"], string(source))
}

// TestTestsMustPassWithoutAMutant: tests that fail on the tree as it is judge nothing.
func TestTestsMustPassWithoutAMutant(t *testing.T) {
	root := t.TempDir()
	writeTiny(t, root)
	require.NoError(t, os.WriteFile(filepath.Join(root, "own", "own_test.go"), []byte("package own\n\nvar _ = missing\n"), 0o644))
	all, err := collect(root, []string{"own/*.go"})
	require.NoError(t, err)
	tiny := trial{runner: &runner{root: root, dir: t.TempDir(), limit: time.Second, memory: 4096, tell: func(string) {}, warn: func(text string) { t.Log(text) }}, out: io.Discard}
	_, _, err = tiny.try(context.Background(), all, 1)
	require.ErrorContains(t, err, "own fails without a mutant")
	require.ErrorContains(t, err, "own_test.go:3:9", "and why")
}

// TestMutantsOfOneProgramLieApart: of two in one place, one waits for the next program.
func TestMutantsOfOneProgramLieApart(t *testing.T) {
	now, later := apart([]mutant{{file: "a.go", from: 10, to: 20}, {file: "a.go", from: 15, to: 16}, {file: "b.go", from: 15, to: 16}, {file: "a.go", from: 20, to: 21}})
	require.Equal(t, []mutant{
		{file: "a.go", from: 10, to: 20, id: 1}, {file: "b.go", from: 15, to: 16, id: 2}, {file: "a.go", from: 20, to: 21, id: 3},
	}, now)
	require.Equal(t, []mutant{{file: "a.go", from: 15, to: 16}}, later)
}

func writeTiny(t *testing.T, root string) {
	for name, text := range tinyFiles {
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

// TestReportNamesSurvivors: the table has those that nothing noticed, in the order of their places.
func TestReportNamesSurvivors(t *testing.T) {
	var out strings.Builder
	report(&out, []outcome{
		{mutant: mutant{file: "b.go", line: 10, what: dropped, before: "x++"}},
		{mutant: mutant{file: "b.go", line: 9, what: flipped, before: "a < b", after: "a <= b"}},
		{mutant: mutant{file: "a.go", line: 8}, by: "a TestA"},
	}, 1)
	require.Equal(t, `1 noticed, 2 survive; 1 more did not compile
     1 by a

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
