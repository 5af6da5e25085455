package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// style lists words that the project's English does without, and what to write instead. It is short on purpose: each entry is a habit that
// made texts hard to read.
var style = []struct {
	words   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(some|any|every|no)body\b`), "name who it is: a client, an operator, a user, no one"},
	{regexp.MustCompile(`(?i)\bwho(m|)ever\b`), "name who it is"},
	{regexp.MustCompile(`(?i),? of which\b`), "begin a new sentence"},
	{regexp.MustCompile(`(?i)\bof late\b`), "recently, or the period"},
	{regexp.MustCompile(`(?i)\bwhat (is|there|was) (there|is|are|was)\b`), "name it"},
	{regexp.MustCompile(`(?i)\blet(s|ting|)? go of\b`), "releases, frees"},
	{regexp.MustCompile(`(?i)\bat home\b`), "on a native server"},
	{regexp.MustCompile(`(?i)\b(go|goes|going|went|gone) on\b`), "continue"},
	{regexp.MustCompile(`(?i)\banew\b`), "again, from scratch"},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix, correct"},
	{regexp.MustCompile(`(?i)\blikewise\b`), "also, the same"},
	{regexp.MustCompile(`(?i)\bnothing but\b`), "only"},
	{regexp.MustCompile(`(?i)\bbut for\b`), "except"},
	{regexp.MustCompile(`(?i)\b(be|is|are|was) had\b`), "is available"},
	{regexp.MustCompile(`(?i)\bin hope\b`), "leave it out"},
	{regexp.MustCompile(`(?i)\bor none (is|are)\b`), "or none"},
	{regexp.MustCompile(`(?i)\bprinted of\b`), "published for"},
	{regexp.MustCompile(`(?i)\bonce more\b`), "again"},
	{regexp.MustCompile(`(?i)\b(tell|tells|told|telling) of\b`), "reports"},
	{regexp.MustCompile(`(?i)\b(say|says|said) of\b`), "reports"},
	{regexp.MustCompile(`(?i)\ball there is\b`), "everything"},
	{regexp.MustCompile(`(?i)\b(turn|turns) the clients\b`), "switch the clients over"},
	{regexp.MustCompile(`(?i)\b(teh|recieve|seperate|occured|succesful|wich|adress|lenght|existant|dependancy|accomodate)\w*\b`), "a spelling mistake"},
	{regexp.MustCompile(`(?i)\b(the the|a a|is is|to to|of of|and and|in in|it it)\b`), "a word twice"},
}

// code is what a document does not say in words of its own.
var code = regexp.MustCompile("(?s)<!--.*?-->|``.*?``|`[^`]*`")

// faults are the lines of a text that have words of the list.
func faults(text string) (found []string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, entry := range style {
			if words := entry.words.FindString(line); words != "" {
				found = append(found, strconv.Itoa(number)+": "+strings.TrimSpace(words)+": "+entry.instead)
			}
		}
	}
	return found
}

// blanked replaces what matches by as many line ends as it has.
func blanked(pattern *regexp.Regexp, text string) string {
	return pattern.ReplaceAllStringFunc(text, func(match string) string { return strings.Repeat("\n", strings.Count(match, "\n")) })
}

// TestStyle: no document, help text or message has words of the list.
func TestStyle(t *testing.T) {
	root, paths := documents(t)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, fault := range faults(blanked(code, blanked(fence, string(text)))) {
			t.Errorf("%s:%s", strings.TrimPrefix(path, root+"/"), fault)
		}
	}
	for _, dir := range []string{"cmd", "server", "persistence", "store", "throttle"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, fault := range faultsInStrings(t, path) {
				t.Errorf("%s:%s", strings.TrimPrefix(path, root+"/"), fault)
			}
			return nil
		}))
	}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".yaml", ".conf", ".txt"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, fault := range faults(string(text)) {
			t.Errorf("%s:%s", strings.TrimPrefix(path, root+"/"), fault)
		}
		return nil
	}))
}

// faultsInStrings are those of a Go file's texts: help, errors, log messages, descriptions, and the package's comment. Other comments are for those
// who work on it.
func faultsInStrings(t *testing.T, path string) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution|parser.ParseComments)
	require.NoError(t, err)
	if file.Doc != nil {
		found = append(found, faults(file.Doc.Text())...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		require.NoError(t, err)
		for _, fault := range faults(text) {
			_, fault, _ = strings.Cut(fault, ": ")
			found = append(found, strconv.Itoa(files.Position(literal.Pos()).Line)+": "+fault)
		}
		return true
	})
	return found
}

// TestStyleFindsWords: the list would notice.
func TestStyleFindsWords(t *testing.T) {
	require.Len(t, faults("The server goes on anew.\nThis is fine."), 2)
	require.Empty(t, faults(blanked(code, "`the server goes on`, says the log")))
	path := filepath.Join(t.TempDir(), "x.go")
	require.NoError(t, os.WriteFile(path, []byte("// Package x waits for anybody.\npackage x\n\nconst a = \"nobody asks\" // somebody\n"), 0o644))
	require.Equal(t, []string{"1: anybody: " + style[0].instead, "4: nobody: " + style[0].instead}, faultsInStrings(t, path))
}
