package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^ *```(?:sh|bash)\n(.*?)^ *```$")
	makeCall   = regexp.MustCompile("(?m)(?:`|^ *)make ([a-z-]+)")
	tools      = []string{"bench", "check", "simulate", "ping", "cli", "version"}
)

// TestShellBlocks: each call of headgate in a shell block of a document is one that the program takes, and each make target that a document
// names is there.
func TestShellBlocks(t *testing.T) {
	root, paths := documents(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	taken := map[string]bool{} // those that were looked at: a translation has the same
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimPrefix(path, root+"/")
		for _, found := range makeCall.FindAllStringSubmatch(string(text), -1) {
			if filepath.Base(path) != "CHANGELOG.md" { // which also names those that there were
				require.Regexp(t, `(?m)^`+regexp.QuoteMeta(found[1])+`:`, string(makefile), "%s names make %s", name, found[1])
			}
		}
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for _, line := range calls(block[1]) {
				if !taken[line] {
					requireTaken(t, root, name, line)
				}
				taken[line] = true
			}
		}
	}
	require.Greater(t, len(taken), 10, "calls of headgate in documents")
}

// TestMakefileInAPathWithBlanks: the repository's own path is one word to the shell.
func TestMakefileInAPathWithBlanks(t *testing.T) {
	root, _ := documents(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	bare := regexp.MustCompile(`(?m)^.*[^"]\$\(CURDIR\).*$`).FindAllString(string(makefile), -1)
	require.Empty(t, bare)
	require.Contains(t, string(makefile), `"$(CURDIR)/`)
}

// calls are the calls of headgate in a block of shell, with its continued lines joined and without comments.
func calls(block string) (lines []string) {
	block = strings.ReplaceAll(block, "\\\n", " ")
	for line := range strings.Lines(block) {
		for _, command := range strings.Split(line, "&&") {
			command, _, _ = strings.Cut(command, " #")
			command = strings.TrimSpace(command)
			for _, start := range []string{"headgate ", "bin/headgate ", "go run ./cmd/headgate "} {
				if rest, ok := strings.CutPrefix(command, start); ok {
					lines = append(lines, rest)
				}
			}
		}
	}
	return lines
}

// requireTaken has the program read a line of words. What serves is only checked; of a tool, its flags are looked for in its help.
func requireTaken(t *testing.T, root, document, line string) {
	t.Helper()
	first := strings.Fields(line)[0]
	if slices.Contains(tools, first) {
		out, err := exec.Command(harness.Binary(t), first, "--help").CombinedOutput()
		require.NoError(t, err, string(out))
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "--") {
				require.Contains(t, string(out), word, "%s: headgate %s", document, line)
			}
		}
		return
	}
	words := `"$0" ` + line
	if !strings.Contains(line, "--check-config") {
		words += " --check-config"
	}
	cmd := exec.Command("/bin/sh", "-c", words, harness.Binary(t))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HEADGATE_UPSTREAM_PASSWORD=secret")
	out, err := cmd.CombinedOutput()
	if strings.Contains(strings.ToLower(string(out)), "no such file or directory") {
		return // a reader's own certificate, configuration file or file of users
	}
	require.NoError(t, err, "%s: headgate %s: %s", document, line, out)
}

func TestCallsAreFound(t *testing.T) {
	require.Equal(t, []string{"a --b    c", "--x 1"}, calls("headgate a --b \\\n  c # why\nmake build && bin/headgate --x 1   # that\nredis-cli headgate\n"))
}
