package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"headgate/server/servertest"
)

// windowScript is a sliding window as the field writes it: old entries go, the rest are counted, and if there is room the new one is
// added.
const windowScript = `redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
local n = redis.call('ZCARD', KEYS[1])
if n < tonumber(ARGV[4]) then
  redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return 1
end
return 0`

// BenchmarkWorker measures what headgate itself spends on a command, from its bytes to its reply, without a socket: pipelines of 16
// over 100,000 keys. @ stands for the key's number.
func BenchmarkWorker(b *testing.B) {
	const pipeline, keys, pipelines = 16, 100_000, 2000
	loads := []struct{ name, command string }{
		{"PING", "PING"},
		{"SET", "SET key:@ 12345678901234567890123456789012"},
		{"GET", "GET key:@"},
		{"INCR", "INCR cnt:@"},
		{"ZADD", "ZADD z 1732100000000 m:@"},
		{"CL.THROTTLE", "CL.THROTTLE rl:@ 1000 1000 60 1"},
		{"RL.GCRA", "RL.GCRA rl:@ 1000 1000 60s COST 1"},
		{"RL.BUCKET", "RL.BUCKET bu:@ 1000 1000 60s"},
		{"RL.QUEUE", "RL.QUEUE qu:@ 1000 1000 60s"},
		{"RL.FIXED", "RL.FIXED fx:@ 1000 60s"},
		{"RL.LOG", "RL.LOG lg:@ 10 1s"},
		{"RL.LOG of one key", "RL.LOG lg 1000000 60s"},
		{"RL.SLIDING", "RL.SLIDING sl:@ 1000 60s"},
		{"RL.ACQUIRE and RL.RELEASE", "RL.ACQUIRE ac:@ 10 60s MEMBER me ; RL.RELEASE ac:@ me"},
		{"RL.TAKE of three", "RL.TAKE 3 user tu:@ ip ti:@ all ta:@"},
		{"RL.TAKE of two", "RL.TAKE 2 user tu:@ window tw:@"},
		{"MSET of eight", "MSET a:@ 1 b:@ 1 c:@ 1 d:@ 1 e:@ 1 f:@ 1 g:@ 1 h:@ 1"},
		{"EVALSHA of an empty script", "EVALSHA " + servertest.Sha1Hex("") + " 0"},
		{"EVALSHA of a window", "EVALSHA " + servertest.Sha1Hex(windowScript) + " 1 w:@ 1732099999000 1732100000000 m 10 1000"},
		{"Window", "MULTI ; ZREMRANGEBYSCORE w:@ 0 1732099999000 ; ZCARD w:@ ; ZADD w:@ 1732100000000 m ; PEXPIRE w:@ 1000 ; EXEC"},
	}
	for _, load := range loads {
		b.Run(load.name, func(b *testing.B) {
			w := servertest.NewWorkerClient(b)
			w.Ask("SCRIPT", "LOAD", "")
			w.Ask("SCRIPT", "LOAD", windowScript)
			for _, name := range []string{"user", "ip", "all"} {
				w.Ask("RL.POLICY", "SET", name, "GCRA", "1000", "1000", "60s")
			}
			w.Ask("RL.POLICY", "SET", "window", "FIXED", "1000000", "60s")
			inputs := make([][]byte, pipelines)
			for i := range inputs {
				for j := range pipeline {
					key := fmt.Sprintf("%012d", (i*pipeline+j)*7919%keys)
					for command := range strings.SplitSeq(strings.ReplaceAll(load.command, "@", key), " ; ") {
						inputs[i] = append(inputs[i], servertest.EncodeCommand(strings.Fields(command)...)...)
					}
				}
				if reply := w.Run(inputs[i]); bytes.Contains(reply, []byte("-ERR")) {
					b.Fatalf("%q", reply)
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.Run(inputs[i%pipelines])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/command")
		})
	}
}
