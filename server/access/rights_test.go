package access_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"headgate/server"
	"headgate/server/acl"
	"headgate/server/command"
	"headgate/server/limits"
	"headgate/server/servertest"
	"headgate/store"

	"github.com/stretchr/testify/require"
)

var (
	rightsLines = flag.Int("rights.n", 10_000, "random command lines of TestNoCommandTouchesAKeyThatWasNotJudged")
	rightsSeed  = flag.Uint64("rights.seed", 0, "its seed; 0 draws one")
)

// TestSortStoresAtNoKeyWithoutTheRight: the last STORE counts, also behind a key that is called like an option.
func TestSortStoresAtNoKeyWithoutTheRight(t *testing.T) {
	for _, word := range []string{"BY", "GET", "LIMIT", "STORE"} {
		t.Run(word, func(t *testing.T) {
			admin, user := servertest.NewUserClients(t, "+@all", "~ok", "~"+word)
			admin.Ask("RPUSH", "ok", "1")
			require.Equal(t, "-"+command.ErrDeniedKey+"\r\n", user.Ask("SORT", "ok", "STORE", word, "STORE", "secret"))
			require.Equal(t, ":0\r\n", admin.Ask("EXISTS", "secret"))
			require.Equal(t, ":1\r\n", user.Ask("SORT", "ok", "STORE", "secret", "STORE", word))
			require.Equal(t, "*2\r\n$2\r\nok\r\n$6\r\nsecret\r\n", admin.Ask("COMMAND", "GETKEYS", "SORT", "ok", "STORE", word, "STORE", "secret"))
		})
	}
}

// TestXReadGroupReadsNoKeyWithoutTheRight: the keys stand behind the STREAMS that is an option, not behind a consumer of that name.
func TestXReadGroupReadsNoKeyWithoutTheRight(t *testing.T) {
	for _, line := range [][]string{
		{"XREADGROUP", "NOACK", "GROUP", "g", "STREAMS", "STREAMS", "secret", ">"},
		{"XREADGROUP", "NOACK", "GROUP", "STREAMS", "STREAMS", "STREAMS", "secret", ">"},
		{"XREADGROUP", "COUNT", "1", "GROUP", "g", "streams", "STREAMS", "secret", ">"},
	} {
		t.Run(strings.Join(line, " "), func(t *testing.T) {
			admin, user := servertest.NewUserClients(t, "+@all", "~STREAMS", "~streams")
			admin.Ask("XADD", "secret", "1-1", "f", "v")
			admin.Ask("XGROUP", "CREATE", "secret", "g", "0")
			admin.Ask("XGROUP", "CREATE", "secret", "STREAMS", "0")
			require.Equal(t, "-"+command.ErrDeniedKey+"\r\n", user.Ask(line...))
			require.Equal(t, "*1\r\n$6\r\nsecret\r\n", admin.Ask(append([]string{"COMMAND", "GETKEYS"}, line...)...))
		})
	}
}

// TestACLCheckOfALineWithoutItsChannel: what a script asks about is judged before anything has looked at the number of arguments.
func TestACLCheckOfALineWithoutItsChannel(t *testing.T) {
	_, user := servertest.NewUserClients(t, "+@all", "~*", "resetchannels", "&ch")
	for _, name := range []string{"PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"} {
		require.Equal(t, ":1\r\n", user.Ask("EVAL", "return redis.acl_check_cmd(ARGV[1])", "0", name), name)
		require.Equal(t, "$-1\r\n", user.Ask("EVAL", "return redis.acl_check_cmd(ARGV[1], 'other')", "0", name), name)
	}
}

// mineTime is long past: a key that had to be gone by then is removed by whoever looks for it, so that each look at it shows.
const mineTime = 1

// lineMaker draws command lines from the table, with the commands' own words as keys and values. Each word is a key: one that a line's
// judgement has seen holds data, the others are mines.
type lineMaker struct {
	*rand.Rand
	t           *testing.T
	srv         *server.Server
	admin, user *servertest.WorkerClient
	commands    []*command.Command
	words       []string // all that may be keys
	own         []string // those of the command that is drawn
}

