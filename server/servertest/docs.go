package servertest

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// WriteDocs is set by go generate: the tests that compare documents with what they derive from then write them.
var WriteDocs = flag.Bool("write", false, "bring the documents in line with the table of commands")

// ReplaceBetween puts a text between the marks of that name in a document.
func ReplaceBetween(t *testing.T, document, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	require.True(t, found && closed, "the document lacks %s:begin or %s:end", name, name)
	return before + begin + text + end + after
}
