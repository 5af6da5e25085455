package limiter

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:generate go test -run Documented$ -write .

var writeDocs = flag.Bool("write", false, "bring the document in line with the table of algorithms")

// Marks between which the document holds the table of algorithms.
const (
	docsBegin = "<!-- algorithms:begin -->\n"
	docsEnd   = "<!-- algorithms:end -->"
)

func TestAlgorithmsDocumented(t *testing.T) {
	const path = "../../docs/algorithms.md"
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(document), docsBegin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, docsEnd)
	require.True(t, found)
	want := before + docsBegin + Standard.Markdown() + docsEnd + after
	if *writeDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server/limiter")
}
