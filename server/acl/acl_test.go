package acl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testTable has commands of several kinds: containers, sub-commands, one that authenticates.
func testTable() *Table {
	return NewTable([]Command{
		{Name: "auth", Parent: -1, Categories: Fast | Connection, Always: true},
		{Name: "config", Parent: -1, Categories: Slow},
		{Name: "config|get", Parent: 1, Categories: Slow | Admin | Dangerous},
		{Name: "config|set", Parent: 1, Categories: Slow | Admin | Dangerous},
		{Name: "del", Parent: -1, Categories: Keyspace | Write | Slow},
		{Name: "get", Parent: -1, Categories: Read | String | Fast},
		{Name: "mget", Parent: -1, Categories: Read | String | Fast},
		{Name: "publish", Parent: -1, Categories: PubSub | Fast},
		{Name: "rl.gcra", Parent: -1, Categories: Write | Throttle | Fast},
		{Name: "select", Parent: -1, Categories: Fast | Connection},
		{Name: "set", Parent: -1, Categories: Write | String | Slow},
	})
}

func call(t *Table, line string) *Call {
	words := strings.Fields(line)
	name := words[0]
	if words[0] == "config" {
		name += "|" + words[1]
	}
	id, ok := t.lookup(name)
	if !ok {
		panic("no command " + name)
	}
	c := &Call{Command: id}
	for i, w := range words {
		c.Args = append(c.Args, []byte(w))
		switch {
		case i == 0:
		case name == "get" || name == "mget":
			c.Keys = append(c.Keys, Key{Arg: i, Access: ReadKey})
		case i == 1 && (name == "set" || name == "del" || name == "rl.gcra"):
			c.Keys = append(c.Keys, Key{Arg: i, Access: WriteKey})
		case i == 1 && name == "publish":
			c.Channels = append(c.Channels, Channel{Arg: i})
		}
	}
	return c
}

func setUser(t *testing.T, us *Users, name string, rules ...string) *User {
	t.Helper()
	change, err := us.Change(name, rules)
	require.NoError(t, err)
	return change.Apply()
}

func TestJudge(t *testing.T) {
	table := testTable()
	for _, tt := range []struct {
		rules, line string
		want        Denial
		arg         int
	}{
		{rules: "", line: "get a", want: DeniedCommand},
		{rules: "", line: "auth x"},
		{rules: "+get", line: "get a", want: DeniedKey, arg: 1},
		{rules: "+get ~a*", line: "get ab"},
		{rules: "+get ~a*", line: "get b", want: DeniedKey, arg: 1},
		{rules: "+mget ~a*", line: "mget a b", want: DeniedKey, arg: 2},
		{rules: "+@read %W~*", line: "get a", want: DeniedKey, arg: 1},
		{rules: "+@read %W~* %R~a", line: "get a"},
		{rules: "+@write ~*", line: "set a"},
		{rules: "+@throttle ~*", line: "rl.gcra a"},
		{rules: "+@write -@throttle ~*", line: "rl.gcra a", want: DeniedCommand},
		{rules: "+@all -@throttle ~*", line: "set a"},
		{rules: "+config|get", line: "config get x"},
		{rules: "+config|get", line: "config set x", want: DeniedCommand},
		{rules: "+config -config|set", line: "config get x"},
		{rules: "+@slow -@admin", line: "config set x", want: DeniedCommand},
		{rules: "+select|0", line: "select 0"},
		{rules: "+select|0", line: "select 1", want: DeniedCommand},
		{rules: "+select|0 -select", line: "select 0", want: DeniedCommand},
		{rules: "+publish &n*", line: "publish news m"},
		{rules: "+publish &n*", line: "publish other m", want: DeniedChannel, arg: 1},
		{rules: "+get ~a (+set ~b) (+del ~c)", line: "set b"},
		{rules: "+get ~a (+set ~b) (+del ~c)", line: "set a", want: DeniedKey, arg: 1},
		{rules: "(+mget ~a ~b) (+mget ~a)", line: "mget a b c", want: DeniedKey, arg: 3},
	} {
		t.Run(tt.rules+"/"+tt.line, func(t *testing.T) {
			u := setUser(t, NewUsers(table), "u", strings.Fields(tt.rules)...)
			denial, arg := u.Judge(call(table, tt.line))
			require.Equal(t, tt.want, denial)
			require.Equal(t, tt.arg, arg)
		})
	}
}

