package compat

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

// ours are the commands that redis-server 7.0.15 has not, beside all that begin with rl.: nothing here can be compared.
var ours = []string{
	"cl.throttle", "gcra", "increx", "client|setinfo", "client|no-touch",
}

// newer are the commands that follow a later Redis in what they take, and why. Their arity is not compared.
var newer = map[string]string{
	"zrank":    "Redis 7.2 added WITHSCORE",
	"zrevrank": "Redis 7.2 added WITHSCORE",
}

// commandNames lists what the program under test offers, sub-commands as "client|id" among them.
func commandNames(t *testing.T, server *harness.Server) []string {
	t.Helper()
	names := harness.Dial(t, server.Addr).Ask("COMMAND", "LIST").Strings()
	require.NotEmpty(t, names)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "rl.") || slices.Contains(ours, name) })
}

// TestEveryCommandIsCompared fails for a command that no line of testdata runs.
func TestEveryCommandIsCompared(t *testing.T) {
	if harness.SubjectIsReference(t) {
		return // redis-server has commands that headgate has not
	}
	scripts, err := loadScripts()
	require.NoError(t, err)
	seen := make(map[string]bool)
	for _, s := range scripts {
		for _, st := range s.steps {
			if len(st.args) > 0 {
				seen[strings.ToLower(st.args[0])] = true
			}
			if len(st.args) > 1 {
				seen[strings.ToLower(st.args[0]+"|"+st.args[1])] = true
			}
		}
	}
	for _, name := range commandNames(t, harness.Start(t)) {
		assert.True(t, seen[name], "no line of testdata runs %s", strings.ReplaceAll(name, "|", " "))
	}
}

// TestScriptsAreNamedAsWhatTheyCover: <file>_<topic>.txt is of the server's file or package of that name, and replayed_<program>.txt what a gateway or a
// client sends that is not run here.
func TestScriptsAreNamedAsWhatTheyCover(t *testing.T) {
	covered := map[string]bool{"replayed": true}
	err := filepath.WalkDir(filepath.Join(harness.Root(t), "server"), func(path string, _ fs.DirEntry, err error) error {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		covered[name] = true
		return err
	})
	require.NoError(t, err)
	scripts, err := loadScripts()
	require.NoError(t, err)
	for _, s := range scripts {
		file, _, _ := strings.Cut(s.name, "_")
		assert.True(t, covered[file], "%s: no file or package of the server's is called %s", s.name, file)
	}
}

// TestWrongArity calls every command with one argument too few, and one too many where it takes a fixed number.
func TestWrongArity(t *testing.T) {
	p := startPair(t)
	l := p.dial(t, 2)
	compared := 0
	for _, name := range commandNames(t, p.subject) {
		if newer[name] != "" {
			continue
		}
		for _, args := range wrongCalls(name, arityOf(t, l.reference, name)) {
			require.NoError(t, l.send(harness.Command(args...)))
			reference, subject, err := l.read()
			require.NoError(t, err, "%q", args)
			assert.Equal(t, reference.Wire(), subject.Wire(), "%q", args)
			compared++
		}
	}
	t.Logf("%d calls with a wrong number of arguments compared", compared)
}

func arityOf(t *testing.T, reference *harness.Client, name string) int {
	t.Helper()
	info := reference.Ask("COMMAND", "INFO", name)
	require.Len(t, info.Items, 1)
	require.NotEmpty(t, info.Items[0].Items, "redis-server has no %s: list it in ours", name)
	arity, err := strconv.Atoi(info.Items[0].Items[1].Text)
	require.NoError(t, err)
	return arity
}

// wrongCalls are calls that the arity forbids. A sub-command's words both count.
func wrongCalls(name string, arity int) [][]string {
	words := strings.Split(name, "|")
	fill := func(n int) []string {
		args := slices.Clone(words)
		for len(args) < n {
			args = append(args, "x")
		}
		return args
	}
	var calls [][]string
	least := max(arity, -arity)
	if least > len(words) {
		calls = append(calls, fill(least-1))
	}
	if arity > 0 {
		calls = append(calls, fill(least+1), fill(least+5))
	}
	return calls
}

// TestCommandInfo compares what COMMAND INFO says of each command: name, arity, flags, key positions, categories, tips.
func TestCommandInfo(t *testing.T) {
	const flags, categories = 2, 6
	p := startPair(t)
	l := p.dial(t, 2)
	for _, name := range commandNames(t, p.subject) {
		if newer[name] != "" {
			continue
		}
		require.NoError(t, l.send(harness.Command("COMMAND", "INFO", name)))
		reference, subject, err := l.read()
		require.NoError(t, err)
		for i, field := range []string{"name", "arity", "flags", "first key", "last key", "key step", "categories", "tips"} {
			want, got := reference.Items[0].Items[i], subject.Items[0].Items[i]
			if i == flags || i >= categories {
				want, got = want.Sorted(false), got.Sorted(false)
			}
			assert.Equal(t, want.Wire(), got.Wire(), "%s of %s", field, name)
		}
	}
}