func newLineMaker(t *testing.T, seed uint64, wanted func(cmd *command.Command) bool) *lineMaker {
	admin, user := servertest.NewUserClients(t, "+@all")
	m := &lineMaker{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, srv: admin.Srv, admin: admin, user: user}
	words := map[string]bool{"a": true, "b": true, "-1": true, "0": true, "1": true, "2": true, "3": true, "0-1": true, ">": true, "$": true}
	for _, cmd := range m.srv.Commands.All {
		if cmd.Handler == nil || !wanted(cmd) {
			continue
		}
		m.commands = append(m.commands, cmd)
		for _, token := range tokensOf(nil, cmd.Args) {
			words[token] = true
		}
	}
	m.words = slices.Sorted(maps.Keys(words))
	for _, name := range []string{"a", "b", "COST", "PEEK"} {
		require.Equal(t, "+OK\r\n", admin.Ask("RL.POLICY", "SET", name, "GCRA", "3", "3", "1s"))
	}
	for _, word := range m.words {
		m.lay(word)
	}
	return m
}

// tokensOf appends the fixed words of arguments that could be keys, too.
func tokensOf(list []string, args []command.Arg) []string {
	for _, a := range args {
		if a.Token != "" && !strings.ContainsAny(a.Token, " \"*?[]\\") {
			list = append(list, a.Token)
		}
		list = tokensOf(list, a.Args)
	}
	return list
}

// lay makes a word a mine.
func (m *lineMaker) lay(word string) {
	m.srv.Keys.DB(0).SetString(m.srv.Keys.Key([]byte(word)), []byte(word), mineTime)
}

// explodes reports whether a mine is not any more as it was laid.
func (m *lineMaker) explodes(word string) bool {
	e, found := m.srv.Keys.DB(0).Peek(m.srv.Keys.Key([]byte(word)))
	return !found || e.ExpireAt() != mineTime || e.Kind() != store.KindString || string(e.Bytes(nil)) != word
}

func (m *lineMaker) pick(from ...string) string { return from[m.IntN(len(from))] }

// word draws a key or a value: half of the time a word of the command itself.
func (m *lineMaker) word() string {
	if len(m.own) > 0 && m.IntN(2) == 0 {
		return m.pick(m.own...)
	}
	return m.pick(m.words...)
}

// segments draws what stands for each of the arguments.
func (m *lineMaker) segments(args []command.Arg) (all [][]string) {
	for _, a := range args {
		if a.Optional && m.IntN(2) == 0 {
			continue
		}
		times := 1
		if a.Multiple {
			times += m.IntN(3)
		}
		var one []string
		for i := range times {
			if a.Token != "" && a.Type != "pure-token" && (i == 0 || a.EachTok) {
				one = append(one, a.Token)
			}
			one = append(one, m.value(a)...)
		}
		all = append(all, one)
	}
	return all
}

func (m *lineMaker) value(a command.Arg) []string {
	switch {
	case a.Type == "block":
		return slices.Concat(m.segments(a.Args)...)
	case a.Type == "oneof":
		choice := a.Args[m.IntN(len(a.Args))]
		choice.Optional = false
		return slices.Concat(m.segments([]command.Arg{choice})...)
	case a.Type == "pure-token":
		return []string{a.Token}
	case a.Name == "id":
		return []string{m.pick(">", "0", "$", "0-1")}
	case strings.Contains(a.Error, "duration") && m.IntN(8) > 0:
		return []string{m.pick("1s", "10s")}
	case a.Error == limits.ErrNoPolicy && m.IntN(8) > 0:
		return []string{m.pick("b", "COST")}
	case (a.Type == "integer" || a.Error == command.ErrNotInteger) && m.IntN(8) > 0:
		return []string{m.pick("1", "2", "3", "1", "0", "-1")}
	case (a.Type == "double" || a.Type == "unix-time") && m.IntN(8) > 0:
		return []string{m.pick("1", "2")}
	}
	return []string{m.word()}
}

