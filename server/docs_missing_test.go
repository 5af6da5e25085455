package server_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// missing says why commands of Redis are not there. A command belongs to the first line of whose words one begins its name.
var missing = []struct {
	begins, why string
}{
	{"geo", "indexes of places have no part in limiting rates"},
	{"cluster migrate restore-asking", "headgate forms no clusters: no key ever moves to another node"},
	{"module", "headgate loads no modules; redis-cell's command is built in"},
	{"pfdebug pfselftest", "tests of Redis itself"},
	{"script|debug", "there is no debugger for scripts"},
	{"", "not part of this version"},
}

// missingMarkdown lists the commands of redis-server 7.0.15 that the table of commands has not. Of a family that is missing as a
// whole the sub-commands are left out.
func missingMarkdown(redis []string) string {
	r := servertest.DeclaredCommands()
	lists := make([][]string, len(missing))
	for _, name := range redis {
		container, _, isSub := strings.Cut(name, "|")
		if r.ByFullName([]byte(name)) != nil || (isSub && r.Lookup([]byte(container)) == nil) {
			continue
		}
		i := slices.IndexFunc(missing, func(m struct{ begins, why string }) bool {
			return m.begins == "" || slices.ContainsFunc(strings.Fields(m.begins), func(word string) bool { return strings.HasPrefix(name, word) })
		})
		lists[i] = append(lists[i], "`"+strings.ToUpper(strings.ReplaceAll(name, "|", " "))+"`")
	}
	var b strings.Builder
	b.WriteString("\n| Commands | Why |\n|---|---|\n")
	for i, list := range lists {
		if len(list) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(list, " "), missing[i].why)
		}
	}
	b.WriteString("| `SENTINEL …` | as in Redis, only a sentinel has it, and headgate is none |\n\n")
	return b.String()
}

// TestMissingDocumented fails when docs/commands.md does not tell which commands of Redis are not there; go generate mends it.
func TestMissingDocumented(t *testing.T) {
	const path = "../docs/commands.md"
	names, err := os.ReadFile("testdata/redis_commands.txt")
	require.NoError(t, err)
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	want := servertest.ReplaceBetween(t, string(document), "missing", missingMarkdown(strings.Fields(string(names))))
	if *servertest.WriteDocs {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(document), "run: go generate ./server")
}
