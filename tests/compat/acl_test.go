package compat

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"headgate/tests/internal/harness"
)

var (
	aclN    = flag.Int("acl.n", 1_000, "lists of random rules that TestRandomRules compares")
	aclSeed = flag.Uint64("acl.seed", 0, "seed of TestRandomRules; 0 draws one")
)

// aclCommand is a command that both servers have.
type aclCommand struct {
	words []string
	arity int
}

// aclCommands returns what both servers have, sub-commands too. Left out are commands whose keys are found by a number among the
// arguments: where it is none, redis-server takes the command for one without keys, and has it fail for that. So it does with PFMERGE
// of nothing but its destination, which acl_check.txt has among the differences.
func aclCommands(t *testing.T, l link) []aclCommand {
	t.Helper()
	var list []aclCommand
	for _, name := range l.reference.Ask("COMMAND", "LIST").Strings() {
		info := l.subject.Ask("COMMAND", "INFO", name).Items[0]
		if info.Null {
			continue
		}
		words := strings.Split(name, "|")
		isContainer := len(words) == 1 && len(info.Items[9].Items) > 0 // its sub-commands stand for it
		if isContainer || newer[name] != "" || name == "pfmerge" || slices.Contains(info.Items[2].Strings(), "movablekeys") {
			continue
		}
		arity, err := strconv.Atoi(info.Items[1].Text)
		require.NoError(t, err)
		list = append(list, aclCommand{words, arity})
	}
	slices.SortFunc(list, func(a, b aclCommand) int { return slices.Compare(a.words, b.words) })
	return list
}

// rules draws random rules and command lines.
type rules struct {
	*dice
	commands []aclCommand
	names    []string // of commands, as rules have them
}

var aclCategories = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "stream", "pubsub", "admin", "fast",
	"slow", "blocking", "dangerous", "connection", "transaction", "scripting",
}

func (d *rules) pattern() string {
	return d.one("*", "k*", "k1", "k?", "[a-c]*", "x", "", "k1*", "ch*", "*1")
}

// selector draws a rule that selectors take as well as users.
func (d *rules) selector() string {
	sign := d.one("+", "-")
	switch d.IntN(14) {
	case 0, 1, 2:
		return sign + d.names[d.IntN(len(d.names))]
	case 3, 4:
		return sign + "@" + d.one(aclCategories...)
	case 5:
		return d.one("+@all", "-@all", "allcommands", "nocommands")
	case 6:
		return sign + strings.ToUpper(d.names[d.IntN(len(d.names))])
	case 7:
		return "+" + d.names[d.IntN(len(d.names))] + "|" + d.one("k1", "get", "0", "x", "")
	case 8, 9:
		return d.one("~", "~", "%R~", "%W~", "%RW~", "%r~", "%") + d.pattern()
	case 10:
		return "&" + d.pattern()
	case 11:
		return d.one("allkeys", "resetkeys", "allchannels", "resetchannels", "RESETKEYS", "resetkeys", "resetchannels")
	case 12:
		return sign + d.one("nosuch", "@nosuch", "config|nosuch", "", "@", "|")
	}
	return d.one("~a b", "nosuch", "~", "&", "(", ")", "on\x00", "%", "%X~a", "\x00")
}

func (d *rules) rule() []string {
	hash := strings.Repeat(d.one("0", "a", "f", "A", "g"), 64)
	switch d.IntN(12) {
	case 0:
		return []string{d.one("on", "off", "ON", "nopass", "resetpass", "reset", "clearselectors", "sanitize-payload", "skip-sanitize-payload", "")}
	case 1:
		return []string{d.one(">", ">", "<") + d.one("p1", "p2", "p3", "")}
	case 2:
		return []string{d.one("#", "#", "!") + d.one(hash, hash, hash[1:])}
	case 3, 4:
		inner := make([]string, d.IntN(4))
		for i := range inner {
			inner[i] = d.selector()
		}
		text := "(" + strings.Join(inner, " ") + d.one(")", ")", ")", ")", "", " )")
		if d.IntN(2) == 0 {
			return []string{text}
		}
		return strings.Split(text, " ")
	}
	return []string{d.selector()}
}

// line draws a command line that both servers may be asked about.
func (d *rules) line() []string { return d.lineOf(d.commands[d.IntN(len(d.commands))]) }

