package upstream

import (
	"crypto/sha1" //nolint:gosec // it is what EVALSHA names scripts by
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	addOne  = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
	addMany = `local replies = {redis.call('TIME')}
for i = 1, #ARGV, 2 do
	local runs, reply = pcall(function() return redis.call('INCRBY', ARGV[i], ARGV[i + 1]) end)
	replies[#replies + 1] = runs and reply or {err = reply}
end
return replies`
)

// adding is a script that adds to a number, with a joint one.
func adding() *Script {
	own := func(text string) *Script {
		sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
		return &Script{Own: true, Text: text, SHA: hex.EncodeToString(sum[:])}
	}
	s := own(addOne)
	head := strings.TrimSuffix(string(command("EVALSHA", s.SHA, "1", "k", "1")), bulk("k")+bulk("1"))
	s.Joint = &Joint{Script: own(addMany), Head: []byte(head), Words: 2, Looks: []byte(bulk("0"))}
	return s
}

// add is a call of it.
func add(s *Script, key string, by int) *pending {
	c := newCall("EVALSHA", s.SHA, "1", key, strconv.Itoa(by))
	c.Slot, c.Script = int(Slot([]byte(key))), s
	return c
}

// sendTogether sends calls by one Flush.
func sendTogether(u *Upstream, calls ...*pending) {
	for _, c := range calls {
		u.Send(&c.Call)
	}
	u.Flush()
}

// together is sendTogether, and waits for the answers.
func together(t *testing.T, u *Upstream, calls ...*pending) (replies []string) {
	t.Helper()
	sendTogether(u, calls...)
	for _, c := range calls {
		r := c.wait(t)
		require.Nil(t, r.failure)
		replies = append(replies, r.reply)
	}
	return replies
}

// count has every key of a test be added to, and expects the replies to be the sums.
func count(t *testing.T, u *Upstream, s *Script, keys []string, sum int) {
	t.Helper()
	var calls []*pending
	for _, key := range keys {
		calls = append(calls, add(s, key, 1))
	}
	for i, reply := range together(t, u, calls...) {
		require.Equal(t, integer(sum), reply, keys[i])
	}
}

// jointKeys are keys of all nodes.
func jointKeys(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("key:%d", i))
	}
	return keys
}

