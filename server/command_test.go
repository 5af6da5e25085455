package server_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server/command"
	"headgate/server/observe"
	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

// secretLine draws a command line, with a secret wherever an argument is one by its name, and with or without what is optional.
func secretLine(args []command.Arg, optional bool) (line []string) {
	for _, a := range args {
		if a.Optional && !optional {
			continue
		}
		if a.Token != "" {
			line = append(line, a.Token)
		}
		switch {
		case a.Type == "pure-token":
		case a.IsSecret():
			line = append(line, theSecret)
		case a.Type == "block":
			line = append(line, secretLine(a.Args, optional)...)
		case a.Type == "oneof":
			i := max(slices.IndexFunc(a.Args, func(one command.Arg) bool { return command.TakeSecrets([]command.Arg{one}) }), 0)
			line = append(line, secretLine(a.Args[i:i+1], optional)...)
		default:
			line = append(line, "1")
		}
	}
	return line
}

const theSecret = "hunter2"

// TestSecretsAreShownToNobody goes through the table: wherever a command takes a password, the slow log and MONITOR hide it.
func TestSecretsAreShownToNobody(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	c := &command.Ctx{Core: w.Srv.Core}
	hidden := 0
	for _, cmd := range w.Srv.Commands.All {
		for _, optional := range []bool{false, true} {
			line := append(strings.Split(cmd.FullName, "|"), secretLine(cmd.Args, optional)...)
			if !slices.Contains(line, theSecret) {
				continue
			}
			hidden++
			args := make([][]byte, len(line))
			for i, word := range line {
				args[i] = []byte(word)
			}
			for i, shown := range observe.Redacted(c, cmd, args) {
				require.NotEqual(t, theSecret, string(shown), "argument %d of %q", i, line)
			}
		}
	}
	require.GreaterOrEqual(t, hidden, 3, "AUTH in two forms, HELLO in one")
}

// TestHidden says of each command that hides something what that is.
func TestHidden(t *testing.T) {
	w := servertest.NewWorkerClient(t)
	c := &command.Ctx{Core: w.Srv.Core}
	hides := map[string]bool{}
	for _, one := range []struct{ line, shown string }{
		{"auth p", "auth *"},
		{"auth u p", "auth * *"},
		{"hello 3 auth u p setname n", "hello 3 auth * * setname n"},
		{"hello 3 setname auth p q r", "hello 3 setname auth * * r"},
		{"hello auth u p", "hello auth u p"},
		{"config set timeout 1 requirepass p maxmemory 2", "config set timeout 1 requirepass * maxmemory 2"},
		{"config set REQUIREPASS requirepass", "config set REQUIREPASS *"},
		{"acl setuser u >p", "acl setuser * *"},
		{"acl deluser u v", "acl deluser * *"},
		{"acl getuser u", "acl getuser *"},
		{"acl dryrun u auth p", "acl dryrun u auth *"},
		{"acl cat string", "acl cat string"},
		{"command getkeys auth p", "command getkeys auth *"},
		{"command getkeysandflags config set requirepass p", "command getkeysandflags config * * *"},
		{"set k v", "set k v"},
	} {
		args := [][]byte{}
		for word := range strings.FieldsSeq(one.line) {
			args = append(args, []byte(word))
		}
		cmd := w.Srv.Commands.Lookup(args[0])
		if cmd.Sub != nil {
			cmd = cmd.Subcommand(args[1])
		}
		hides[cmd.FullName] = true
		shown := []string{}
		for _, arg := range observe.Redacted(c, cmd, args) {
			shown = append(shown, string(arg))
		}
		require.Equal(t, one.shown, strings.ReplaceAll(strings.Join(shown, " "), string(observe.RedactedWord), "*"))
		require.Equal(t, one.line, string(bytes.Join(args, []byte(" "))), "the line itself is as it was")
	}
	for _, cmd := range w.Srv.Commands.All {
		require.True(t, cmd.Secret == nil || hides[cmd.FullName], "%s hides something: say here what", cmd.FullName)
	}
}

// TestACommandThatShowsItsSecretIsNotDeclared: to forget Secret is noticed when the server starts, and so by every test.
func TestACommandThatShowsItsSecretIsNotDeclared(t *testing.T) {
	declare := func(secret command.Secret, args ...command.Arg) func() {
		return func() {
			command.NewRegistry([]*command.Command{{
				Name: "take", Group: command.GroupString, Since: "test", Complexity: "O(1)", Summary: "Take it.",
				Arity: -1, Args: args, Secret: secret, Reply: command.ReplySimple, Handler: func(*command.Ctx) {},
			}})
		}
	}
	for _, name := range []string{"password", "new-password", "old_passwd", "Secret", "api-token", "pass"} {
		require.Panics(t, declare(nil, command.Str(name)), name)
		require.Panics(t, declare(nil, command.Block("b", command.OneOf("o", command.Tok("A"), command.Str(name).After("B").Opt()).Multi())), name)
		require.NotPanics(t, declare(command.SecretFrom(1), command.Str(name)), name)
	}
	for _, harmless := range []command.Arg{command.Integer("tokens-per-period"), command.Tok("TOKEN"), command.Str("passes"), command.Block("password", command.Str("user"))} {
		require.NotPanics(t, declare(nil, harmless), harmless.Name)
	}
}