func (d *rules) lineOf(c aclCommand) []string {
	line := slices.Clone(c.words)
	for n := max(c.arity, -c.arity) + d.IntN(3); len(line) < n; {
		line = append(line, d.one("k1", "k2", "a1", "x", "1", "2", "ch1", "get", "GET", "store", "streams", "0", "*"))
	}
	return line
}

// TestRandomRules makes users of random rules on both servers, and compares what they are and what they may do.
func TestRandomRules(t *testing.T) {
	seed := cmp.Or(*aclSeed, rand.Uint64())
	t.Logf("-acl.seed %d", seed)
	l := startPair(t).dial(t, 2)
	d := &rules{dice: &dice{rand.New(rand.NewPCG(seed, 0))}, commands: aclCommands(t, l)}
	require.Greater(t, len(d.commands), 200)
	for _, c := range d.commands {
		d.names = append(d.names, strings.Join(c.words, "|"))
	}
	reports := 0
	compare := func(args ...string) bool {
		reference, subject := l.reference.Ask(args...), l.subject.Ask(args...)
		if reference.Wire() != subject.Wire() {
			reports++
			t.Errorf("%q\n  redis-server: %q\n  headgate:     %q", args, reference.Wire(), subject.Wire())
		}
		return reference.Kind != '-'
	}
	accepted, same := 0, 0
	for range *aclN {
		if reports > maxReports {
			break
		}
		user := d.name("u", 5)
		args := []string{"ACL", "SETUSER", user}
		for range 1 + d.IntN(4) {
			args = append(args, d.rule()...)
		}
		if d.IntN(20) == 0 {
			args = []string{"ACL", "DELUSER", user}
		}
		if compare(args...) {
			accepted++
		}
		if compareUsers(t, l, user) {
			same++
		} else {
			for _, c := range d.commands {
				compare(append([]string{"ACL", "DRYRUN", user}, d.lineOf(c)...)...)
			}
		}
		for range 5 {
			compare(append([]string{"ACL", "DRYRUN", user}, d.line()...)...)
		}
	}
	compare("ACL", "USERS")
	t.Logf("%d lists of rules, %d of them accepted; %d users described in the same words", *aclN, accepted, same)
}

// compareUsers wants a user to be the same on both servers, and reports whether its commands are described in the same words: that
// depends on what other commands there are.
func compareUsers(t *testing.T, l link, user string) (sameWords bool) {
	t.Helper()
	reference, subject := l.reference.Ask("ACL", "GETUSER", user), l.subject.Ask("ACL", "GETUSER", user)
	if reference.Null || subject.Null {
		require.Equal(t, reference.Wire(), subject.Wire())
		return true
	}
	sameWords = true
	differ := func(ours, theirs harness.Value) {
		sameWords = sameWords && sortedWords(theirs.Text) == sortedWords(ours.Text)
	}
	a, b := fields(subject), fields(reference)
	differ(a["commands"], b["commands"])
	for _, name := range []string{"flags", "passwords", "keys", "channels"} {
		require.Equal(t, b[name].Wire(), a[name].Wire(), "%s of %s", name, user)
	}
	require.Len(t, a["selectors"].Items, len(b["selectors"].Items))
	for i, s := range a["selectors"].Items {
		ours, theirs := fields(s), fields(b["selectors"].Items[i])
		differ(ours["commands"], theirs["commands"])
		require.Equal(t, theirs["keys"].Text, ours["keys"].Text)
		require.Equal(t, theirs["channels"].Text, ours["channels"].Text)
	}
	return sameWords
}

// fields reads a map from a reply in RESP2.
func fields(v harness.Value) map[string]harness.Value {
	m := map[string]harness.Value{}
	for i := 0; i+1 < len(v.Items); i += 2 {
		m[v.Items[i].Text] = v.Items[i+1]
	}
	return m
}

func sortedWords(text string) string {
	words := strings.Fields(text)
	if len(words) > 1 {
		slices.Sort(words[1:])
	}
	return strings.Join(words, " ")
}