// TestRulesDescribe: what a user is described by makes the same user, with the fewest categories.
func TestRulesDescribe(t *testing.T) {
	for rules, want := range map[string]string{
		"":                        "-@all",
		"+@all":                   "+@all",
		"+@all -get":              "+@all -get",
		"+@string -set":           "-@all +@read",
		"+@string -mget":          "-@all +@string -mget",
		"+get +mget +set":         "-@all +@string",
		"+@all -@throttle":        "+@all -@throttle",
		"+@all -config|set":       "+@all -config|set",
		"+config -config|set":     "-@all +config -config|set",
		"+select|0 +select|1":     "-@all +select|0 +select|1",
		"+@all -select +select|0": "+@all -select +select|0",
	} {
		t.Run(rules, func(t *testing.T) {
			us := NewUsers(testTable())
			u := setUser(t, us, "u", strings.Fields(rules)...)
			require.Equal(t, want, u.Rights()[0].Commands)
			again := setUser(t, us, "again", strings.Fields(u.Rules())...)
			require.Equal(t, u.selectors[0].commands, again.selectors[0].commands)
			require.Equal(t, u.Rules(), again.Rules())
		})
	}
}

// TestKeyRulesDescribe: rules on keys are written as they are read, and forbidding every command takes back what was allowed.
func TestKeyRulesDescribe(t *testing.T) {
	us := NewUsers(testTable())
	u := setUser(t, us, "u", "+@all", "%R~in:*", "%W~out:*", "~both:*", "-@all")
	require.Contains(t, u.Rules(), "%R~in:* %W~out:* ~both:*")
	require.Equal(t, "-@all", u.Rights()[0].Commands)
	require.Equal(t, "-@all", setUser(t, us, "u", "+@all", "nocommands").Rights()[0].Commands)
}

func TestPasswords(t *testing.T) {
	us := NewUsers(testTable())
	require.NotNil(t, us.Authenticate([]byte("default"), []byte("anything")))
	us.SetDefaultPassword("pw")
	require.Nil(t, us.Authenticate([]byte("default"), []byte("anything")))
	require.Same(t, us.Default(), us.Authenticate([]byte("default"), []byte("pw")))
	require.False(t, us.Default().Open())
	u := setUser(t, us, "u", "on", ">one", ">two")
	require.Same(t, u, us.Authenticate([]byte("u"), []byte("two")))
	require.Nil(t, us.Authenticate([]byte("nobody"), []byte("two")))
	setUser(t, us, "u", "off")
	require.Nil(t, us.Authenticate([]byte("u"), []byte("two")))
	us.SetDefaultPassword("")
	require.True(t, us.Default().Open())
}

// TestAllOrNothing: a list with a wrong rule changes nothing, and a change holds for those who have the user already.
func TestAllOrNothing(t *testing.T) {
	us := NewUsers(testTable())
	u := setUser(t, us, "u", "on", "+get", "~a")
	before := u.Rules()
	_, err := us.Change("u", []string{"off", "+set", "nosuch"})
	require.EqualError(t, err, "Error in ACL SETUSER modifier 'nosuch': Syntax error")
	require.Equal(t, before, u.Rules())
	require.Same(t, u, setUser(t, us, "u", "+set"))
	require.True(t, u.selectors[0].commands.has(10))
}

func TestLimits(t *testing.T) {
	us := NewUsers(testTable())
	for _, tt := range []struct {
		rule  func(i int) string
		limit int
	}{
		{func(i int) string { return ">" + strings.Repeat("x", i) }, MaxPasswords},
		{func(i int) string { return "~" + strings.Repeat("x", i) }, MaxPatterns},
		{func(i int) string { return "&" + strings.Repeat("x", i) }, MaxPatterns},
		{func(i int) string { return "+get|" + strings.Repeat("x", i+1) }, MaxFirstArgs},
		{func(int) string { return "(+get)" }, MaxSelectors},
	} {
		u := newUser("u", us.table, &us.defaults)
		for i := range tt.limit {
			require.NoError(t, u.apply(tt.rule(i)))
		}
		require.ErrorIs(t, u.apply(tt.rule(tt.limit)), ErrTooMany)
	}
	for i := range MaxUsers - 1 {
		setUser(t, us, strings.Repeat("u", i+1))
	}
	_, err := us.Change("one more", nil)
	require.ErrorIs(t, err, ErrUserName)
	_, err = us.Change("more", nil)
	require.ErrorIs(t, err, ErrTooManyUsers)
}