// TestJointCalls: many calls are few commands, each runs once, and an error is its own call's alone.
func TestJointCalls(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t, 3, false)
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	s, keys := adding(), jointKeys(200)
	commands := func() (n int) {
		for _, node := range nodes {
			n += commandCalls(t, node, "evalsha")
		}
		return n
	}
	few := len(keys)/jointMax + len(nodes)
	count(t, u, s, keys, 1) // one by one, but for those that come after the first replies
	first := commands()
	count(t, u, s, keys, 2)
	count(t, u, s, keys, 3)
	require.LessOrEqual(t, commands()-first, 2*few)

	t.Run("keys with hash tags", func(t *testing.T) {
		u := started(t, Config{Addrs: []string{nodes[0].addr}}) // with connections of its own, which are probed
		var tagged []string
		for _, key := range keys {
			tagged = append(tagged, "tag:{"+key+"}")
		}
		count(t, u, s, tagged, 1)
		first := commands()
		count(t, u, s, tagged, 2)
		require.LessOrEqual(t, commands()-first, 2*few, "a look at the topology may flush what is queued so far")
	})
	t.Run("an error of one", func(t *testing.T) {
		do(t, u, "RPUSH", "wrong", "x")
		replies := together(t, u, add(s, keys[0], 1), add(s, "wrong", 1), add(s, keys[1], 1), add(s, keys[0], 1))
		require.Equal(t, integer(4), replies[0])
		require.Regexp(t, "^-WRONGTYPE ", replies[1])
		require.Equal(t, []string{integer(4), integer(5)}, replies[2:])
		do(t, u, "SET", keys[0], "3")
		do(t, u, "SET", keys[1], "3")
	})
	t.Run("scripts are forgotten", func(t *testing.T) {
		for _, node := range nodes {
			node.must(t, "SCRIPT", "FLUSH")
		}
		count(t, u, s, keys, 4) // of which those of the first command are sent again one by one
		eventually(t, "calls are joined again", func() bool {
			before := commands()
			together(t, u, add(s, keys[0], 0), add(s, keys[0], 0), add(s, keys[0], 0))
			return commands()-before < 3
		})
	})
	t.Run("no memory", func(t *testing.T) {
		for _, node := range nodes {
			node.must(t, "CONFIG", "SET", "maxmemory", "1")
		}
		replies := together(t, u, add(s, keys[0], 1), add(s, keys[0], 1), newCall("DEL", keys[0]), newCall("EXISTS", keys[0]))
		require.Regexp(t, "^-OOM command not allowed", replies[0])
		require.Regexp(t, "^-OOM command not allowed", replies[1])
		require.Equal(t, []string{integer(1), integer(0)}, replies[2:])
		for _, node := range nodes {
			node.must(t, "CONFIG", "SET", "maxmemory", "0")
		}
		do(t, u, "SET", keys[0], "4")
		count(t, u, s, keys, 5)
	})
	t.Run("a slot has moved", func(t *testing.T) {
		slot, ids := int(Slot([]byte(keys[0]))), make([]string, len(nodes))
		from := -1
		for i, node := range nodes {
			ids[i] = node.must(t, "CLUSTER", "MYID").text
			if !node.ask("GET", keys[0]).isError() {
				from = i
			}
		}
		to := (from + 1) % len(nodes)
		others := func() (calls []*pending) { // what follows for the key comes behind
			return []*pending{newCall("EXISTS", keys[0]), newCall("DEL", keys[0]), newCall("GET", keys[0]), add(s, keys[0], 5)}
		}
		pipeline := func() []*pending {
			return append([]*pending{add(s, keys[0], 1), add(s, keys[1], 0), add(s, keys[0], 1)}, others()...)
		}
		do(t, u, "DEL", keys[0])
		nodes[to].must(t, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", ids[from])
		nodes[from].must(t, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", ids[to])
		for range 20 {
			replies := together(t, u, pipeline()...)
			require.Equal(t, []string{integer(1), integer(5), integer(2), integer(1), integer(1), "$-1\r\n", integer(5)}, replies, "while it is on its way")
			do(t, u, "DEL", keys[0])
		}
		moveSlot(t, nodes[from], nodes[to], ids[from], ids[to], slot, nodes)
		replies := together(t, u, pipeline()...)
		require.Equal(t, []string{integer(1), integer(5), integer(2), integer(1), integer(1), "$-1\r\n", integer(5)}, replies, "where it has gone")
		count(t, u, s, keys, 6)
		count(t, u, s, keys, 7)
	})
}

// TestJointCallsAreNotForAll: calls are not joined where it is not known that a node refuses a key that it does not have.
func TestJointCallsAreNotForAll(t *testing.T) {
	one := func(args []string) string {
		n, _ := strconv.Atoi(args[2])
		if n == 0 { // a proxy runs it anywhere
			return array(integer(0), integer(1))
		}
		return integer(1)
	}
	s := adding()
	for name, prepare := range map[string]func(node *fakeNode){
		"a proxy that seems to be a node": func(*fakeNode) {},
		"an old version": func(node *fakeNode) {
			node.answer(clustered(slotsOf(node), func(args []string) string {
				switch args[0] {
				case "HELLO":
					return array(bulk("server"), bulk("redis"), bulk("version"), bulk("6.2.14"), bulk("mode"), bulk("cluster"), bulk("role"), bulk("master"))
				case "EVALSHA":
					return one(args)
				}
				return ""
			}))
		},
		"no cluster": func(node *fakeNode) {
			node.mode = "standalone"
			node.answer(on("EVALSHA", one))
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := fakeCluster(t, 2)
			for _, node := range nodes {
				node.answer(clustered(slotsOf(nodes...), on("EVALSHA", one)))
			}
			prepare(nodes[0])
			u := started(t, Config{Addrs: []string{nodes[0].addr}})
			for range 3 {
				count(t, u, s, jointKeys(20), 1)
			}
			for _, node := range nodes {
				require.LessOrEqual(t, node.count("EVALSHA "+s.Joint.Script.SHA), 1, "a node is probed once")
			}
		})
	}
}

