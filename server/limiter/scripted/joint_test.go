package scripted_test

import (
	"bytes"
	"fmt"
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
		n := 2 + r.IntN(8)
		keys, plains := make([]string, n), make([]scripted.Plain, n)
		words := servertest.EncodeCommand("EVALSHA", joint.Script.SHA(), "0")
		words = append(fmt.Appendf(nil, "*%d", 3+n*joint.Words), words[bytes.IndexByte(words, '\r'):]...)
		for i := range keys {
			keys[i] = pick(r, "k0", "k0", "k1", "k2", "list")
			cell, err := throttle.NewIntervalGCRA(r.Int64N(20), 1+r.Int64N(10e9))
			require.NoError(t, err)
			request, ok := writer.Ask(&plains[i], nil, []byte(keys[i]), &cell, 1+r.Int64N(5))
			require.True(t, ok)
			call, ok := bytes.CutPrefix(request, joint.Head)
			require.True(t, ok)
			words = append(words, call...)
		}
		replies := elements(t, there.send(words))
		require.Len(t, replies, n)
		for i, key := range keys {
			if key == "list" {
				require.Regexp(t, "^-WRONGTYPE ", string(replies[i]))
				continue
			}
			require.True(t, plains[i].Answer(replies[i]), "%s: %q", key, replies[i])
			found := "$-1\r\n"
			if tat, ok := tats[key]; ok {
				found = fmt.Sprintf("$19\r\n%d\r\n", tat)
			}
			require.True(t, bytes.HasSuffix(replies[i], []byte(found)), "%s: %q holds %q", key, replies[i], found)
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
func elements(t *testing.T, reply []byte) (list [][]byte) {
	t.Helper()
	_, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	for len(rest) > 0 {
		next := len(rest)
		for _, beginning := range []string{"\r\n*4\r\n", "\r\n-"} {
			if at := bytes.Index(rest[1:], []byte(beginning)); at >= 0 {
				next = min(next, at+3)
			}
		}
		list = append(list, rest[:next])
		rest = rest[next:]
	}
	return list
}