// TestACLCat wants each category to have the same commands on both servers, of those that both have.
func TestACLCat(t *testing.T) {
	l := startPair(t).dial(t, 2)
	theirs, ours := l.reference.Ask("COMMAND", "LIST").Strings(), l.subject.Ask("COMMAND", "LIST").Strings()
	common := func(category string, c *harness.Client) []string {
		names := slices.DeleteFunc(c.Ask("ACL", "CAT", category).Strings(), func(name string) bool {
			return !slices.Contains(theirs, name) || !slices.Contains(ours, name)
		})
		slices.Sort(names)
		return names
	}
	compared := 0
	for _, category := range l.reference.Ask("ACL", "CAT").Strings() {
		want := common(category, l.reference)
		require.Equal(t, want, common(category, l.subject), category)
		compared += len(want)
	}
	require.Equal(t, append(l.reference.Ask("ACL", "CAT").Strings(), "throttle"), l.subject.Ask("ACL", "CAT").Strings())
	t.Logf("%d commands in categories", compared)
}

// TestACLFile has both servers load and save files of users, right ones and wrong ones.
func TestACLFile(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	write := func(text string) {
		for _, dir := range dirs {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "users.acl"), []byte(text), 0o600))
		}
	}
	write("user default on nopass ~* &* +@all\nuser alice on >pw +@all ~a* (+get ~b)\n")
	flags := []string{"--aclfile", "users.acl", "--requirepass", "ignored"}
	subject, reference := harness.StartIn(t, dirs[0], flags...), harness.StartReferenceIn(t, dirs[1], flags...)
	dial := func() []*harness.Client {
		return []*harness.Client{harness.Dial(t, subject.Addr), harness.Dial(t, reference.Addr)}
	}
	admin := dial()
	both := func(clients []*harness.Client, args ...string) harness.Value {
		ours, theirs := clients[0].Ask(args...), clients[1].Ask(args...)
		require.Equal(t, theirs.Wire(), ours.Wire(), "%q", args)
		return ours
	}
	saved := func() string {
		both(admin, "ACL", "SAVE")
		var texts []string
		for _, dir := range dirs {
			text, err := os.ReadFile(filepath.Join(dir, "users.acl"))
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
		require.Equal(t, texts[1], texts[0])
		return texts[0]
	}
	both(admin, "ACL", "LIST")
	both(admin, "AUTH", "ignored")
	first := saved()
	both(admin, "ACL", "LOAD")
	require.Equal(t, first, saved())
	for i, text := range []string{
		"", "\n\n  \t\n", "user", "user ", "usr x", "# comment", "user a", "user a on\nuser a off", "user a nosuch", "user a +nosuch\nuser b %~x ~* ~a",
		"user a (+get", "user a (+get ~x)", "user a (+get (", "user \"a b\" on", "user a\tb on", "user a  on   nopass", "  user a on  \r\n",
		"USER a on", "user a on\x0b", "user a >p #x !y <z", "user default off ~* &* +@all", "user default on >x ~* &* +@all",
		"user a on ~k %R~r %W~w &c +@all -@dangerous (~x +get) (+@string) >pw",
	} {
		before := both(admin, "ACL", "LIST")
		write(text)
		loaded := both(admin, "ACL", "LOAD")
		if loaded.Kind == '-' {
			require.Equal(t, before.Wire(), both(admin, "ACL", "LIST").Wire(), "%q changed something", text)
			continue
		}
		both(admin, "ACL", "LIST")
		saved()
		both(dial(), "PING")
		write(fmt.Sprintf("user default on nopass ~* &* +@all\nuser u%d on nopass +@all", i))
		require.Equal(t, "+OK\r\n", both(admin, "ACL", "LOAD").Wire())
	}

	write("user default on nopass ~* &* +@all\nuser gone on nopass +@all\nuser stays on nopass +@all\n")
	both(admin, "ACL", "LOAD")
	gone, stays, def := dial(), dial(), dial()
	require.Equal(t, "+OK\r\n", both(gone, "AUTH", "gone", "x").Wire())
	both(stays, "AUTH", "stays", "x")
	write("user default on nopass ~* &* +@all\nuser stays on nopass +@all\n")
	both(admin, "ACL", "LOAD")
	both(def, "PING")
	for i := range dirs {
		for _, c := range []*harness.Client{gone[i], stays[i]} {
			_, closed := c.Drain(closedLimit)
			require.True(t, closed, "every user but the default one is made anew, and loses its clients")
		}
		require.NoError(t, os.Remove(filepath.Join(dirs[i], "users.acl")))
	}
	both(admin, "ACL", "LOAD")
	both(admin, "ACL", "WHOAMI")
}