// TestNothingDecidesByACommandsName reads the source: what holds of one command only is a field or a flag of its declaration. Elsewhere
// it would be forgotten for the next command.
func TestNothingDecidesByACommandsName(t *testing.T) {
	f := newNameFinder(t)
	excused := maps.Clone(noCommandNames)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path == "script":
			return filepath.SkipDir // it knows Lua's names, and no command's
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		for _, found := range f.find(path, nil) {
			place := filepath.ToSlash(path) + " " + found.text
			delete(excused, place)
			if noCommandNames[place] == "" {
				t.Errorf("%s: %s is a command's name: declare what is decided here in the command's entry", f.files.Position(found.pos), found.text)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, excused, "nothing of the kind is there any more")
}

// noCommandNames are the words that are called like a command and mean something else.
var noCommandNames = map[string]string{
	`acl/user.go "reset"`:      "a rule",
	`admin/client.go "pubsub"`: "a kind of client",

	`upstream/handshake.go "cluster"`: "a server's mode",
	`upstream/handshake.go "reset"`:   "what became of a connection",
	`upstream/look.go "cluster"`:      "a server's mode",
	`config/args.go "save"`:           "a directive",
	`host/machine.go "memory"`:        "a controller of cgroups",
	`httpcheck/template.go "client"`:  "a place in a key",
}

// nameFinder finds comparisons with commands' names in source.
type nameFinder struct {
	t     *testing.T
	files *token.FileSet
	names map[string]bool   // full names, in lower case
	texts map[string]string // what the file's constants stand for
	found []foundName
}

// foundName is a literal, or a constant, that is a command's name.
type foundName struct {
	pos  token.Pos
	text string
}

func newNameFinder(t *testing.T) *nameFinder {
	f := &nameFinder{t: t, files: token.NewFileSet(), names: map[string]bool{}}
	for _, cmd := range servertest.DeclaredCommands().All {
		f.names[cmd.FullName] = true
	}
	return f
}

// find returns the comparisons with commands' names in a file; source is what it holds, or nil to read it.
func (f *nameFinder) find(path string, source any) []foundName {
	file, err := parser.ParseFile(f.files, path, source, parser.SkipObjectResolution)
	require.NoError(f.t, err)
	f.found, f.texts = nil, map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool { f.learn(node); return true })
	ast.Inspect(file, func(node ast.Node) bool { f.visit(node); return true })
	return f.found
}

// learn notes what constants stand for.
func (f *nameFinder) learn(node ast.Node) {
	declaration, ok := node.(*ast.GenDecl)
	if !ok || declaration.Tok != token.CONST {
		return
	}
	for _, spec := range declaration.Specs {
		values := spec.(*ast.ValueSpec)
		for i, value := range values.Values {
			if text, ok := f.text(value); ok {
				f.texts[values.Names[i].Name] = text
			}
		}
	}
}

// comparers are the functions that compare text or look something up by it, but for those of upper-case words.
var comparers = []string{"isNamed", "lookup", "byFullName", "byOwnName", "sub", "Contains", "ContainsFunc", "Index", "EqualFold", "Equal", "HasPrefix", "HasSuffix", "Compare"}

// visit looks at one node: whether it compares something with a command's name, or lists such names for others to do so.
func (f *nameFinder) visit(node ast.Node) {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			f.compare(n.X, n.Y)
			f.compare(n.Y, n.X)
		}
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, value := range clause.(*ast.CaseClause).List {
				f.compare(n.Tag, value)
			}
		}
	case *ast.IndexExpr:
		f.compare(nil, n.Index)
	case *ast.KeyValueExpr:
		f.compare(nil, n.Key)
	case *ast.CallExpr:
		f.call(n)
	case *ast.CompositeLit:
		f.list(n)
	case *ast.BasicLit:
		f.words(n)
	}
}

// compare looks at a comparison of what, which is nil for a key of a map, with a value that may be a name.
func (f *nameFinder) compare(what, value ast.Expr) {
	text, ok := f.text(value)
	if group, isGroup := what.(*ast.SelectorExpr); isGroup && group.Sel.Name == "Group" {
		return // groups are called like their commands: hash, set
	}
	if ok && (f.names[text] || isCommandsWord(what) && f.names[strings.ToLower(text)]) {
		f.found = append(f.found, foundName{value.Pos(), strconv.Quote(text)})
	}
}

// call looks at a call that compares its arguments with each other.
func (f *nameFinder) call(n *ast.CallExpr) {
	name := ""
	switch called := n.Fun.(type) {
	case *ast.SelectorExpr:
		name = called.Sel.Name
	case *ast.Ident:
		name = called.Name
	}
	var of ast.Expr // args[0], if it is compared
	for _, arg := range n.Args {
		if isCommandsWord(arg) {
			of = arg
		}
	}
	if name == "is" && len(n.Args) == 2 {
		if index, ok := n.Args[0].(*ast.BasicLit); ok && index.Value == "0" {
			of = commandsWord
		}
	}
	if strings.HasPrefix(name, "lookup") || name == "byFullName" || name == "byOwnName" {
		of = commandsWord
	}
	if of != nil || slices.Contains(comparers, name) {
		for _, arg := range n.Args {
			f.compare(of, arg)
		}
	}
}