// TestJointReplies: each call is given the reply in its place, in however many pieces these come, and also if nobody waits any more for others'. What
// is no reply to so many calls ends the connection.
func TestJointReplies(t *testing.T) {
	s := adding()
	const common = "+all\r\n"
	echo := func(args []string) string { // of the keys
		keys := []string{common}
		for i := 3; i < len(args); i += s.Joint.Words {
			keys = append(keys, bulk(args[i]))
		}
		return array(keys...)
	}
	late := func(args []string) string {
		time.Sleep(50 * time.Millisecond)
		return echo(args)
	}
	short := func([]string) string { return array(common, integer(1)) }
	text := func([]string) string { return "+OK\r\n" }
	for _, c := range []struct {
		name    string
		joint   func(args []string) string
		hasty   bool // the first call's time is over before the reply
		breaks  bool
		padding int // bytes of a key
	}{
		{name: "at once", joint: echo},
		{name: "in pieces", joint: echo, padding: 2000},
		{name: "late for one", joint: late, hasty: true},
		{name: "of fewer calls", joint: short, breaks: true},
		{name: "no array", joint: text, breaks: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := fakeCluster(t, 2)
			for _, node := range nodes {
				node.answer(clustered(slotsOf(nodes...), on("EVALSHA", func(args []string) string {
					switch len(args) - 3 {
					case s.Joint.Words:
						if args[2] == "0" {
							return array(common, foreignRefused+" in a cluster node\r\n")
						}
						fallthrough
					case s.Joint.Words - 1:
						return integer(1)
					}
					return c.joint(args)
				})))
			}
			u := started(t, Config{Addrs: []string{nodes[0].addr}})
			count(t, u, s, jointKeys(20), 1) // after this, all nodes have been probed
			var calls []*pending
			for i := range jointMax {
				calls = append(calls, add(s, fmt.Sprintf("{key}:%d%s", i, strings.Repeat("x", c.padding)), 1))
			}
			if c.hasty {
				calls[0].Deadline = Now() + int64(10*time.Millisecond)
			}
			sendTogether(u, calls...)
			for i, call := range calls {
				r := call.wait(t)
				switch {
				case c.breaks:
					require.NotNil(t, r.failure)
					require.Equal(t, Lost, r.failure.Kind)
				case c.hasty && i == 0:
					require.NotNil(t, r.failure)
					require.Equal(t, Timeout, r.failure.Kind)
				default:
					require.Nil(t, r.failure)
					require.Equal(t, bulk(fmt.Sprintf("{key}:%d%s", i, strings.Repeat("x", c.padding))), r.reply)
				}
			}
		})
	}
}

// commandCalls is how often a server has been sent a command.
func commandCalls(t *testing.T, node *redisServer, name string) int {
	t.Helper()
	_, rest, found := strings.Cut(node.must(t, "INFO", "commandstats").text, "cmdstat_"+name+":calls=")
	if !found {
		return 0
	}
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return n
}

// TestJointReplyBehindALongOne: what the calls of a joint command have in common is kept though nobody waits for the first of them any more, while memory
// that a long reply has taken is let go of.
func TestJointReplyBehindALongOne(t *testing.T) {
	s := adding()
	const common, long, late = "$3\r\nall\r\n", 2 * bufferKept, 50 * time.Millisecond
	begun, rest := "*3\r\n"+common[:5], common[5:]+integer(1)+integer(2)
	nodes := fakeCluster(t, 2)
	for _, node := range nodes {
		node.answer(clustered(slotsOf(nodes...), func(args []string) string {
			switch {
			case args[0] == "GET":
				time.Sleep(late)
				return now + bulk(strings.Repeat("x", long)) + begun
			case args[0] != "EVALSHA":
				return ""
			case args[2] != "0":
				return integer(1)
			case len(args)-3 == s.Joint.Words:
				return array(common, foreignRefused+" in a cluster node\r\n")
			}
			time.Sleep(late)
			return rest
		}))
	}
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	count(t, u, s, jointKeys(20), 1) // after this, all nodes have been probed
	get, first, second := newCall("GET", "{key}"), add(s, "{key}:1", 1), add(s, "{key}:2", 1)
	first.Deadline = Now() + int64(late/5)
	sendTogether(u, get, first, second)
	require.Equal(t, bulk(strings.Repeat("x", long)), get.wait(t).reply)
	require.Equal(t, Timeout, first.wait(t).failure.Kind)
	r := second.wait(t)
	require.Nil(t, r.failure)
	require.Equal(t, integer(2), r.reply)
	require.Equal(t, common, r.common)
}

// TestStrayBytesBeforeAJointReply: a line that a node had begun to send before it owed anything was cut in two by the reply to a joint command, and the
// process ended.
func TestStrayBytesBeforeAJointReply(t *testing.T) {
	s := adding()
	const common = "+all\r\n"
	nodes := fakeCluster(t, 2)
	for _, node := range nodes {
		node.answer(clustered(slotsOf(nodes...), func(args []string) string {
			switch {
			case args[0] == "GET":
				return bulk("x") + "*3"
			case args[0] != "EVALSHA":
				return ""
			case args[2] != "0":
				return integer(1)
			case len(args)-3 == s.Joint.Words:
				return array(common, foreignRefused+" in a cluster node\r\n")
			}
			return "\r\n*"
		}))
	}
	u := started(t, Config{Addrs: []string{nodes[0].addr}})
	count(t, u, s, jointKeys(20), 1) // after this, all nodes have been probed
	require.Equal(t, bulk("x"), do(t, u, "GET", "{key}").reply)
	calls := []*pending{add(s, "{key}:1", 1), add(s, "{key}:2", 1)}
	sendTogether(u, calls...)
	for _, c := range calls {
		r := c.wait(t)
		require.NotNil(t, r.failure)
		require.Equal(t, Lost, r.failure.Kind)
	}
}
