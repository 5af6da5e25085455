// Package docs replays the redis-cli transcripts of the documents against the built server: what they show is what
// happens.
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// prompt is redis-cli's, with its mark of the database and of a transaction.
var prompt = regexp.MustCompile(`^(?:127\.0\.0\.1:6379|redis)(?:\[\d+\])?(?:\(TX\))?> `)

// transcript is one fenced block of a document that shows redis-cli.
type transcript struct {
	file  string
	line  int // of the fence that opens it
	calls []call
}

// call is one command of a transcript and what is printed after it.
type call struct {
	line    int
	command string
	output  string
}

// transcripts finds the blocks fenced as console, or that begin with a prompt.
func transcripts(t *testing.T, path string) []transcript {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var found []transcript
	var block *transcript
	inFence, number := false, 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "```") && inFence:
			if block != nil && len(block.calls) > 0 {
				found = append(found, *block)
			}
			inFence, block = false, nil
		case strings.HasPrefix(line, "```"):
			inFence, block = true, &transcript{file: filepath.Base(path), line: number}
		case inFence && prompt.MatchString(line):
			block.calls = append(block.calls, call{line: number, command: prompt.ReplaceAllString(line, "")})
		case inFence && len(block.calls) > 0:
			last := &block.calls[len(block.calls)-1]
			last.output += line + "\n"
		}
	}
	require.False(t, inFence, "%s: a fence is not closed", path)
	return found
}

// replay pipes the commands into redis-cli, which prints as it does on a terminal, and compares call by call.
func (tr transcript) replay(t *testing.T, server *harness.Server) {
	var input, want strings.Builder
	for _, c := range tr.calls {
		input.WriteString(c.command + "\n")
		want.WriteString(c.output)
	}
	cli := exec.Command(harness.ReferenceCLI(t), "--no-raw", "-h", "127.0.0.1", "-p", strconv.Itoa(server.Port))
	cli.Stdin = strings.NewReader(input.String())
	out, err := cli.CombinedOutput()
	require.NoError(t, err, string(out))
	got := trimmed(string(out))
	for _, c := range tr.calls {
		expected := trimmed(c.output)
		if !strings.HasPrefix(got, expected) {
			require.Equal(t, trimmed(want.String()), trimmed(string(out)), "%s:%d: %s", tr.file, c.line, c.command)
		}
		got = strings.TrimPrefix(got, expected)
	}
	require.Empty(t, got, "%s:%d: more is printed than is shown", tr.file, tr.line)
}

// took is what redis-cli prints after a command that took half a second or more, which depends on the machine.
var took = regexp.MustCompile(`^\(\d+\.\d+s\)$`)

// trimmed drops blank lines, the spaces at the ends of lines and how long a command took, which no document shows.
func trimmed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \r\n"); line != "" && !took.MatchString(line) {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String()
}

// TestTranscripts replays the transcripts of README.md and docs/, those of one document one after the other on one server: a reader types
// them from top to bottom. Those of commands.md are made by the server's own tests, with a clock that stands still.
func TestTranscripts(t *testing.T) {
	root := harness.Root(t)
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	paths = append(paths, filepath.Join(root, "README.md"))
	for _, path := range paths {
		if filepath.Base(path) == "commands.md" {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			shown := transcripts(t, path)
			if filepath.Base(path) == "README.md" {
				require.NotEmpty(t, shown, "README.md shows no transcript")
			}
			var server *harness.Server
			for _, tr := range shown {
				if server == nil {
					server = harness.Start(t)
				}
				tr.replay(t, server)
			}
		})
	}
}