// line draws a command line: sometimes with its arguments in another order, some of them twice, or with words anywhere.
func (m *lineMaker) line(cmd *command.Command) []string {
	m.own = tokensOf([]string{"a"}, cmd.Args)
	all := m.segments(cmd.Args)
	options := slices.DeleteFunc(slices.Clone(cmd.Args), func(a command.Arg) bool { return !a.Optional })
	plain := m.IntN(3) == 0
	for !plain && len(options) > 0 && m.IntN(2) == 0 {
		again := options[m.IntN(len(options))]
		again.Optional = false
		all = slices.Insert(all, m.IntN(len(all)+1), m.segments([]command.Arg{again})...)
	}
	if !plain && len(all) > 2 && m.IntN(2) == 0 {
		some := all[m.IntN(2) : len(all)-m.IntN(2)]
		m.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	}
	words := slices.Concat(all...)
	for !plain && len(words) > 0 && m.IntN(4) == 0 {
		words[m.IntN(len(words))] = m.word()
	}
	words = append(strings.Split(cmd.FullName, "|"), words...)
	switch cmd.Name {
	case "eval", "eval_ro":
		words[1] = calling
	case "fcall", "fcall_ro":
		words[1] = "call"
	}
	return words
}

// calling is a script that calls what it is given.
const calling = "return redis.call(unpack(ARGV))"

// judged returns the keys of a line as the judgement sees them.
func (m *lineMaker) judged(cmd *command.Command, line []string) map[string]acl.Access {
	if !cmd.ArityOK(len(line)) {
		return nil
	}
	args := make([][]byte, len(line))
	for i, word := range line {
		args[i] = []byte(word)
	}
	found := map[string]acl.Access{}
	for _, k := range (&command.Ctx{Core: m.srv.Core}).ACLCall(cmd, args).Keys {
		found[line[k.Arg]] |= k.Access
	}
	return found
}

// secret is the element of a key's value that nobody learns without the right to read it.
func secret(word string) string { return "<the secret of " + word + ">" }

// fill has a key hold data of some type.
func (m *lineMaker) fill(word string, line []string) {
	m.admin.Ask("DEL", word)
	switch m.IntN(8) {
	case 0:
		m.admin.Ask("SET", word, secret(word))
	case 1:
		m.admin.Ask("SET", word, "1")
	case 2:
		m.admin.Ask("RPUSH", word, "1", secret(word))
	case 3:
		m.admin.Ask("SADD", word, "1", secret(word))
	case 4:
		m.admin.Ask("ZADD", word, "1", "1", "2", secret(word))
	case 5:
		m.admin.Ask("HSET", word, "1", "1", "a", secret(word))
	default:
		m.admin.Ask("XADD", word, "1-1", "a", secret(word))
		for _, group := range line {
			m.admin.Ask("XGROUP", "CREATE", word, group, "0")
		}
	}
}

// rules are the rights to just these keys.
func rules(keys map[string]acl.Access) (list []string) {
	for _, word := range slices.Sorted(maps.Keys(keys)) {
		switch keys[word] {
		case acl.ReadKey:
			list = append(list, "%R~"+word)
		case acl.WriteKey:
			list = append(list, "%W~"+word)
		default:
			list = append(list, "~"+word)
		}
	}
	return list
}

// run runs a line as the user, now and then in a transaction, and returns all that was answered.
func (m *lineMaker) run(line []string) string {
	if m.IntN(4) == 0 {
		defer m.user.Ask("DISCARD") // where EXEC itself was refused
		return m.user.Ask("MULTI") + m.user.Ask(line...) + m.user.Ask("EXEC")
	}
	reply := m.user.Ask(line...)
	m.srv.EndWait(m.user.Conn.Client.(*command.Client))
	m.user.Ask("UNWATCH")
	return reply
}

// writesState are commands whose keys are declared as read, as redis-server does, though they change what is kept beside the value.
var writesState = []string{"xreadgroup", "pfcount"}