func TestLoad(t *testing.T) {
	us := NewUsers(testTable())
	old := setUser(t, us, "old", "on")
	def := us.Default()
	gone, err := us.Load("f", "user a on >pw (+get ~x) \r\n\n  user default on nopass ~* &* +@all -set\n")
	require.NoError(t, err)
	require.Equal(t, []*User{old}, gone)
	require.Same(t, def, us.Default())
	require.Equal(t, "+@all -set", def.Rights()[0].Commands)
	lines := strings.Join(us.Lines(), "\n")
	gone, err = us.Load("f", lines)
	require.NoError(t, err)
	require.Len(t, gone, 1)
	require.Equal(t, lines, strings.Join(us.Lines(), "\n"))

	_, err = us.Load("f", "usr x\nuser\nuser b\tc on\nuser a on\nuser a off\nuser d nosuch +nosuch\nuser e (+get\n")
	require.EqualError(t, err, "f:1 should start with user keyword followed by the username. f:2 should start with user keyword followed by the username. "+
		"'f:3: username 'b\tc' contains invalid characters. WARNING: Duplicate user 'a' found on line 5. f:6: Syntax error. "+
		"f:6: Error in applying operation '+nosuch': Unknown command or category name in ACL. f:7: Unmatched parenthesis in selector definition."+loadRefused)
	require.Equal(t, lines, strings.Join(us.Lines(), "\n"))

	_, err = us.Load("f", "")
	require.NoError(t, err)
	require.Equal(t, []string{"user default on nopass ~* &* +@all"}, us.Lines())
}

func TestLog(t *testing.T) {
	var l Log
	add := func(object string, at int64) {
		l.Add(LogEntry{Reason: DeniedKey, Object: object, User: "u", AtMs: at}, 3)
	}
	add("a", 0)
	add("b", 1)
	add("a", 2)
	require.Len(t, l.Newest(9), 2)
	require.Equal(t, LogEntry{Count: 2, Reason: DeniedKey, Object: "a", User: "u", AtMs: 2}, l.Newest(1)[0])
	add("a", 2+groupedWithin+1)
	require.Equal(t, int64(1), l.Newest(1)[0].Count, "too long ago to be the same")
	add("c", 0)
	require.Len(t, l.Newest(9), 3)
	add(strings.Repeat("x", maxObject+1), 0)
	require.Len(t, l.Newest(1)[0].Object, maxObject)
	l.Add(LogEntry{}, 0)
	require.Empty(t, l.Newest(9))
}

// FuzzRules: no list of rules makes a panic (CVE-2024-31227), and what a user is described by makes the same user.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"on >pw ~* &* +@all", "%R~a %W~b %RW~c %~d %", "(+get ~a) (", "+config|get -config|set +select|0 +select|", "(%~a) () ( )",
		"reset -@all +@read -@string clearselectors", "#00 !00 <x \x00 +\x00 +@ -@ + - ~ & %r~ ( ) (( ))", "(+get '~a b' \"~c\")",
		"+@throttle +rl.gcra -@throttle", "skip-sanitize-payload nopass resetpass", "user a on\nuser default off\n",
	} {
		f.Add(seed)
	}
	table := testTable()
	f.Fuzz(func(t *testing.T, text string) {
		us := NewUsers(table)
		if _, err := us.Load("f", text); err == nil {
			lines := us.Lines()
			_, err = us.Load("f", strings.Join(lines, "\n"))
			require.NoError(t, err)
			require.Equal(t, lines, us.Lines())
		}
		change, err := us.Change("u", strings.Split(text, " "))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		u := change.Apply()
		for _, line := range []string{"get a", "set a", "config get x", "select 0", "publish n m", "mget a b"} {
			u.Judge(call(table, line))
		}
		again := setUser(t, us, "again", strings.Split(u.Rules(), " ")...)
		require.Equal(t, u.Rules(), again.Rules())
		for i, s := range u.selectors {
			require.Equal(t, s.commands, again.selectors[i].commands)
			require.Equal(t, s.allCommands && len(s.firstArgs) == 0, again.selectors[i].allCommands && len(s.firstArgs) == 0)
		}
	})
}
