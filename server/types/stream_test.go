package types_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"headgate/server/servertest"

	"github.com/stretchr/testify/require"
)

var effectsSeed = flag.Uint64("effects.seed", 0, "seed of TestEffectsReplayStreams; 0 draws one")

func TestEffectsOfStreams(t *testing.T) {
	const now = "1700000000123"
	tests := []struct {
		name   string
		before []string
		run    []string
		want   []string
	}{
		{"XADD", nil, []string{"XADD s * f v", "XADD s 1800000000000-* f v", "XADD s 1900000000000-5 f v", "XADD s 1-1 f v", "XADD t NOMKSTREAM * f v"},
			[]string{"XADD s " + now + "-0 f v", "XADD s 1800000000000-0 f v", "XADD s 1900000000000-5 f v"}},
		{"XADD that trims", nil, []string{"XADD s MAXLEN ~ 5 1-1 f v", "XADD s MAXLEN 1 2-1 f v", "XADD s MINID ~ 2 * f v", "XADD s MAXLEN 0 * f v"},
			[]string{"XADD s MAXLEN = 1 1-1 f v", "XADD s MAXLEN 1 2-1 f v", "XADD s MINID = 2-1 " + now + "-0 f v", "XADD s MAXLEN = 0 " + now + "-1 f v"}},
		{"XTRIM", []string{"XADD s 1-1 f v", "XADD s 2-1 f v"}, []string{"XTRIM s MAXLEN ~ 1", "XTRIM s MAXLEN ~ 0", "XTRIM s MAXLEN 0", "XTRIM nosuch MAXLEN 0"},
			[]string{"XTRIM s MAXLEN = 0"}},
		{"XTRIM by ID", []string{"XADD s 1-1 f v", "XADD s 2-1 f v"}, []string{"XTRIM s MINID ~ 2", "XTRIM s MINID 2"}, []string{"XTRIM s MINID 2"}},
		{"groups", []string{"XADD s 1-1 f v"}, []string{"XGROUP CREATE s g $", "XGROUP CREATE s g $", "XGROUP CREATECONSUMER s g c", "XGROUP CREATECONSUMER s g c", "XGROUP SETID s g 0", "XGROUP DELCONSUMER s g c", "XGROUP DESTROY s g", "XGROUP DESTROY s g"},
			[]string{"XGROUP CREATE s g 1-1 MKSTREAM ENTRIESREAD -1", "XGROUP CREATECONSUMER s g c", "XGROUP SETID s g 0-0 ENTRIESREAD -1", "XGROUP DELCONSUMER s g c", "XGROUP DESTROY s g"}},
		{"XREADGROUP", []string{"XADD s 1-1 f v", "XADD s 2-1 f v", "XGROUP CREATE s g 0"},
			[]string{"XREADGROUP GROUP g c COUNT 1 STREAMS s >", "XREADGROUP GROUP g c NOACK STREAMS s >", "XREADGROUP GROUP g c STREAMS s >", "XREADGROUP GROUP g c STREAMS s 0", "XACK s g 1-1 2-1 3-1", "XACK s g 1-1"},
			[]string{
				"MULTI", "XGROUP CREATECONSUMER s g c", "XCLAIM s g c 0 1-1 TIME " + now + " RETRYCOUNT 1 FORCE JUSTID", "XGROUP SETID s g 1-1 ENTRIESREAD 1", "EXEC",
				"XGROUP SETID s g 2-1 ENTRIESREAD 2", "XCLAIM s g c 0 1-1 TIME " + now + " RETRYCOUNT 2 FORCE JUSTID", "XACK s g 1-1 2-1 3-1",
			}},
		{"XCLAIM and XAUTOCLAIM", []string{"XADD s 1-1 f v", "XADD s 2-1 f v", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >", "XDEL s 2-1"},
			[]string{"XCLAIM s g c 100 1-1", "XCLAIM s g c 0 1-1 TIME 5 LASTID 9-9", "XAUTOCLAIM s g c 0 0 JUSTID", "XAUTOCLAIM s g c 100 0"},
			[]string{
				"MULTI", "XGROUP SETID s g 9-9 ENTRIESREAD 2", "XCLAIM s g c 0 1-1 TIME 5 RETRYCOUNT 2 FORCE JUSTID", "EXEC",
				"MULTI", "XCLAIM s g c 0 1-1 TIME " + now + " RETRYCOUNT 2 FORCE JUSTID", "XACK s g 2-1", "EXEC",
			}},
		{"pops of sorted sets that may wait", []string{"ZADD z 1 a 2 b 3 c 4 d 5 e"},
			[]string{"BZPOPMIN z 0", "BZPOPMAX nosuch z 0", "BZMPOP 0 2 nosuch z MAX COUNT 2", "ZMPOP 1 z MIN COUNT 5", "ZMPOP 1 z MIN"},
			[]string{"ZPOPMIN z 1", "ZPOPMAX z 1", "ZPOPMAX z 2", "ZPOPMIN z 1"}},
		{"SORT", []string{"RPUSH l 3 1 2", "SET d v"}, []string{"SORT l", "SORT l STORE d", "SORT nosuch STORE d", "SORT nosuch STORE d"},
			[]string{"MULTI", "DEL d", "RPUSH d 1 2 3", "EXEC", "DEL d"}},
		{"HyperLogLogs", nil, []string{"PFADD h a", "PFADD h a", "PFMERGE h", "PFCOUNT h", "PFCOUNT h", "PFCOUNT h h"}, []string{"PFADD h a", "PFMERGE h", "PFCOUNT h"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := servertest.NewEffectsClient(t)
			w.EffectsOf(test.before...)
			require.Equal(t, test.want, w.EffectsOf(test.run...))
		})
	}
}

// TestEffectsReplayStreams runs random commands on streams, replays what they have logged on another server, and compares all that
// there is to know of the streams.
func TestEffectsReplayStreams(t *testing.T) {
	seed := *effectsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-effects.seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	one := func(texts ...string) string { return texts[rnd.IntN(len(texts))] }
	from, to := servertest.NewEffectsClient(t), servertest.NewEffectsClient(t)
	from.Run(servertest.EncodeCommand("CONFIG", "SET", "stream-node-max-entries", "5"))
	to.Run(servertest.EncodeCommand("CONFIG", "SET", "stream-node-max-entries", "5"))
	for i := range 5000 {
		key, group, consumer := one("s", "t"), one("g", "h"), one("c", "d")
		id := func() string { return fmt.Sprintf("%d-%d", 1_700_000_000_123+rnd.IntN(60)*1000, rnd.IntN(3)) }
		from.Now += int64(rnd.IntN(2)) * 1e9
		to.Now = from.Now
		command := one(
			"XADD "+key+" * f v", "XADD "+key+" * f v", "XADD "+key+" * other fields",
			"XADD "+key+" "+one("MAXLEN", "MINID")+" "+one("~", "=")+" "+one("5", "20", id())+" * f v",
			"XTRIM "+key+" "+one("MAXLEN", "MINID")+" "+one("~", "=")+" "+one("5", "20", id()),
			"XDEL "+key+" "+id(),
			"XGROUP CREATE "+key+" "+group+" "+one("0", "$", id()),
			"XGROUP SETID "+key+" "+group+" "+one("0", "$", id()),
			"XGROUP "+one("CREATECONSUMER", "DELCONSUMER")+" "+key+" "+group+" "+consumer,
			"XREADGROUP GROUP "+group+" "+consumer+" COUNT 3 STREAMS "+key+" "+one(">", ">", "0", id()),
			"XREADGROUP GROUP "+group+" "+consumer+" COUNT 2 NOACK STREAMS "+key+" >",
			"XACK "+key+" "+group+" "+id()+" "+id(),
			"XCLAIM "+key+" "+group+" "+consumer+" "+one("0", "1500")+" "+id()+" "+id()+one("", " FORCE", " JUSTID", " LASTID "+id()),
			"XAUTOCLAIM "+key+" "+group+" "+consumer+" "+one("0", "1500")+" "+id()+" COUNT 3",
			"XSETID "+key+" "+id(),
		)
		for _, effect := range from.EffectsOf(command) {
			reply := string(to.Run(servertest.EncodeCommand(strings.Split(effect, " ")...)))
			require.False(t, strings.HasPrefix(reply, "-"), "%s: %s", effect, reply)
		}
		if i%50 != 0 {
			continue
		}
		for _, key := range []string{"s", "t"} {
			for _, look := range [][]string{{"XINFO", "STREAM", key}, {"XRANGE", key, "-", "+"}, {"XINFO", "GROUPS", key}, {"XPENDING", key, "g", "-", "+", "1000"}} {
				want := string(from.Run(servertest.EncodeCommand(look...)))
				require.Equal(t, want, string(to.Run(servertest.EncodeCommand(look...))), "%v after %s", look, command)
			}
		}
	}
}