// TestNoCommandTouchesAKeyThatWasNotJudged sends lines made of the commands' own words as a user who has rights to the keys that the
// judgement sees in them, and to no others. No other key may be as much as looked for; a key with the right to write is not read from,
// and one with the right to read not changed.
func TestNoCommandTouchesAKeyThatWasNotJudged(t *testing.T) {
	seed := *rightsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	m := newLineMaker(t, seed, func(cmd *command.Command) bool {
		return len(cmd.Keys) > 0 && cmd.Keys[0].Access != command.NotKey
	})
	require.Equal(t, "$1\r\nl\r\n", m.admin.Ask("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('call', function(KEYS, ARGV) "+calling+" end)"))
	var counted, searched []*command.Command
	for _, cmd := range m.commands {
		switch {
		case slices.ContainsFunc(cmd.Keys, func(k command.KeySpec) bool { return k.Keyword != "" || k.Other != nil }):
			searched = append(searched, cmd)
		case cmd.Flags&command.MovableKeys != 0:
			counted = append(counted, cmd)
		}
	}
	require.NotEmpty(t, counted)
	require.NotEmpty(t, searched)
	ran, done := map[string]int{}, 0
	for range *rightsLines {
		from := [][]*command.Command{m.commands, counted, searched}[m.IntN(3)]
		cmd := from[m.IntN(len(from))]
		line := m.line(cmd)
		keys := m.judged(cmd, line)
		before := map[string]string{}
		for _, word := range slices.Sorted(maps.Keys(keys)) {
			m.fill(word, line)
			before[word] = m.admin.Ask("DUMP", word)
		}
		require.Equal(t, "+OK\r\n", m.admin.Ask(append([]string{"ACL", "SETUSER", "u", "resetkeys"}, rules(keys)...)...), "%q", line)
		reply := m.run(line)
		require.NotContains(t, reply, command.ErrDeniedKey, "%q", line)
		if !strings.HasPrefix(reply, "-") {
			ran[cmd.FullName]++
			done++
		}
		for _, word := range m.words {
			if _, known := keys[word]; !known && m.explodes(word) {
				t.Fatalf("%q touches %q, and the judgement has seen only %v\nanswer: %q", line, word, keys, reply)
			}
		}
		for _, word := range slices.Sorted(maps.Keys(keys)) {
			if keys[word]&acl.ReadKey == 0 {
				require.NotContains(t, strings.Join(line, " ")+reply, secret(word), "%q reads %q without the right to", line, word)
			}
			if keys[word]&acl.WriteKey == 0 && !slices.Contains(writesState, cmd.Name) {
				require.Equal(t, before[word], m.admin.Ask("DUMP", word), "%q changes %q without the right to", line, word)
			}
			m.admin.Ask("DEL", word)
			if slices.Contains(m.words, word) {
				m.lay(word)
			}
		}
	}
	t.Logf("%d of %d lines were carried out, of %d of %d commands", done, *rightsLines, len(ran), len(m.commands))
	require.Greater(t, done, *rightsLines/10, "most lines make no sense, so that little was looked at")
	for _, cmd := range slices.Concat(counted, searched) {
		require.NotZero(t, ran[cmd.FullName], "no line of %s was carried out", cmd.FullName)
	}
}

// TestThrottleReachesOwnKeysOnly: who has @throttle on some keys, and no other right, neither learns the name nor touches the state of any
// other key, and changes no policy, with whatever arguments.
func TestThrottleReachesOwnKeysOnly(t *testing.T) {
	seed := *rightsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	m := newLineMaker(t, seed, func(cmd *command.Command) bool { return cmd.AllCategories()&acl.Throttle != 0 })
	for i := range limits.TopShown {
		m.admin.Ask("CL.THROTTLE", "other:"+strconv.Itoa(i), "0", "1", "3600")
		m.admin.Ask("CL.THROTTLE", "other:"+strconv.Itoa(i), "0", "1", "3600")
	}
	require.Contains(t, m.admin.Ask("RL.TOP"), "other:")
	require.Equal(t, "+OK\r\n", m.admin.Ask("ACL", "SETUSER", "u", "-@all", "resetkeys", "+@throttle", "~own:*", "+@transaction"))
	policies := m.admin.Ask("HGETALL", limits.PoliciesKey)
	m.words = append(m.words, "1s", "10")
	for _, word := range m.words {
		m.lay(word)
	}
	ran := map[string]bool{}
	for i := range *rightsLines / 3 {
		line := m.line(m.commands[m.IntN(len(m.commands))])
		switch i { // those that are seldom drawn so that they make sense
		case 0:
			line = []string{"rl.take", "2", "b", "own:one", "COST", "own:two", "COST", "1"}
		case 1:
			line = []string{"increx", "own:number", "BYINT", "1", "LBOUND", "0"}
		case 2:
			line = []string{"rl.fixed", "own:window", "5", "1s"}
		case 3:
			line = []string{"rl.reserve", "1", "b", "own:reserved", "TTL", "1s"}
		case 4:
			line = []string{"rl.gcra", "own:rate", "5", "1", "1s"}
		case 5:
			line = []string{"rl.bucket", "own:rate", "5", "1", "1s"}
		case 6:
			line = []string{"rl.queue", "own:rate", "5", "1", "1s"}
		case 7:
			line = []string{"rl.sliding", "own:slices", "5", "1s"}
		}
		for i, word := range line[1:] {
			if word == "a" && m.IntN(8) > 0 {
				line[1+i] = "own:" + line[0] + m.pick("1", "2") // each its own, since their types differ
			}
		}
		reply := m.run(line)
		if !strings.Contains(reply, "-ERR") && !strings.Contains(reply, "-WRONGTYPE") && !strings.Contains(reply, "-NOPERM") {
			ran[line[0]] = true
		}
		require.NotContains(t, reply, "other:", "%q", line)
		for _, word := range m.words {
			require.False(t, m.explodes(word), "%q touches %q and answers %q", line, word, reply)
		}
		require.Equal(t, policies, m.admin.Ask("HGETALL", limits.PoliciesKey), "%q", line)
	}
	for _, cmd := range m.commands {
		require.True(t, ran[strings.Split(cmd.FullName, "|")[0]], "no line of %s was carried out", cmd.FullName)
	}
}

