package scripted_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"headgate/server/limiter/scripted"
	"headgate/server/servertest"
	"headgate/throttle"

	"github.com/stretchr/testify/require"
)

// TestJointDecisionsOnRedis: several calls that are one command are decided as package throttle decides them one after the other, also if they are for one
// key, and a key that holds something else is its own calls' error alone.
func TestJointDecisionsOnRedis(t *testing.T) {
	r, there := random(t), startRedis(t)
	joint := scripted.PlainScript().Joint()
	require.Equal(t, "$40\r\n"+joint.Script.SHA()+"\r\n", there.ask("SCRIPT", "LOAD", joint.Script.Text()))
	var writer scripted.PlainWriter
	limited := 0
	for range *calls {
		there.ask("FLUSHALL")
		sec, us := serverTime(there)
		tats := make(map[string]int64) // of keys that have one
		for i := range 3 {
			if r.IntN(2) == 0 {
				key := fmt.Sprintf("k%d", i)
				tats[key] = (sec*1e6+us)*1000 + r.Int64N(100e9) - 20e9
				there.ask("SET", key, strconv.FormatInt(tats[key], 10))
			}
		}
		there.ask("RPUSH", "list", "x")
		there.ask("SET", "left", pick(r, "", "7", "1234567890x23456789", "0999999999999999999"))
		n := 2 + r.IntN(8)
		keys, plains := make([]string, n), make([]scripted.Plain, n)
		words := servertest.EncodeCommand("EVALSHA", joint.Script.SHA(), "0")
		words = append(fmt.Appendf(nil, "*%d", 3+n*joint.Words), words[bytes.IndexByte(words, '\r'):]...)
		for i := range keys {
			keys[i] = pick(r, "k0", "k0", "k1", "k2", "list", "left")
			cell, err := throttle.NewIntervalGCRA(r.Int64N(20), 1+r.Int64N(10e9))
			require.NoError(t, err)
			call, ok := writer.Ask(&plains[i], nil, []byte(keys[i]), &cell, r.Int64N(6))
			if !ok { // it gives nothing to decide
				call, ok = writer.Ask(&plains[i], nil, []byte(keys[i]), &cell, 1)
			}
			require.True(t, ok)
			words = append(words, call...)
		}
		common, replies := elements(t, there.send(words))
		require.Len(t, replies, n)
		for i, key := range keys {
			if key == "list" {
				require.Regexp(t, "^-WRONGTYPE ", string(replies[i]))
				continue
			}
			if key == "left" {
				require.False(t, plains[i].Answer(common, replies[i]))
				require.Equal(t, "*3\r\n"+string(common[len("*2\r\n"):])+":2\r\n", string(scripted.WholeReply(nil, common, replies[i])))
				continue
			}
			require.True(t, plains[i].Answer(common, replies[i]), "%s: %q", key, replies[i])
			decided := plains[i].Decision
			whole := scripted.WholeReply(nil, common, replies[i])
			found := "$-1\r\n"
			if tat, ok := tats[key]; ok {
				found = fmt.Sprintf("$19\r\n%d\r\n", tat)
			}
			require.True(t, bytes.HasSuffix(whole, []byte(found)), "%s: %q holds %q", key, whole, found)
			require.True(t, plains[i].Answer(nil, whole))
			require.Equal(t, decided, plains[i].Decision)
			switch d := &plains[i].Decision; d.Write {
			case throttle.Set:
				tats[key] = d.TAT
			case throttle.Delete:
				delete(tats, key)
			default:
				limited++
			}
		}
	}
	require.Positive(t, limited)
}

// elements splits the reply to a joint command.
func elements(t *testing.T, reply []byte) (common []byte, list [][]byte) {
	t.Helper()
	value := regexp.MustCompile(`(?s)^(?:\$-1\r\n|\$\d+\r\n.*?\r\n|[:+-].*?\r\n)`)
	found := regexp.MustCompile(`^\*\d+\r\n(\*2\r\n(?:\$\d+\r\n\d+\r\n){2})`).FindSubmatch(reply)
	require.NotNil(t, found, "%q", reply)
	for rest := reply[len(found[0]):]; len(rest) > 0; {
		next := value.Find(rest)
		require.NotEmpty(t, next, "%q", rest)
		list, rest = append(list, next), rest[len(next):]
	}
	return found[1], list
}

// TestMalformedJointReplies: what no script answers is told of as that, and not taken for a call that passes.
func TestMalformedJointReplies(t *testing.T) {
	cell, err := throttle.NewIntervalGCRA(4, 1e9)
	require.NoError(t, err)
	const common = "*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n"
	for _, text := range []string{
		"$0\r\n\r\n", "$-1\r\n", "_\r\n", "*0\r\n", "*1\r\n:1\r\n", "+OK\r\n", ":99999999999999999999999\r\n", ":9\r\n", ":-1\r\n", ":4\r\n",
		"$3\r\nx12\r\n", "%0\r\n", ":1\r\n:1\r\n", "",
	} {
		var writer scripted.PlainWriter
		var plain scripted.Plain
		_, ok := writer.Ask(&plain, nil, []byte("k"), &cell, 1)
		require.True(t, ok)
		require.False(t, plain.Answer([]byte(common), []byte(text)), "%q", text)
		var q scripted.Question
		q.AskGCRA(nil, []byte("k"), cell, 1)
		outcome, err := q.Answer(scripted.WholeReply(nil, []byte(common), []byte(text)))
		require.Equal(t, scripted.Done, outcome, "%q", text)
		require.ErrorIs(t, err, scripted.ErrMalformed, "%q", text)
	}
}