// list looks at a list of texts that are all commands.
func (f *nameFinder) list(n *ast.CompositeLit) {
	array, ok := n.Type.(*ast.ArrayType)
	if !ok || lastName(array.Elt) != "string" {
		return
	}
	var names []foundName
	for _, value := range n.Elts {
		if text, ok := f.text(value); ok && f.names[text] {
			names = append(names, foundName{value.Pos(), strconv.Quote(text)})
		}
	}
	if len(names) > 1 && len(names) == len(n.Elts) {
		f.found = append(f.found, names...)
	}
}

// words looks at a text that lists commands.
func (f *nameFinder) words(n *ast.BasicLit) {
	text, ok := f.text(n)
	if !ok {
		return
	}
	words := strings.Fields(text)
	isOther := func(word string) bool { return !f.names[word] }
	isSub := func(word string) bool { return f.names[word] && strings.Contains(word, "|") }
	if slices.ContainsFunc(words, isSub) || len(words) > 1 && !slices.ContainsFunc(words, isOther) {
		f.found = append(f.found, foundName{n.Pos(), strconv.Quote(text)})
	}
}

// text is the text that an expression is, by itself, as a constant of the file or made into bytes.
func (f *nameFinder) text(e ast.Expr) (string, bool) {
	switch n := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		return text, err == nil && n.Kind == token.STRING
	case *ast.Ident:
		text, ok := f.texts[n.Name]
		return text, ok
	case *ast.ParenExpr:
		return f.text(n.X)
	case *ast.CallExpr:
		if array, ok := n.Fun.(*ast.ArrayType); ok && len(n.Args) == 1 && array.Len == nil {
			return f.text(n.Args[0])
		}
	}
	return "", false
}

// commandsWord stands for the word by which a command was called.
var commandsWord ast.Expr = &ast.SelectorExpr{X: ast.NewIdent("cmd"), Sel: ast.NewIdent("upper")}

// isCommandsWord reports whether an expression is a command's name in upper case or the word by which it was called, which may be in any.
func isCommandsWord(e ast.Expr) bool {
	switch n := e.(type) {
	case *ast.SelectorExpr:
		return n.Sel.Name == "upper" || n.Sel.Name == "fullName"
	case *ast.CallExpr: // string(args[0])
		return len(n.Args) == 1 && isCommandsWord(n.Args[0])
	case *ast.IndexExpr:
		index, ok := n.Index.(*ast.BasicLit)
		return ok && index.Value == "0" && lastName(n.X) == "args"
	}
	return false
}

// lastName is the last name of a chain of selectors.
func lastName(e ast.Expr) string {
	switch n := e.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return n.Sel.Name
	}
	return ""
}

// TestNameFinder: what decides by a name is found in each form, and options that are called like commands are not.
func TestNameFinder(t *testing.T) {
	f := newNameFinder(t)
	find := func(code string) []foundName { return f.find("code.go", "package p\n"+code) }
	for _, code := range []string{
		`func f() bool { return cmd.Name == "exec" }`,
		`func f() bool { return "exec" != c.cmd.fullName }`,
		`func f() { switch cmd.fullName { case "ping", "config|set": } }`,
		`func f(name string) { switch { case name == "publish": } }`,
		`const e = "exec"; func f() bool { return cmd.Name == e }`,
		`func f() bool { return cmd.isNamed("sort") }`,
		`func f() bool { return cmd.upper == "EXEC" }`,
		`func f() bool { return c.is(0, "MULTI") }`,
		`func f() bool { return ascii.EqualFold(args[0], "MULTI") }`,
		`func f() bool { return ascii.EqualFold(c.args[0], "multi") }`,
		`func f() bool { return string(c.args[0]) == "MULTI" }`,
		`func f() bool { return slices.Contains([]string{"sort", "sort_ro"}, name) }`,
		`func f() bool { return strings.EqualFold(name, "sort") }`,
		`func f() { x = s.commands.lookup([]byte("TIME")) }`,
		`func f() bool { return names["exec"] }`,
		`var names = map[string]bool{"exec": true}`,
		`var names = []string{"get", "set"}`,
		`var names = "get set mget"`,
		`var names = "acl|setuser"`,
	} {
		require.NotEmpty(t, find(code), code)
	}
	for _, code := range []string{
		`func f() bool { return c.is(2, "GET") }`,
		`func f() bool { return ascii.EqualFold(args[i], "PERSIST") }`,
		`func f() { c.notify(event, "set", c.args[1]) }`,
		`func f() string { return "lpush" }`,
		`var c = Command{Name: "get"}`,
		`var s = "the time of the keys"`,
		`func f() bool { return c.is(0, "POST") }`,
		`func f() bool { return cmd.Name == other.Name }`,
		`const GroupSet = "set"; func f() bool { return cmd.Group == GroupSet }`,
	} {
		require.Empty(t, find(code), code)
	}
}