// TestNamesOfKeysAreToldWithTheRightOnly: INFO and RL.TOP name the busiest of the keys that the user may read.
func TestNamesOfKeysAreToldWithTheRightOnly(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "+@all", "~mine:*", "%W~written", "(+info ~second:*)")
	long := "mine:" + strings.Repeat("x", 200) // of which only a part is kept
	for _, key := range []string{"theirs", "mine:1", "written", "second:1", long} {
		admin.Ask("CL.THROTTLE", key, "0", "1", "3600")
		admin.Ask("CL.THROTTLE", key, "0", "1", "3600")
	}
	for _, section := range []string{"everything", "all", "limiters"} {
		text := user.Ask("INFO", section)
		require.NotContains(t, text, "theirs")
		require.NotContains(t, text, "written")
		require.NotContains(t, text, "xxx")
		require.Contains(t, text, "key=\"mine:1\"")
		require.Contains(t, text, "key=\"second:1\"", "a selector gives the right, too")
		require.Contains(t, admin.Ask("INFO", section), "key=\"theirs\"")
	}
	require.NotContains(t, user.Ask("INFO"), "mine:1", "it is asked for")
	for _, list := range []string{"LIMITED", "HOT"} {
		reply := user.Ask("RL.TOP", "10", list)
		require.Contains(t, reply, "$6\r\nmine:1\r\n")
		for _, name := range []string{"theirs", "written", "second:1"} {
			require.NotContains(t, reply, name)
			require.Contains(t, admin.Ask("RL.TOP", "10", list), name)
		}
	}
}

// TestReservationsAreShownWithTheRightOnly: RL.RESERVATIONS names the keys of those whose keys the user may read, all of them.
func TestReservationsAreShownWithTheRightOnly(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "+@all", "~mine:*", "%W~written", "(+rl.reservations ~second:*)")
	for i, keys := range [][]string{{"theirs"}, {"mine:1", "theirs"}, {"written"}, {"second:1"}, {"mine:1"}, {"mine:1", "mine:2"}} {
		line := []string{"RL.RESERVE", strconv.Itoa(len(keys))}
		for _, key := range keys {
			line = append(line, "FIXED 100 1h", key)
		}
		require.NotContains(t, admin.Ask(append(line, "TTL", strconv.Itoa(i+1)+"m", "ID", "id"+strconv.Itoa(i+1))...), "-ERR")
	}
	ids := regexp.MustCompile(`id\d`)
	for _, tc := range []struct {
		options []string
		want    []string
	}{
		{nil, []string{"id4", "id5", "id6"}},
		{[]string{"COUNT", "2"}, []string{"id4", "id5"}},
		{[]string{"MATCH", "theirs"}, nil},
		{[]string{"MATCH", "written"}, nil},
		{[]string{"MATCH", "id1"}, nil},
		{[]string{"MATCH", "mine:*", "COUNT", "1"}, []string{"id5"}},
	} {
		reply := user.Ask(append([]string{"RL.RESERVATIONS"}, tc.options...)...)
		require.Equal(t, tc.want, ids.FindAllString(reply, -1), "%q", tc.options)
		require.NotContains(t, reply, "theirs")
		require.NotContains(t, reply, "written")
	}
	require.Len(t, ids.FindAllString(admin.Ask("RL.RESERVATIONS"), -1), 6)
}

// TestNobodyGoesOnAsAnotherUser: whose user is deleted within its transaction has no rights left, also not the default user's.
func TestNobodyGoesOnAsAnotherUser(t *testing.T) {
	for _, off := range []bool{false, true} {
		admin, user := servertest.NewUserClients(t, "~u:*", "-@all", "+multi", "+exec", "+acl|deluser", "+eval", "+get")
		admin.Ask("SET", "secret", "s3")
		if off {
			require.Equal(t, "+OK\r\n", admin.Ask("ACL", "SETUSER", "default", "off"))
		}
		user.Ask("MULTI")
		for _, line := range [][]string{
			{"ACL", "DELUSER", "u"}, {"EVAL", "return redis.call('GET', 'secret')", "0"}, {"GET", "u:1"},
		} {
			require.Equal(t, "+QUEUED\r\n", user.Ask(line...))
		}
		reply := user.Ask("EXEC")
		require.True(t, strings.HasPrefix(reply, "*3\r\n:1\r\n-NOPERM "), "%q", reply)
		require.Equal(t, 2, strings.Count(reply, "-NOPERM "), "%q", reply)
		require.NotContains(t, reply, "s3")
		cl := user.Conn.Client.(*command.Client)
		require.True(t, cl.Guarded)
		require.False(t, cl.Authenticated)
	}
}

// TestBroadcastsNameKeysWithTheRightOnly: CLIENT TRACKING with BCAST tells of the changed keys that the user may read.
func TestBroadcastsNameKeysWithTheRightOnly(t *testing.T) {
	admin, user := servertest.NewUserClients(t, "+@all", "~mine:*", "%W~written")
	user.Ask("HELLO", "3")
	require.Equal(t, "+OK\r\n", user.Ask("CLIENT", "TRACKING", "ON", "BCAST"))
	script := "for _, k in ipairs({'theirs', 'mine:1', 'written'}) do redis.call('SET', k, 1) end"
	user.Conn.Out.Reset()
	require.Equal(t, "$-1\r\n", admin.Ask("EVAL", script, "0"))
	require.Equal(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nmine:1\r\n", string(user.Conn.Out.Bytes()))
	user.Conn.Out.Reset()
	require.Equal(t, "+OK\r\n", admin.Ask("SET", "theirs", "2"))
	require.Empty(t, string(user.Conn.Out.Bytes()))
}

// TestOnlyKnownCommandsNameKeys: of the commands that name no keys themselves, and are not for operators, only those that docs/access.md lists
// tell the name of a key to who has no right to it.
func TestOnlyKnownCommandsNameKeys(t *testing.T) {
	known := []string{"scan", "randomkey"}
	notAlone := []string{"quit", "reset", "multi", "wait", "select", "client|reply"} // these change what is answered after them
	admin, user := servertest.NewUserClients(t, "+@all", "&*")
	for range 2 {
		admin.Ask("CL.THROTTLE", "theirs", "0", "1", "3600")
	}
	asked := 0
	for _, cmd := range user.Srv.Commands.All {
		if cmd.Handler == nil || len(cmd.Keys) > 0 || cmd.AllCategories()&(acl.Admin|acl.Dangerous) != 0 || slices.Contains(notAlone, cmd.FullName) {
			continue
		}
		asked++
		line := servertest.AnyCall(cmd)
		if cmd.Name == "scan" {
			line[1] = "0"
		}
		reply := user.Ask(line...)
		require.Equal(t, slices.Contains(known, cmd.FullName), strings.Contains(reply, "theirs"), "%q answers %q", line, reply)
	}
	require.Greater(t, asked, 50)
}
